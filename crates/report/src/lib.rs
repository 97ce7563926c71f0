//! Plans as people and programs read them.
//!
//! A [`PlanReport`] is what the runs of one or more integrations would change, or changed. It is plain data, rendered as [text](text::render), [Markdown](markdown::render) or
//! [JSON](PlanReport::to_json). The JSON form is documented by `docs/reference/plan.schema.json` and versioned by [`SCHEMA_VERSION`].
//!
//! This crate is pure: no clock, no network, no files. What calls it collects the runs.

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

/// How files are called in text for people.
pub type FileName<'a> = &'a dyn Fn(&str) -> String;

pub use data_use::DataUse;
pub use invalid::{DataSide, FindingReport, InvalidData, MAX_FINDINGS};
pub use model::{
    ChangeAction, DisabledShards, FieldAction, IntegrationReport, Location, PlanReport, ReportStatus,
    ReportedChange, ReportedFault, ReportedField, ReportedWait, RevisionInfo, SCHEMA_VERSION, StepResult,
    Totals, UnaffectedIntegration, UncheckedIntegration,
};
