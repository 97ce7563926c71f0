//! Text normalization: Unicode NFKC, and removal of white space.

use icu_normalizer::ComposingNormalizerBorrowed;

/// The string in Unicode normalization form NFKC, if it differs.
pub fn to_nfkc(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let composed = ComposingNormalizerBorrowed::new_nfkc().normalize(text);
    (composed != text).then(|| composed.into_owned().into_bytes())
}

/// The string without white space, if it contains any.
pub fn without_white_space(text: &[u8]) -> Option<Vec<u8>> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    text.iter().any(is_blank).then(|| text.iter().copied().filter(|byte| !is_blank(byte)).collect())
}

#[cfg(test)]
mod tests {
    use super::{to_nfkc, without_white_space};

    #[test]
    fn characters_are_composed() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(to_nfkc(text.as_bytes()).as_deref(), expect.map(str::as_bytes), "{text}");
        };
        check("plain", None);
        check("ä", None);
        check("a\u{308}", Some("ä"));
        check("ﬁn", Some("fin"));
        assert_eq!(to_nfkc(b"\xff"), None);
    }

    #[test]
    fn white_space_is_left_out() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(without_white_space(text.as_bytes()).as_deref(), expect.map(str::as_bytes), "{text}");
        };
        check("plain", None);
        check(" a\tb\r\n c", Some("abc"));
        check(" ", Some(""));
    }
}
