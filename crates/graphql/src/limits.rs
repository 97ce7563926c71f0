//! Request limits. A request that exceeds a limit is rejected with an error, before or during execution.

/// The limits for one request. The defaults allow all known queries of qontract-reconcile's integrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Maximum size of the query string, in bytes.
    pub query_bytes: usize,
    /// Maximum number of selections and directives. The time for validation is quadratic in this number.
    pub selections: usize,
    /// Maximum nesting depth of fields.
    pub depth: usize,
    /// Maximum number of aliased fields.
    pub aliases: usize,
    /// Maximum number of objects in the response, as estimated from the data before execution.
    pub cost: u64,
    /// Maximum size of the response, in bytes.
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
    /// No limits, except for the depth, because the stack is finite.
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
