//! How much a request may ask for. What is over a limit is refused with a clear error, before or while it is answered.

/// Limits of one request. The defaults let every known query of the established integrations through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the request's text.
    pub query_bytes: usize,
    /// How many selections and directives a request may have: checking it takes time in their square.
    pub selections: usize,
    /// How deep fields may be nested.
    pub depth: usize,
    /// How many fields of a request may have another name in the answer.
    pub aliases: usize,
    /// How many objects the answer may have, as estimated from the data before it is made.
    pub cost: u64,
    /// Bytes of the answer.
    pub answer_bytes: usize,
}

impl Default for Limits {
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

impl Limits {
    /// No limits but those of the machine; depth stays limited, because stacks are.
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
