//! The source of a template: its path, its text, and the dialect of its tags.

/// The delimiters of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `{{ }}`, `{% %}`, `{# #}`.
    #[default]
    Jinja2,
    /// `{{{ }}}`, `{{% %}}`, `{{# #}}`.
    ExtraCurly,
}

/// Whitespace control around tags. By default, all whitespace is kept except one line break at the end of the
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whitespace {
    /// Remove the line break after a block.
    pub trim_blocks: bool,
    /// Remove whitespace before a block, from the start of its line.
    pub lstrip_blocks: bool,
    /// Keep the line break at the end of the file.
    pub keep_trailing_newline: bool,
}

/// The source of a template.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The path, for faults.
    pub path: &'a str,
    /// The text.
    pub text: &'a str,
    /// The delimiters of tags.
    pub dialect: Dialect,
    /// Whitespace control around tags.
    pub whitespace: Whitespace,
}

impl<'a> Source<'a> {
    /// A template with Jinja2's default delimiters.
    pub fn new(path: &'a str, text: &'a str) -> Self {
        Self { path, text, dialect: Dialect::default(), whitespace: Whitespace::default() }
    }

    /// Sets the dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }
}
