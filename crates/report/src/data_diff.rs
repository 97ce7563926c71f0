//! The differences between two bundles, as text for a terminal and as Markdown.

mod markdown;
mod model;
mod text;

use qontract_bundle::Layout;

pub use markdown::render as markdown;
pub use model::{FileEntry, files};
pub use text::render as text;

/// What is compared with what: where the lines of both sides come from.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// The side before the change.
    pub base: Texts<'a>,
    /// The side after it.
    pub head: Texts<'a>,
    /// Where the parts of a data repo are.
    pub layout: &'a Layout,
}

/// The texts of a side: `file:line` of a file and a JSON pointer.
#[derive(Clone, Copy)]
pub struct Texts<'a>(pub &'a dyn Fn(&str, &str) -> String);

impl Texts<'_> {
    fn place(&self, file: &str, pointer: &str) -> String {
        (self.0)(file, pointer)
    }
}

/// How much of each file is shown.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    /// The most lines of a changed file.
    pub changed: usize,
    /// The most lines of a file that is added or removed.
    pub whole: usize,
    /// The most characters of a value.
    pub value: usize,
}

impl Fold {
    /// Everything.
    pub const FULL: Self = Self { changed: usize::MAX, whole: usize::MAX, value: usize::MAX };
}

impl Default for Fold {
    fn default() -> Self {
        Self { changed: 100, whole: 12, value: 100 }
    }
}
