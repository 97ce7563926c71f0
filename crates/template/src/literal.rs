//! Literals of expressions: numbers, names and strings, as in Python.

use crate::fault::{EvalError, EvalResult, Kind, refused};

/// Whether `\w` of Python matches the character, for all characters that names can contain.
pub(crate) fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// The length of digits with single underscores between them.
fn digits(text: &str, is_digit: impl Fn(char) -> bool) -> usize {
    let mut length = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        if is_digit(character) {
            length = index + 1;
        } else if index == 0
            || character != '_'
            || length != index
            || !characters.peek().is_some_and(|(_, next)| is_digit(*next))
        {
            break;
        }
    }
    length
}

/// A float with a decimal point or an exponent, and its length.
pub(crate) fn float(text: &str) -> Option<(f64, usize)> {
    let decimal = |character: char| character.is_ascii_digit();
    let whole = digits(text, decimal);
    if whole == 0 {
        return None;
    }
    let mut length = whole;
    if let Some(fraction) = text[length..].strip_prefix('.') {
        let fraction = digits(fraction, decimal);
        if fraction > 0 {
            length += 1 + fraction;
        }
    }
    if let Some(exponent) = text[length..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let power = digits(&exponent[sign..], decimal);
        if power > 0 {
            length += 1 + sign + power;
        }
    }
    if length == whole {
        return None;
    }
    let number = text[..length].replace('_', "").parse().ok()?;
    Some((number, length))
}

/// The length of an integer.
pub(crate) fn integer_length(text: &str) -> Option<usize> {
    for (prefix, radix) in [("0b", 2), ("0o", 8), ("0x", 16)] {
        if text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
            let body = text[2..].strip_prefix('_').unwrap_or(&text[2..]);
            let length = digits(body, |character| character.is_digit(radix));
            if length > 0 {
                return Some(text.len() - body.len() + length);
            }
        }
    }
    let length = match text.chars().next()? {
        '0' => digits(text, |character| character == '0'),
        '1'..='9' => digits(text, |character| character.is_ascii_digit()),
        _ => 0,
    };
    (length > 0).then_some(length)
}

/// The value of an integer.
pub(crate) fn integer(text: &str) -> EvalResult<i128> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let parsed = match text.get(..2) {
        Some("0b") => i128::from_str_radix(&text[2..], 2),
        Some("0o") => i128::from_str_radix(&text[2..], 8),
        Some("0x") => i128::from_str_radix(&text[2..], 16),
        _ => text.parse(),
    };
    parsed.or_else(|_| refused(format!("the number `{text}` has more than 128 bits")))
}

/// A name that Python accepts as an identifier.
pub(crate) fn name(word: &str) -> EvalResult<&str> {
    if !word.is_ascii() {
        return refused(format!("the name `{word}` is not written in ASCII"));
    }
    if word.starts_with(|character: char| character.is_ascii_digit()) {
        return Err(EvalError::new(Kind::Syntax, format!("`{word}` is not a name")));
    }
    Ok(word)
}

/// The length of a quoted string that begins here; `None` if it is not closed.
pub(crate) fn text_length(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return Some(index + 1);
        }
    }
    None
}

/// The value of a string literal without its quotes, with escapes as in Python.
pub(crate) fn text(body: &str) -> EvalResult<String> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        let Some(mark) = rest.next() else {
            return Err(EvalError::new(Kind::Syntax, "a string ends with a backslash"));
        };
        match mark {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(mark),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            '0'..='7' => {
                let digits: String =
                    rest.as_str().chars().take(2).take_while(|digit| digit.is_digit(8)).collect();
                rest = rest.as_str()[digits.len()..].chars();
                let code = u32::from_str_radix(&format!("{mark}{digits}"), 8).unwrap_or_default();
                out.push(char::from_u32(code).unwrap_or_default());
            }
            'x' | 'u' | 'U' => {
                let length = match mark {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits = rest
                    .as_str()
                    .get(..length)
                    .filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()));
                let Some(digits) = digits else {
                    return Err(EvalError::new(Kind::Syntax, format!("truncated escape `\\{mark}`")));
                };
                rest = rest.as_str()[length..].chars();
                let code = u32::from_str_radix(digits, 16).unwrap_or(u32::MAX);
                match char::from_u32(code) {
                    Some(character) => out.push(character),
                    None => return refused(format!("the invalid character `\\{mark}{digits}`")),
                }
            }
            'N' => return refused("characters by name (`\\N{…}`)"),
            other if other.is_ascii() => {
                out.push('\\');
                out.push(other);
            }
            _ => return refused("a backslash before a character that is not ASCII"),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::{float, integer, integer_length, text};

    #[test]
    fn numbers_are_as_long_as_in_python() {
        let check =
            |source: &str, expect: Option<usize>| assert_eq!(integer_length(source), expect, "{source}");
        check("12_3x", Some(4));
        check("1__2", Some(1));
        check("012", Some(1));
        check("0x_fG", Some(4));
        check("x", None);
        assert_eq!(integer("0b1_0").unwrap(), 2);
        assert_eq!(float("1.5e3 "), Some((1500.0, 5)));
        assert_eq!(float("1e5"), Some((100_000.0, 3)));
        assert_eq!(float("1.x"), None);
    }

    #[test]
    fn escapes_are_decoded_as_in_python() {
        let check = |source: &str, expect: &str| assert_eq!(text(source).unwrap(), expect, "{source}");
        check(r"a\tb\x41\u00e9\101\d", "a\tbAéA\\d");
        assert!(text(r"\x4").is_err());
    }
}
