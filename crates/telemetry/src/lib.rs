//! Observability of a process: activities in progress ([`activity`]), log lines ([`log`]), and measurements
//! and metrics ([`measure`], [`metrics`], [`server_metrics`], [`data_validity`], [`journal_metrics`]).
//!
//! **Invariant:** no output contains a secret. Callers must pass only redacted strings.

pub mod activity;
pub mod data_validity;
pub mod journal_metrics;
pub mod log;
pub mod measure;
pub mod metrics;
pub mod server_metrics;
