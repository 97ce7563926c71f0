//! Observability of a process: activities in progress ([`activity`]), log lines ([`log`]), and measurements
//! and metrics ([`measure`], [`metrics`]).
//!
//! **Invariant:** no output contains a secret: callers pass only text that is meant to be shown.

pub mod activity;
pub mod log;
pub mod measure;
pub mod metrics;
pub mod server_metrics;
