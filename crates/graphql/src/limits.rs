//! Limits of a request. A request beyond a limit is refused with a clear error, before or during execution.

/// Limits of one request. The defaults allow every known query of the established integrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Maximum size of the request's text, in bytes.
    pub query_bytes: usize,
    /// Maximum number of selections and directives: validation takes time in their square.
    pub selections: usize,
    /// Maximum nesting of fields.
    pub depth: usize,
    /// Maximum number of aliased fields.
    pub aliases: usize,
    /// Maximum number of objects in the answer, as estimated from the data before execution.
    pub cost: u64,
    /// Maximum size of the answer, in bytes.
    pub answer_bytes: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            query_bytes: 100 << 10,
            selections: 2_000,
            depth: 40,
            aliases: 200,
            cost: 20_000_000,
            answer_bytes: 256 << 20,
        }
    }
}

impl QueryLimits {
    /// No limits; only the depth stays limited, because stacks are finite.
    pub fn none() -> Self {
        let most = usize::MAX;
        Self {
            query_bytes: most,
            selections: most,
            depth: 200,
            aliases: most,
            cost: u64::MAX,
            answer_bytes: most,
        }
    }
}
