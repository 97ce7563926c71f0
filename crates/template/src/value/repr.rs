//! Python's `repr` of strings and numbers. A character is refused if its `repr` depends on Unicode tables
//! that are not available here.

use std::fmt::Write as _;

use crate::fault::{EvalResult, refused};

/// `repr` of a float: the shortest digits that parse to the same value.
pub(crate) fn float(number: f64) -> String {
    qontract_python_json::float_repr(number)
}

/// `repr` of a string: quoted, with escapes for characters that are not printable.
pub(crate) fn quoted(text: &str, out: &mut String) -> EvalResult<()> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character if character == quote => {
                out.push('\\');
                out.push(character);
            }
            ' '..='~' => out.push(character),
            '\0'..='\u{a0}' | '\u{ad}' => _ = write!(out, "\\x{:02x}", u32::from(character)),
            character if is_printable(character) => out.push(character),
            _ => {
                return refused(format!(
                    "printing a string with the character U+{:04X} in quotes",
                    u32::from(character)
                ));
            }
        }
    }
    out.push(quote);
    Ok(())
}

/// Whether the character is certainly printable. Rust's table has the same classes as Python's, but it
/// escapes more characters.
fn is_printable(character: char) -> bool {
    character.escape_debug().count() == 1
}

#[cfg(test)]
mod tests {
    use super::{float, quoted};

    #[test]
    fn numbers_print_as_in_python() {
        let check = |number: f64, expect: &str| assert_eq!(float(number), expect);
        check(1.0, "1.0");
        check(0.1, "0.1");
        check(1e16, "1e+16");
        check(1_234_567_890_123_456.0, "1234567890123456.0");
        check(0.0001, "0.0001");
        check(0.000_01, "1e-05");
        check(1.5e300, "1.5e+300");
        check(-0.0, "-0.0");
        check(f64::from_bits(0x431c_c0e5_0492_1fcd), "2023347301156851.2");
    }

    #[test]
    fn strings_are_quoted_as_in_python() {
        let check = |text: &str, expect: &str| {
            let mut out = String::new();
            quoted(text, &mut out).unwrap();
            assert_eq!(out, expect);
        };
        check("a'b", "\"a'b\"");
        check("a'b\"", "'a\\'b\"'");
        check("é\u{7f}\n", "'é\\x7f\\n'");
    }
}
