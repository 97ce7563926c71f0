//! Renders plans, data diffs, listings and the status table for people and programs.
//!
//! A [`PlanReport`] contains the changes that the runs of one or more integrations would make, or made. It is
//! plain data and is rendered as [text](text::render), [Markdown](markdown::render) or
//! [JSON](PlanReport::to_json). The JSON form is documented by `docs/reference/plan.schema.json` and
//! versioned by [`SCHEMA_VERSION`].
//!
//! This crate is pure: no clock, no network, no files. The caller collects the runs.

pub mod affected;
pub mod data_diff;
mod data_use;
mod invalid;
pub mod line_diff;
pub mod listing;
pub mod markdown;
mod model;
pub mod status_table;
pub mod table;
pub mod text;

/// Maps the path of a file to its display name.
pub type FileName<'a> = &'a dyn Fn(&str) -> String;

pub use data_use::DataUse;
pub use invalid::{DataSide, FindingReport, InvalidData, MAX_FINDINGS};
pub use model::{
    DeclaredField, DisabledShards, FieldAction, IntegrationReport, Location, PlanReport, ReleasedEntry,
    ReportStatus, ReportedChange, ReportedFault, ReportedField, ReportedWait, RevisionInfo, SCHEMA_VERSION,
    StepResult, Totals, UnaffectedIntegration, UncheckedIntegration, UnplannedEntry,
};
