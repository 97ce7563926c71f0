//! Text from data, made safe for a terminal.

use std::borrow::Cow;

/// `text` with control characters written as escapes: a file's name or a key must not command the terminal.
///
/// ```
/// use qontract_diagnostics::shown;
/// assert_eq!(shown("plain"), "plain");
/// assert_eq!(shown("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().flat_map(|character| {
        let escape = character.is_control().then(|| character.escape_default());
        let plain = escape.is_none().then_some(character);
        escape.into_iter().flatten().chain(plain)
    });
    Cow::Owned(escaped.collect())
}
