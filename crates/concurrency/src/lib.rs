//! Concurrency primitives: a limiter, and a map that deduplicates concurrent computations.
//!
//! [`Limiter`] bounds the number of concurrent tasks and of tasks that wait; [`OnceMap`] computes a value
//! once per key while other callers of the same key wait for it (single-flight).

mod limiter;
mod once_map;

pub use limiter::{LimitError, Limiter, Permit};
pub use once_map::{OnceEntry, OnceMap};
