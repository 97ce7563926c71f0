//! Decodes escapes, percent-encoding and HTML entities, including nested encodings.

use std::borrow::Cow;

/// Maximum nesting depth of encodings.
const MAX_DEPTH: usize = 3;

/// Maximum number of decoded strings.
const MAX_TEXTS: usize = 16;

/// The string itself and its decoded forms, without duplicates.
pub fn decoded_texts(text: &str) -> Vec<Cow<'_, [u8]>> {
    let mut forms = vec![Cow::Borrowed(text.as_bytes())];
    let mut start = 0;
    for _ in 0..MAX_DEPTH {
        let end = forms.len();
        for index in start..end {
            for decoded in decode_once(&forms[index]) {
                if forms.len() < MAX_TEXTS && !forms.iter().any(|form| **form == *decoded) {
                    forms.push(Cow::Owned(decoded));
                }
            }
        }
        start = end;
    }
    forms
}

/// Decodes a string once, with each encoding that it may use.
fn decode_once(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    if bytes.contains(&b'\\') {
        all.push(replace_escapes(bytes, b'\\', escape));
    }
    if bytes.contains(&b'%') {
        let plain = replace_escapes(bytes, b'%', percent);
        // In a URL query, `+` is a space.
        if bytes.contains(&b'+') {
            let blanks: Vec<u8> = bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
            all.push(replace_escapes(&blanks, b'%', percent));
        }
        all.push(plain);
    }
    if bytes.contains(&b'&') {
        all.push(replace_escapes(bytes, b'&', entity));
    }
    all
}

/// The decoded bytes of an escape, and its length.
struct Escape {
    stands_for: Vec<u8>,
    length: usize,
}

impl Escape {
    fn byte(byte: u8, length: usize) -> Self {
        Self { stands_for: vec![byte], length }
    }

    fn character(code: u32, length: usize) -> Option<Self> {
        let character = char::from_u32(code)?;
        Some(Self { stands_for: character.to_string().into_bytes(), length })
    }
}

/// Replaces the escapes that begin with `sign`, and keeps all other bytes.
fn replace_escapes(bytes: &[u8], sign: u8, read: impl Fn(&[u8]) -> Option<Escape>) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let escape = if *first == sign { read(rest) } else { None };
        if let Some(Escape { stands_for, length }) = escape {
            out.extend(stands_for);
            rest = &rest[length..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

/// The value of hexadecimal digits.
fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// `%41`.
fn percent(text: &[u8]) -> Option<Escape> {
    let byte = u8::try_from(hex(text.get(1..3))?).ok()?;
    Some(Escape::byte(byte, 3))
}

/// A JSON, YAML, Python or Rust escape.
fn escape(text: &[u8]) -> Option<Escape> {
    let simple = match text.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => 0,
        b'a' => 7,
        b'b' => 8,
        b'v' => 11,
        b'f' => 12,
        b'e' => 27,
        sign @ (b'"' | b'\'' | b'/' | b'\\') => *sign,
        b'x' => return Escape::character(hex(text.get(2..4))?, 4),
        b'U' => return Escape::character(hex(text.get(2..10))?, 10),
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = text[3..].iter().take(7).position(|byte| *byte == b'}')?;
            return Escape::character(hex(text.get(3..3 + digits))?, digits + 4);
        }
        b'u' => return utf16(text),
        _ => return None,
    };
    Some(Escape::byte(simple, 2))
}

/// `\u00e4`, or two of them for a character beyond 16 bits.
fn utf16(text: &[u8]) -> Option<Escape> {
    let unit = |at: usize| hex(text.get(at..at + 6)?.strip_prefix(b"\\u"));
    match (unit(0)?, unit(6)) {
        (high @ 0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
            Escape::character(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
        }
        (code, _) => Escape::character(code, 6),
    }
}

/// `&amp;`, `&#38;` or `&#x26;`.
fn entity(text: &[u8]) -> Option<Escape> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let name = &text[1..end];
    let code = match name {
        b"amp" => u32::from(b'&'),
        b"lt" => u32::from(b'<'),
        b"gt" => u32::from(b'>'),
        b"quot" => u32::from(b'"'),
        b"apos" => u32::from(b'\''),
        [b'#', b'x' | b'X', digits @ ..] => hex(Some(digits))?,
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        _ => return None,
    };
    Escape::character(code, end + 1)
}

#[cfg(test)]
mod tests {
    use super::{MAX_TEXTS, decoded_texts};

    /// The decoded strings that differ from the input, in any order.
    fn check(text: &str, expect: &[&str]) {
        let decoded = decoded_texts(text);
        assert_eq!(decoded[0], text.as_bytes());
        let mut decoded: Vec<_> = decoded[1..].iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        decoded.sort();
        assert_eq!(decoded, expect, "{text}");
    }

    #[test]
    fn percent_encoding_is_decoded() {
        check("plain+text", &[]);
        check("a%2Fb%2fc", &["a/b/c"]);
        check("a%20b+c", &["a b c", "a b+c"]);
        check("100%", &[]);
        check("%4", &[]);
        check("%zz%+1", &["%zz% 1"]);
        check("%252F", &["%2F", "/"]);
    }

    #[test]
    fn escapes_are_decoded() {
        check(r"a\nb\r\t\b\f\v\a\e\0", &["a\nb\r\t\u{8}\u{c}\u{b}\u{7}\u{1b}\0"]);
        check(r#"\"q\" \' \/"#, &["\"q\" ' /"]);
        check(r"\\n", &["\n", r"\n"]);
        check(r"\u0041\u00e4\ud83d\ude00!", &["Aä😀!"]);
        check(r"\ud83d \u12 \q \", &[]);
        check(r"\x41\u{e4}\U0001f600\u{1f600}", &["Aä😀😀"]);
        check(r"\x4 \u{} \u{110000} \u{1234567} \U0001 \xzz", &[]);
        check(r"\u0025\u0034\u0031", &["%41", "A"]);
    }

    #[test]
    fn html_entities_are_decoded() {
        check("a&amp;b&lt;&gt;&quot;&apos;", &["a&b<>\"'"]);
        check("&#65;&#x41;&#X41;", &["AAA"]);
        check("&amp;lt;", &["&lt;", "<"]);
        check("a & b; &; &none; &#; &#x; &#xzz; &#1114112;", &[]);
    }

    #[test]
    fn nesting_is_decoded_three_times() {
        check(r"\\\\u0041", &["A", r"\\u0041", r"\u0041"]);
        let text = r"\".repeat(16) + "n";
        assert!(decoded_texts(&text).iter().all(|decoded| **decoded != *b"\n"), "not a fourth time");
    }

    #[test]
    fn the_number_of_texts_is_limited() {
        assert!(decoded_texts(r"%25+&amp;\\%25+&amp;\\%25+&amp;\\").len() <= MAX_TEXTS);
    }

    #[test]
    fn decoded_texts_are_limited_in_number() {
        // The encodings are nested, so that each order of decoding gives a different result.
        let text = r"%5cx25+\x26amp;%26#92;x25;\x25&amp;%5cu0025&#37;25+%255c&#92;x26#37;";
        assert_eq!(decoded_texts(text).len(), MAX_TEXTS);
    }
}
