//! Text with terminal styles.

use crate::render::{Colour, render_all, render_first};
use crate::report::{Report, Sources};
use crate::sanitize::sanitize_lines;

/// Text with terminal styles, in which data is escaped.
///
/// Only this module creates such text: findings are rendered with their styles, and all other text is added
/// with [`push`](Self::push), which escapes unsafe characters. Text without styles is printed through
/// [`sanitize_lines`], which escapes all styles.
#[derive(Clone, Debug, Default)]
pub struct StyledText(String);

/// The style of a piece of text on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// The default style of the terminal.
    Plain,
    /// A heading.
    Bold,
    /// Text that is less important than its context.
    Dim,
    /// An addition.
    Added,
    /// A change.
    Changed,
    /// A removal.
    Removed,
    /// An error.
    Error,
    /// A warning.
    Warning,
}

impl TextStyle {
    /// The parameters of the escape sequence that starts the style.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Added => Some("32"),
            Self::Changed => Some("33"),
            Self::Removed => Some("31"),
            Self::Error => Some("1;31"),
            Self::Warning => Some("1;33"),
        }
    }
}

impl StyledText {
    /// All findings of a report, followed by a line with the number of errors and warnings.
    pub fn report(report: &Report, sources: &dyn Sources) -> Self {
        Self(format!("{}{}\n", render_all(report, sources, Colour::Styled), report.summary()))
    }

    /// The first `max` findings of a report, with an empty line after each.
    pub fn first(report: &Report, max: usize, sources: &dyn Sources) -> Self {
        Self(render_first(report, max, sources, Colour::Styled))
    }

    /// Adds text in a style. Unsafe characters are escaped; lines and tabs are kept.
    ///
    /// ```
    /// use qontract_diagnostics::{TextStyle, StyledText};
    /// let mut text = StyledText::default();
    /// text.push(TextStyle::Added, "+ \u{1b}[7mx");
    /// text.push(TextStyle::Plain, " y\n");
    /// assert_eq!(text.as_str(), "\u{1b}[32m+ \\u{1b}[7mx\u{1b}[0m y\n");
    /// assert_eq!(text.plain(), "+ \\u{1b}[7mx y\n");
    /// ```
    pub fn push(&mut self, style: TextStyle, text: &str) {
        let text = sanitize_lines(text);
        match style.code() {
            Some(code) if !text.is_empty() => {
                self.0.extend(["\u{1b}[", code, "m", &text, "\u{1b}[0m"]);
            }
            _ => self.0.push_str(&text),
        }
    }

    /// Adds another text with its styles.
    pub fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, for a terminal.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text without styles.
    pub fn plain(&self) -> String {
        let mut pieces = self.0.split("\u{1b}[");
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            // Data is escaped, so every escape character starts a style that this type added.
            out.push_str(piece.split_once('m').map_or("", |(_, text)| text));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{StyledText, TextStyle};

    #[test]
    fn every_style_ends_and_leaves_the_text_unchanged() {
        let styles = [
            TextStyle::Plain,
            TextStyle::Bold,
            TextStyle::Dim,
            TextStyle::Added,
            TextStyle::Changed,
            TextStyle::Removed,
            TextStyle::Error,
            TextStyle::Warning,
        ];
        let mut text = StyledText::default();
        assert!(text.is_empty());
        for style in styles {
            text.push(style, "");
        }
        assert!(text.is_empty(), "empty text adds no style");
        for style in styles {
            text.push(style, "m[1m\n");
        }
        assert_eq!(text.plain(), "m[1m\n".repeat(styles.len()));
        let (started, ended) =
            (text.as_str().matches("\u{1b}[").count(), text.as_str().matches("\u{1b}[0m").count());
        assert_eq!((started, ended), (2 * (styles.len() - 1), styles.len() - 1));
        let mut both = text.clone();
        both.append(&text);
        assert_eq!(both.plain(), "m[1m\n".repeat(2 * styles.len()));
    }
}
