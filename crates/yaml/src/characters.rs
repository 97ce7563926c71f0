//! The characters that a file may contain.

use qontract_diagnostics::{Diagnostic, Span, code};

use crate::Syntax;
use crate::limits::Limits;

/// Decodes `bytes`. Fails unless every parser of the language reads the bytes as the same characters.
pub fn check<'a>(syntax: Syntax, bytes: &'a [u8], limits: &Limits) -> Result<&'a str, Box<Diagnostic>> {
    if bytes.len() > limits.bytes {
        let message = format!("the file has {} bytes, more than the {} allowed", bytes.len(), limits.bytes);
        return Err(Box::new(Diagnostic::new(code::YAML_SIZE, message)));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let message = format!("byte {at} is not UTF-8");
        let finding = Diagnostic::new(code::YAML_ENCODING, message).at(Span::new(at, at + 1));
        Box::new(finding.hint("save the file as UTF-8"))
    })?;
    // Almost all files are accepted here, without decoding characters.
    if is_unsuspicious(bytes) {
        return Ok(text);
    }
    for (offset, character) in text.char_indices() {
        // JSON does not treat these characters as line breaks.
        if syntax == Syntax::Json && matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}') {
            continue;
        }
        if let Some(finding) = check_character(offset, character, bytes) {
            return Err(Box::new(finding));
        }
    }
    Ok(text)
}

/// Whether no byte belongs to a character that must be checked: a control character except the line feed, or
/// a character that starts with a byte of U+0085, U+2028, U+FEFF and similar.
fn is_unsuspicious(bytes: &[u8]) -> bool {
    let is_suspicious =
        |byte: u8| (byte < b' ' && byte != b'\n') || matches!(byte, 0x7f | 0xc2 | 0xe2 | 0xef);
    // The chunks have a fixed size, and the loop over a chunk has no early exit, so that the compiler
    // vectorises it.
    let (chunks, rest) = bytes.as_chunks::<64>();
    let any = |chunk: &[u8; 64]| chunk.iter().fold(false, |any, byte| any | is_suspicious(*byte));
    !chunks.iter().any(any) && !rest.iter().any(|byte| is_suspicious(*byte))
}

/// Whether all characters are allowed within a line: no control characters except line feeds and tabs, and no
/// byte order marks.
pub(crate) fn is_valid_charset(text: &str) -> bool {
    let is_legible = |character: char| match character {
        '\u{feff}' => false,
        character => matches!(character, '\n' | '\t' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..),
    };
    is_unsuspicious(text.as_bytes()) || text.chars().all(is_legible)
}

fn check_character(offset: usize, character: char, bytes: &[u8]) -> Option<Diagnostic> {
    let escape = || format!("\\u{:04x}", u32::from(character));
    let span = Span::new(offset, offset + character.len_utf8());
    match character {
        '\r' if bytes.get(offset + 1) == Some(&b'\n') => None,
        '\r' => Some(ambiguous(span, "a carriage return without a line feed", "end lines with a line feed")),
        '\u{85}' | '\u{2028}' | '\u{2029}' => {
            let what = format!("U+{:04X}, which ends a line only in YAML 1.1", u32::from(character));
            Some(ambiguous(span, &what, &format!("write it as \"{}\" in double quotes", escape())))
        }
        '\u{feff}' if offset > 0 => {
            let hint = format!("remove it, or write \"{}\"", escape());
            Some(ambiguous(span, "a byte order mark inside the file", &hint))
        }
        '\n' | '\t' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'.. => None,
        _ => {
            let message = format!("the character U+{:04X} is not allowed in YAML", u32::from(character));
            let hint = format!("remove it, or write it as \"{}\" in double quotes", escape());
            Some(Diagnostic::new(code::YAML_ENCODING, message).at(span).hint(hint))
        }
    }
}

/// Reports a construct on which YAML parsers disagree.
pub(crate) fn ambiguous(span: Span, what: &str, hint: &str) -> Diagnostic {
    Diagnostic::new(code::YAML_AMBIGUOUS, what).at(span).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_skip_the_check_are_allowed() {
        for character in '\0'..=char::MAX {
            let text = format!("x{character}x");
            if is_unsuspicious(text.as_bytes()) {
                assert_eq!(check_character(1, character, text.as_bytes()), None, "{character:?}");
                assert!(is_valid_charset(&text), "{character:?}");
            }
        }
        assert!(is_unsuspicious("a: é 文 😀\n".as_bytes()));
    }

    #[test]
    fn the_valid_charset_is_what_is_allowed_within_a_line() {
        for character in ('\0'..=char::MAX).filter(|character| *character != '\r') {
            let text = format!("x{character}x");
            let allowed = check_character(1, character, text.as_bytes()).is_none();
            let ends_a_line = matches!(character, '\u{2028}' | '\u{2029}');
            assert_eq!(is_valid_charset(&text), allowed || ends_a_line, "{character:?}");
        }
    }
}
