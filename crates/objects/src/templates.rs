//! Renders templates: from the data alone where possible, with look-ups where needed.

pub(crate) mod lookups;
pub mod preview;
pub(crate) mod query_scan;
pub(crate) mod render;
pub(crate) mod variables;

pub use lookups::{AllowList, ExternalLookups, LookupLimits};
