//! What a process tells about itself: what it is doing ([`activity`]), what happened ([`log`]), and how often and how long
//! ([`measure`], [`metrics`]).
//!
//! **Invariant:** nothing that is told holds a secret: what comes here is text that was made to be shown.

pub mod activity;
pub mod log;
pub mod measure;
pub mod metrics;
pub mod served;
