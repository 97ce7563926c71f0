//! Renders the differences between two bundles, as text for a terminal and as Markdown.

mod markdown;
mod model;
mod text;

use qontract_bundle::Layout;

pub use markdown::render as markdown;
pub use model::{FileEntry, files};
pub use text::render as text;

/// The two sides of a comparison, with their source locations.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// The side before the change.
    pub base: Texts<'a>,
    /// The side after the change.
    pub head: Texts<'a>,
    /// The layout of the data repo.
    pub layout: &'a Layout,
}

/// Resolves a file and a JSON pointer of one side to `file:line`.
#[derive(Clone, Copy)]
pub struct Texts<'a>(pub &'a dyn Fn(&str, &str) -> String);

impl Texts<'_> {
    fn place(&self, file: &str, pointer: &str) -> String {
        (self.0)(file, pointer)
    }
}

/// Limits on how much of each file is shown.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    /// Maximum number of lines of a changed file.
    pub changed: usize,
    /// Maximum number of lines of an added or removed file.
    pub whole: usize,
    /// Maximum number of characters of a value.
    pub value: usize,
}

impl Fold {
    /// No limits.
    pub const FULL: Self = Self { changed: usize::MAX, whole: usize::MAX, value: usize::MAX };
}

impl Default for Fold {
    fn default() -> Self {
        Self { changed: 100, whole: 12, value: 100 }
    }
}
