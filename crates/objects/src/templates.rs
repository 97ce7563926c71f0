//! Renders templates: from the data alone where possible, with lookups where needed.

pub(crate) mod deferred;
pub(crate) mod entry_error;
pub(crate) mod lookups;
pub(crate) mod parse;
pub mod preview;
pub(crate) mod query_scan;
pub(crate) mod render;
pub(crate) mod variables;

pub use query_scan::TEMPLATES_THAT_QUERY;

pub use lookups::{AllowList, ExternalLookups, HttpLookups, LookupLimits};
