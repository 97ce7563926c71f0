//! Concurrency primitives: a limiter, a map that deduplicates concurrent computations, cancellation, and blocking
//! work.
//!
//! [`Limiter`] bounds the number of concurrent tasks and of waiting tasks; [`OnceMap`] computes a value once
//! per key while other callers of the same key wait for it (single-flight). [`CancelOnDrop`] cancels work on
//! another thread when its caller is dropped. [`run_blocking`] runs blocking work outside of the async threads.

mod blocking;
mod cancellation;
mod limiter;
mod once_map;

pub use blocking::run_blocking;
pub use cancellation::{CancelOnDrop, Cancellation};
pub use limiter::{LimitError, Limiter, Permit};
pub use once_map::{OnceEntry, OnceMap};
