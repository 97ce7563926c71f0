//! A template as it is given: its path, its text, and how its tags are written.

/// How tags are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `{{ }}`, `{% %}`, `{# #}`.
    #[default]
    Jinja2,
    /// `{{{ }}}`, `{{% %}}`, `{{# #}}`.
    ExtraCurly,
}

/// What becomes of whitespace around tags; by default it all stays, except for one line break at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whitespace {
    /// The line break after a block goes.
    pub trim_blocks: bool,
    /// Blanks before a block, from the beginning of its line, go.
    pub lstrip_blocks: bool,
    /// The line break at the end of the file stays.
    pub keep_trailing_newline: bool,
}

/// A template as it is given.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Where it is from; faults name it.
    pub path: &'a str,
    /// The text.
    pub text: &'a str,
    /// How tags are written.
    pub dialect: Dialect,
    /// What becomes of whitespace around tags.
    pub whitespace: Whitespace,
}

impl<'a> Source<'a> {
    /// A template with plain tags.
    pub fn new(path: &'a str, text: &'a str) -> Self {
        Self { path, text, dialect: Dialect::default(), whitespace: Whitespace::default() }
    }

    /// The same with other tags.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }
}
