//! Where exactly a number or a text of a request stops being one.

/// The place of the fault in the token that begins at `offset`: that of the character which is wrong.
pub fn fault(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    let within = match rest.as_bytes().first() {
        Some(b'"') if !rest.starts_with("\"\"\"") => in_text(rest),
        Some(b'-' | b'0'..=b'9') => in_number(rest.as_bytes()),
        _ => 0,
    };
    offset + within
}

/// A bad escape is where its `\` is; a text without an end is wrong where the line ends.
fn in_text(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' | b'\r' => return at,
            b'"' => return 0,
            b'\\' => {
                let good = match bytes.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
                    Some(b'u') => {
                        let digits = bytes.get(at + 2..at + 6).unwrap_or_default();
                        digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit)
                            || bytes.get(at + 2) == Some(&b'{')
                    }
                    _ => false,
                };
                if !good {
                    return at;
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn in_number(bytes: &[u8]) -> usize {
    let digits =
        |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes[0] == b'-');
    if bytes.get(at) == Some(&b'0') {
        at += 1;
        if digits(at) > 0 {
            return at;
        }
    } else {
        match digits(at) {
            0 => return at,
            count => at += count,
        }
    }
    if bytes.get(at) == Some(&b'.') {
        match digits(at + 1) {
            0 => return at + 1,
            count => at += 1 + count,
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        match digits(at + 1 + sign) {
            0 => return at + 1 + sign,
            count => at += 1 + sign + count,
        }
    }
    // A number ends before anything that could go on with it.
    let goes_on = bytes.get(at).is_some_and(|byte| matches!(byte, b'.' | b'_') || byte.is_ascii_alphabetic());
    if goes_on { at } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::fault;

    fn check(token: &str, expect: usize) {
        assert_eq!(fault(&format!("  {token}"), 2), 2 + expect, "{token}");
    }

    #[test]
    fn the_wrong_character_is_named() {
        check("\"a { name } }", 13);
        check("\"a\n b\"", 2);
        check("\"a\\q\"", 2);
        check("\"\\u00zz\"", 1);
        check("0012", 1);
        check("1.)", 2);
        check("-a", 1);
        check("1e+)", 3);
        check("12a", 2);
        check("12 ", 0);
        check("%", 0);
    }
}
