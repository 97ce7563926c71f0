//! Resource limits of a rendering.

/// Resource limits of one rendering. If a limit is exceeded, rendering ends with a fault of kind
/// [`Limit`](crate::Kind::Limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderLimits {
    /// Maximum size of the template in bytes.
    pub source: usize,
    /// Maximum size in bytes of the output, and of any intermediate string.
    pub output: usize,
    /// Maximum number of steps: each expression costs one step and further steps in proportion to the size of
    /// its result.
    pub steps: u64,
    /// Maximum nesting depth of expressions, statements and macro calls.
    pub depth: usize,
}

impl Default for RenderLimits {
    fn default() -> Self {
        Self { source: 1 << 20, output: 8 << 20, steps: 5_000_000, depth: 120 }
    }
}
