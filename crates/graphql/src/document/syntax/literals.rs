//! Parses number and string literals: finds their end, reports errors and decodes their value.

use super::QuerySyntaxError;
use super::lexer::character;

/// The end of the number that begins at `start`, and whether it is a float.
pub fn number_end(text: &str, start: usize) -> Result<(usize, bool), QuerySyntaxError> {
    let bytes = text.as_bytes();
    let digits = |from: usize| match bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(no_digit(text, from)),
        count => Ok(from + count),
    };
    let mut at = start + usize::from(bytes[start] == b'-');
    let mut float = false;
    if bytes.get(at) == Some(&b'0') {
        at += 1;
        if bytes.get(at).is_some_and(u8::is_ascii_digit) {
            let digit = character(text, at);
            return Err(QuerySyntaxError::new(
                at,
                format_args!("Invalid number, unexpected digit after 0: {digit}."),
            ));
        }
    } else {
        at = digits(at)?;
    }
    if bytes.get(at) == Some(&b'.') {
        float = true;
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        float = true;
        let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(at + 1 + usize::from(signed))?;
    }
    // A number must not be followed directly by a name or a dot.
    match bytes.get(at) {
        Some(b'.' | b'_' | b'a'..=b'z' | b'A'..=b'Z') => Err(no_digit(text, at)),
        _ => Ok((at, float)),
    }
}

fn no_digit(text: &str, at: usize) -> QuerySyntaxError {
    QuerySyntaxError::new(
        at,
        format_args!("Invalid number, expected digit but got: {}.", character(text, at)),
    )
}

/// The end of the string or block string that begins at `start`.
pub fn string_end(text: &str, start: usize, block: bool) -> Result<usize, QuerySyntaxError> {
    let bytes = text.as_bytes();
    let mut at = start + if block { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' if !block => return Ok(at + 1),
            b'"' if bytes[at..].starts_with(b"\"\"\"") => return Ok(at + 3),
            b'\\' if !block => at += escape(text, at)?.1,
            b'\\' if bytes[at..].starts_with(b"\\\"\"\"") => at += 4,
            b'\n' | b'\r' if !block => break,
            _ => at += 1,
        }
    }
    Err(QuerySyntaxError::new(at, "Unterminated string."))
}

/// Decodes the escape sequence at `at`: the character, and the length of the sequence in bytes.
fn escape(text: &str, at: usize) -> Result<(char, usize), QuerySyntaxError> {
    let byte = |offset: usize| text.as_bytes().get(at + offset).copied();
    let simple = match byte(1) {
        Some(b'u') if byte(2) == Some(b'{') => return long_escape(text, at),
        Some(b'u') => return short_escape(text, at),
        Some(same @ (b'"' | b'\\' | b'/')) => char::from(same),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        _ => {
            let shown = units(text, at, 2);
            return Err(QuerySyntaxError::new(
                at,
                format_args!("Invalid character escape sequence: \"{shown}\"."),
            ));
        }
    };
    Ok((simple, 2))
}

fn bad_unicode(text: &str, at: usize, size: usize) -> QuerySyntaxError {
    QuerySyntaxError::new(at, format_args!("Invalid Unicode escape sequence: \"{}\".", units(text, at, size)))
}

/// Decodes an escape sequence such as `\u{1F600}`.
fn long_escape(text: &str, at: usize) -> Result<(char, usize), QuerySyntaxError> {
    const MAX_ESCAPE_LEN: usize = 12;
    let mut point: u32 = 0;
    let mut size = 3;
    while size < MAX_ESCAPE_LEN {
        let byte = text.as_bytes().get(at + size).copied().unwrap_or_default();
        size += 1;
        if byte == b'}' {
            match char::from_u32(point) {
                Some(found) if size >= 5 => return Ok((found, size)),
                _ => break,
            }
        }
        let Some(digit) = char::from(byte).to_digit(16) else { break };
        point = point << 4 | digit;
        // More digits would overflow the number.
        if point > i32::MAX.cast_unsigned() {
            break;
        }
    }
    Err(bad_unicode(text, at, size))
}

/// Decodes an escape sequence such as `\u00e9`, or a surrogate pair of two such sequences.
fn short_escape(text: &str, at: usize) -> Result<(char, usize), QuerySyntaxError> {
    let unit = |from: usize| {
        let digits = text.as_bytes().get(from..from + 4)?;
        let digit =
            |value: u16, byte: &u8| Some(value << 4 | u16::try_from(char::from(*byte).to_digit(16)?).ok()?);
        digits.iter().try_fold(0, digit)
    };
    let Some(first) = unit(at + 2) else { return Err(bad_unicode(text, at, 6)) };
    if let Some(found) = char::from_u32(u32::from(first)) {
        return Ok((found, 6));
    }
    let second = if text[at + 6..].starts_with("\\u") { unit(at + 8) } else { None };
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    pair.map(|found| (found, 12)).ok_or_else(|| bad_unicode(text, at, 6))
}

/// The next `count` UTF-16 code units, for a message.
fn units(text: &str, at: usize, count: usize) -> String {
    let units: Vec<u16> = text[at..].encode_utf16().take(count).collect();
    String::from_utf16_lossy(&units)
}

/// The value of a valid string literal.
pub fn string_text(written: &str) -> String {
    let inner = &written[1..written.len() - 1];
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(start) = rest.find('\\') {
        out.push_str(&rest[..start]);
        let Ok((found, size)) = escape(rest, start) else { break };
        out.push(found);
        rest = &rest[start + size..];
    }
    out + rest
}

/// The value of a block string, without the common indentation of its lines.
pub fn block_text(written: &str) -> String {
    let inner = written[3..written.len() - 3].replace("\\\"\"\"", "\"\"\"").replace("\r\n", "\n");
    let lines: Vec<&str> = inner.split(['\n', '\r']).collect();
    let margin = |line: &str| line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let full = |line: &&str| margin(line) < line.len();
    let common = lines.iter().skip(1).filter(|line| full(line)).map(|line| margin(line)).min();
    let Some(first) = lines.iter().position(&full) else { return String::new() };
    let last = lines.iter().rposition(full).unwrap_or(first);
    let cut = |(index, line): (usize, &&'_ str)| match (index, common) {
        (0, _) => (*line).to_owned(),
        (_, None) => String::new(),
        (_, Some(common)) => line.get(common..).unwrap_or_default().to_owned(),
    };
    let cut: Vec<String> = lines.iter().enumerate().map(cut).collect();
    cut[first..=last].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_strings_are_decoded() {
        assert_eq!(string_text(r#""a\n\"\u00e9\u{1F600}\uD83D\uDE00z""#), "a\n\"é😀😀z");
        assert_eq!(string_text("\"\""), "");
    }

    #[test]
    fn block_strings_lose_their_common_indentation() {
        let check =
            |inner: &str, expect: &str| assert_eq!(block_text(&format!("\"\"\"{inner}\"\"\"")), expect);
        check("", "");
        check("a", "a");
        check("\n    a\n      b\r\n\r    c\n  ", "a\n  b\n\nc");
        check("  a\n  b", "  a\nb");
        check("say \\\"\"\"", "say \"\"\"");
        check("\n \n", "");
    }
}
