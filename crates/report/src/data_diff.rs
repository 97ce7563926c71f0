//! Renders the differences between two bundles, as text for a terminal and as Markdown.

mod markdown;
mod model;
mod text;

use qontract_bundle::Layout;

pub use markdown::render as markdown;
pub use model::{FileEntry, files};
pub use text::render as text;

/// The two sides of a comparison, with a source locator for each.
#[derive(Clone, Copy)]
pub struct DiffSides<'a> {
    /// The side before the change.
    pub base: SourceLocator<'a>,
    /// The side after the change.
    pub head: SourceLocator<'a>,
    /// The layout of the data repo.
    pub layout: &'a Layout,
}

/// Resolves a file and a JSON pointer of one side to `file:line`.
#[derive(Clone, Copy)]
pub struct SourceLocator<'a>(pub &'a dyn Fn(&str, &str) -> String);

impl SourceLocator<'_> {
    fn locate(&self, file: &str, pointer: &str) -> String {
        (self.0)(file, pointer)
    }
}

/// Limits on the output per file.
#[derive(Clone, Copy, Debug)]
pub struct DiffLimits {
    /// Maximum number of lines of a changed file.
    pub changed_lines: usize,
    /// Maximum number of lines of an added or removed file.
    pub whole_lines: usize,
    /// Maximum number of characters of a value.
    pub value_chars: usize,
}

impl DiffLimits {
    /// No limits.
    pub const FULL: Self =
        Self { changed_lines: usize::MAX, whole_lines: usize::MAX, value_chars: usize::MAX };
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self { changed_lines: 100, whole_lines: 12, value_chars: 100 }
    }
}
