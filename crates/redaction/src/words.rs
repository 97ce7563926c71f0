//! Truncates strings that are redacted later.

/// The factor by which a result may exceed the requested length to complete its last word.
const MAX_EXCESS: usize = 8;

/// Returns the beginning of a string: about `max_chars` characters, and only whole words.
///
/// Use it for strings that are redacted later by a caller that holds more secrets, because a truncated secret
/// is not recognised. A word that begins before the limit is included completely, or omitted if it is very
/// long. A secret that contains white space may still be truncated.
///
/// ```
/// use qontract_redaction::first_words;
///
/// assert_eq!(first_words("one two three", 5), "one two …");
/// assert_eq!(first_words("one two three", 13), "one two three");
/// ```
pub fn first_words(text: &str, max_chars: usize) -> String {
    let Some((limit, _)) = text.char_indices().nth(max_chars) else { return text.to_owned() };
    let rest = &text[limit..];
    let end = match rest.char_indices().find(|(_, one)| one.is_whitespace()) {
        Some((end, _)) if rest[..end].chars().count() <= max_chars.saturating_mul(MAX_EXCESS) => limit + end,
        None if rest.chars().count() <= max_chars.saturating_mul(MAX_EXCESS) => return text.to_owned(),
        _ => text[..limit].rfind(char::is_whitespace).unwrap_or_default(),
    };
    format!("{} …", text[..end].trim_end()).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::first_words;

    fn check(text: &str, max_chars: usize, expect: &str) {
        assert_eq!(first_words(text, max_chars), expect, "{text}");
    }

    #[test]
    fn a_short_text_is_whole() {
        check("", 3, "");
        check("abc", 3, "abc");
        check("äöü", 3, "äöü");
    }

    #[test]
    fn a_word_is_shown_to_its_end() {
        check("ab cdef gh", 4, "ab cdef …");
        check("ab cdef gh", 3, "ab cdef …");
        check("ab cdef gh", 2, "ab …");
        check("ab cdef", 4, "ab cdef");
        check("ab\ncdef\ngh", 4, "ab\ncdef …");
    }

    #[test]
    fn a_very_long_word_is_not_shown() {
        let word = |length: usize| "x".repeat(length);
        check(&format!("ab {} c", word(1 + 32)), 4, &format!("ab {} …", word(33)));
        check(&format!("ab {} c", word(2 + 32)), 4, "ab …");
        check(&format!("ab {}", word(1 + 32)), 4, &format!("ab {}", word(33)));
        check(&format!("ab {}", word(2 + 32)), 4, "ab …");
        check(&word(100), 4, "…");
    }
}
