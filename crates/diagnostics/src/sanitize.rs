//! Sanitizes text from the data before it is displayed on a terminal, in a page or in a comment.
//!
//! A character is *unsafe* if it controls the program that displays it, or if it makes the displayed text
//! differ from the text that a program reads:
//!
//! | characters | effect |
//! |---|---|
//! | C0, DEL, C1 | control terminals: colours, titles, the cursor, the clipboard |
//! | U+061C, U+200E–200F, U+202A–202E, U+2066–2069 | change the direction, so that text is displayed in a different order |
//! | U+2028, U+2029 | break lines where programs see none |
//! | U+00AD, U+180E, U+200B, U+2060–2064, U+206A–206F, U+FEFF, U+FFF9–FFFB, U+E0000–E0FFF without variation selectors | are invisible: two names look the same, or contain hidden text |
//! | U+200C, U+200D next to ASCII, or at an end | join letters; ASCII letters do not join |
//!
//! The two joiners are allowed between other characters, because Persian, Indic scripts and emoji need them.
//! Variation selectors are allowed everywhere: they select a form of the character before them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes unsafe characters, including line breaks: a file name or a key must not control the terminal or
/// start a new line.
///
/// ```
/// use qontract_diagnostics::sanitize;
/// assert_eq!(sanitize("plain"), "plain");
/// assert_eq!(sanitize("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
/// assert_eq!(sanitize("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
/// ```
pub fn sanitize(text: &str) -> Cow<'_, str> {
    escape_unsafe(text, |_| false, |character, out| out.extend(character.escape_default()))
}

/// Escapes unsafe characters, but keeps line breaks and tabs.
///
/// An additional protection besides [`sanitize`], for text that combines data with lines of the program.
///
/// ```
/// assert_eq!(qontract_diagnostics::sanitize_lines("a\r\n\tb\u{9b}c\rd"), "a\r\n\tb\\u{9b}c\\rd");
/// ```
pub fn sanitize_lines(text: &str) -> Cow<'_, str> {
    escape_unsafe(text, is_line_break_or_tab, |character, out| out.extend(character.escape_default()))
}

/// Escapes unsafe characters in a JSON text with JSON escapes. The value is unchanged, because unsafe
/// characters occur in JSON only in strings.
///
/// ```
/// let json = "{\n  \"a\": \"\u{7f}\u{202e}\u{e0041}\"\n}";
/// let shown = qontract_diagnostics::sanitize_json(json);
/// assert_eq!(shown, "{\n  \"a\": \"\\u007f\\u202e\\udb40\\udc41\"\n}");
/// ```
pub fn sanitize_json(json: &str) -> Cow<'_, str> {
    escape_unsafe(json, is_line_break_or_tab, |character, out| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Escapes unsafe characters in a double-quoted YAML scalar with YAML escapes. The value is unchanged.
///
/// ```
/// let shown = qontract_diagnostics::sanitize_yaml("\"\u{7f}\u{202e}\u{e0041}\"");
/// assert_eq!(shown, "\"\\x7f\\u202e\\U000e0041\"");
/// ```
pub fn sanitize_yaml(quoted: &str) -> Cow<'_, str> {
    escape_unsafe(
        quoted,
        |_| false,
        |character, out| {
            let _ = match u32::from(character) {
                code @ ..=0xff => write!(out, "\\x{code:02x}"),
                code @ ..=0xffff => write!(out, "\\u{code:04x}"),
                code => write!(out, "\\U{code:08x}"),
            };
        },
    )
}

/// Whether [`sanitize`] returns the text unchanged.
///
/// ```
/// assert!(qontract_diagnostics::is_safe("ordinary text"));
/// assert!(!qontract_diagnostics::is_safe("two\nlines"));
/// ```
pub fn is_safe(text: &str) -> bool {
    first_unsafe(text, &|_| false).is_none()
}

/// A character with the characters before and after it.
#[derive(Clone, Copy)]
struct CharContext {
    before: Option<char>,
    character: char,
    after: Option<char>,
}

/// The characters of a text with their offsets.
fn characters(text: &str) -> impl Iterator<Item = (usize, CharContext)> {
    let mut before = None;
    text.char_indices().map(move |(start, character)| {
        let after = text[start + character.len_utf8()..].chars().next();
        let found = CharContext { before, character, after };
        before = Some(character);
        (start, found)
    })
}

