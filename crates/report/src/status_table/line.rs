//! A terminal line of styled parts, truncated to a width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The style of a line part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// The default style.
    Plain,
    /// Bold text.
    Bold,
    /// Dimmed text.
    Dim,
    /// Red, for states that need attention.
    Red,
    /// Yellow, for states that may need attention.
    Yellow,
    /// Green, for success.
    Green,
}

impl LineStyle {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Red => "\x1b[1;31m",
            Self::Yellow => "\x1b[33m",
            Self::Green => "\x1b[32m",
        }
    }
}

/// A part of a line, in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePart {
    text: String,
    style: LineStyle,
}

impl LinePart {
    /// Creates a part in this style.
    pub fn new(text: impl Into<String>, style: LineStyle) -> Self {
        Self { text: text.into(), style }
    }

    /// Creates a part without a style.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, LineStyle::Plain)
    }

    /// The width in columns.
    pub fn width(&self) -> usize {
        width_of(&self.text)
    }
}

/// A line of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusLine(Vec<LinePart>);

impl StatusLine {
    /// Creates a line from parts, truncated to `width` columns.
    pub fn new(parts: impl IntoIterator<Item = LinePart>, width: usize) -> Self {
        let (mut left, mut fitting) = (width, Vec::new());
        for LinePart { text, style } in parts {
            let text = cut(&text, left);
            left -= width_of(&text);
            fitting.push(LinePart { text, style });
        }
        Self(fitting)
    }

    /// Creates a line from one part, truncated to `width` columns.
    pub fn of(text: &str, style: LineStyle, width: usize) -> Self {
        Self::new([LinePart::new(text, style)], width)
    }

    /// Creates a line without styles; it is not truncated.
    pub fn plain(text: &str) -> Self {
        Self(vec![LinePart::plain(text)])
    }

    /// The text without styles.
    pub fn text(&self) -> String {
        self.0.iter().map(|part| part.text.as_str()).collect()
    }

    /// The width in columns.
    pub fn width(&self) -> usize {
        self.0.iter().map(LinePart::width).sum()
    }

    /// The text with terminal escape codes for its styles.
    pub fn styled(&self) -> String {
        let mut text = String::new();
        for part in self.0.iter().filter(|part| !part.text.is_empty()) {
            match part.style.code() {
                "" => text.push_str(&part.text),
                code => text.push_str(&format!("{code}{}\x1b[0m", part.text)),
            }
        }
        text
    }
}

/// The width of a string in terminal columns.
pub fn width_of(text: &str) -> usize {
    text.width()
}

/// Truncates a string to `width` columns; a truncated string ends with `…`.
pub fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let (mut cut, mut left) = (String::new(), width.saturating_sub(1));
    for letter in text.chars() {
        let wide = letter.width().unwrap_or_default();
        if wide > left {
            break;
        }
        left -= wide;
        cut.push(letter);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_truncated_by_columns() {
        let check = |text: &str, width: usize, expect: &str| assert_eq!(cut(text, width), expect, "{text}");
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("abcd", 1, "…");
        check("abcd", 0, "");
        // Characters that are two columns wide.
        check("日本語", 6, "日本語");
        check("日本語", 5, "日本…");
        check("日本語", 4, "日…");
    }

    #[test]
    fn a_line_has_the_styles_of_its_parts() {
        let line = StatusLine::new(
            [
                LinePart::new("ok", LineStyle::Green),
                LinePart::plain(" abc"),
                LinePart::new("x", LineStyle::Red),
            ],
            6,
        );
        assert_eq!(line.text(), "ok abc");
        assert_eq!(line.width(), 6);
        assert_eq!(line.styled(), "\x1b[32mok\x1b[0m abc");
    }
}
