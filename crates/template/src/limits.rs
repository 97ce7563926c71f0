//! What a template may cost.

/// What one rendering may cost; past it, it ends with a fault of kind [`Limit`](crate::Kind::Limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the template.
    pub source: usize,
    /// Bytes of what is rendered, and of any text on the way.
    pub output: usize,
    /// Steps: each expression costs one, and what it makes costs by its size.
    pub steps: u64,
    /// How deeply expressions, statements and calls of macros may be nested.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { source: 1 << 20, output: 8 << 20, steps: 5_000_000, depth: 120 }
    }
}