/// Whether a character is a line break or a tab, which are kept in multi-line text.
fn is_line_break_or_tab(one: CharContext) -> bool {
    matches!(one.character, '\n' | '\t') || one.character == '\r' && one.after == Some('\n')
}

fn is_unsafe(one: CharContext) -> bool {
    match one.character {
        '\u{200c}' | '\u{200d}' => {
            let joins = |other: Option<char>| other.is_some_and(|other| !other.is_ascii());
            !joins(one.before) || !joins(one.after)
        }
        character if character.is_ascii() => character.is_ascii_control(),
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => true,
        _ => false,
    }
}

fn first_unsafe(text: &str, keeps: &impl Fn(CharContext) -> bool) -> Option<usize> {
    // Most text is printable ASCII, which needs no further check.
    let start = text.bytes().position(|byte| !(b' '..=b'~').contains(&byte))?;
    let rest = characters(text).skip_while(|(place, _)| *place < start);
    rest.filter(|(_, one)| is_unsafe(*one) && !keeps(*one)).map(|(place, _)| place).next()
}

fn escape_unsafe(
    text: &str,
    keeps: impl Fn(CharContext) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let Some(start) = first_unsafe(text, &keeps) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..start]);
    for (_, one) in characters(text).skip_while(|(place, _)| *place < start) {
        if is_unsafe(one) && !keeps(one) {
            escape(one.character, &mut out);
        } else {
            out.push(one.character);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(sanitize(text), expect);
        assert_eq!(is_safe(text), text == expect, "{expect}");
    }

    #[test]
    fn unsafe_characters_and_their_neighbours() {
        let ranges = [
            (0x00, 0x1f),
            (0x7f, 0x9f),
            (0xad, 0xad),
            (0x61c, 0x61c),
            (0x180e, 0x180e),
            (0x200b, 0x200b),
            (0x200e, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x2064),
            (0x2066, 0x206f),
            (0xfeff, 0xfeff),
            (0xfff9, 0xfffb),
            (0xe0000, 0xe00ff),
            (0xe01f0, 0xe0fff),
        ];
        let is_listed = |code: u32| ranges.iter().any(|(from, to)| (*from..=*to).contains(&code));
        for character in (0..=0xf_0000).filter_map(char::from_u32) {
            let code = u32::from(character);
            // The character is between letters that are joined.
            let text = format!("ä{character}ä");
            assert_eq!(!is_safe(&text), is_listed(code), "U+{code:04X}");
            let keeps = matches!(character, '\n' | '\t');
            assert_eq!(sanitize_lines(&text) != text, is_listed(code) && !keeps, "U+{code:04X}");
        }
    }

    #[test]
    fn joiners_are_kept_between_characters_that_join() {
        check(
            "👩\u{200d}💻 می\u{200c}خواهم क\u{94d}\u{200d}ष",
            "👩\u{200d}💻 می\u{200c}خواهم क\u{94d}\u{200d}ष",
        );
        check("pay\u{200d}ments", "pay\\u{200d}ments");
        check("\u{200c}ä", "\\u{200c}ä");
        check("ä\u{200c}", "ä\\u{200c}");
        check("ä\u{200d}b", "ä\\u{200d}b");
        check("b\u{200d}ä", "b\\u{200d}ä");
    }

    #[test]
    fn line_breaks_are_kept_only_in_multi_line_text() {
        check("a\nb\tc", "a\\nb\\tc");
        assert_eq!(sanitize_lines("a\nb\tc\r\n"), "a\nb\tc\r\n");
        assert_eq!(sanitize_lines("a\rb"), "a\\rb");
        assert_eq!(sanitize_lines("end\r"), "end\\r");
    }

    #[test]
    fn json_and_yaml_stay_the_same_values() {
        let hostile = "\u{1b}[31m\u{7f}\u{9b}\u{202e}\u{feff}\u{e0041}ä\u{200d}b";
        let json = serde_json::to_string(hostile).expect("a text");
        let safe = sanitize_json(&json);
        assert!(is_safe(&safe), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).expect("JSON"), hostile);
    }
}
