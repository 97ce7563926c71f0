//! The texts that a text stands for: percent-encoding and JSON escapes undone.

use std::borrow::Cow;

/// The text itself and its decoded forms, without those that are equal to it.
pub fn all(text: &str) -> Vec<Cow<'_, [u8]>> {
    let bytes = text.as_bytes();
    let mut all = vec![Cow::Borrowed(bytes)];
    let unescaped = bytes.contains(&b'\\').then(|| unescape(text));
    for base in [Some(Cow::Borrowed(bytes)), unescaped.map(Cow::Owned)].into_iter().flatten() {
        if base.contains(&b'%') {
            all.push(Cow::Owned(percent_decode(&base, b'+')));
            // In the query of a URL `+` is a blank.
            if base.contains(&b'+') {
                all.push(Cow::Owned(percent_decode(&base, b' ')));
            }
        }
        if let Cow::Owned(_) = base {
            all.push(base);
        }
    }
    all
}

/// Bytes for `%41`; what is not an escape stays as it is.
fn percent_decode(bytes: &[u8], plus: u8) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        rest = tail;
        match (first, tail.get(..2).and_then(hex)) {
            (b'%', Some(byte)) if tail[0] != b'+' => {
                decoded.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => decoded.push(plus),
            (other, _) => decoded.push(*other),
        }
    }
    decoded
}

/// The characters that the escapes of JSON stand for; what is not an escape stays as it is.
fn unescape(text: &str) -> Vec<u8> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let (one, length) = escape(&rest[at..]);
        decoded.push(one);
        rest = &rest[at + length..];
    }
    decoded.push_str(rest);
    decoded.into_bytes()
}

/// The character of an escape, and how many bytes the escape has.
fn escape(text: &str) -> (char, usize) {
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => Some('\n'),
        Some(b'r') => Some('\r'),
        Some(b't') => Some('\t'),
        Some(b'b') => Some('\u{8}'),
        Some(b'f') => Some('\u{c}'),
        Some(b'"') => Some('"'),
        Some(b'\'') => Some('\''),
        Some(b'/') => Some('/'),
        Some(b'\\') => Some('\\'),
        _ => None,
    };
    if let Some(one) = simple {
        return (one, 2);
    }
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or('\\'), 12)
        }
        (Some(code), _) => match char::from_u32(code) {
            Some(one) => (one, 6),
            None => ('\\', 1),
        },
        (None, _) => ('\\', 1),
    }
}

#[cfg(test)]
mod tests {
    use super::all;

    fn check(text: &str, expect: &[&str]) {
        let decoded = all(text);
        let decoded: Vec<Cow<'_, str>> = decoded.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        assert_eq!(decoded[0], text);
        assert_eq!(decoded[1..], *expect, "{text}");
    }

    use std::borrow::Cow;

    #[test]
    fn percent_encoding_is_undone() {
        check("plain+text", &[]);
        check("a%2Fb%2fc", &["a/b/c"]);
        check("a%20b+c", &["a b+c", "a b c"]);
        check("100%", &["100%"]);
        check("%", &["%"]);
        check("%4", &["%4"]);
        check("%zz%+1", &["%zz%+1", "%zz% 1"]);
    }

    #[test]
    fn escapes_of_json_are_undone() {
        check(r"a\nb\r\t\b\f", &["a\nb\r\t\u{8}\u{c}"]);
        check(r#"\"q\" \' \/ \\n"#, &["\"q\" ' / \\n"]);
        check(r"\u0041\u00e4\ud83d\ude00!", &["Aä😀!"]);
        check(r"\ud83d \u12 \x \", &[r"\ud83d \u12 \x \"]);
        check(r"\u0025\u0034\u0031", &["A", "%41"]);
    }
}
