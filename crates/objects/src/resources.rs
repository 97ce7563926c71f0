//! The objects that namespaces list in the data (`openshiftResources`), from files, templates and secrets.
//!
//! Four integrations share this: each handles a [`ProviderGroup`] and owns the objects of its providers.
//! Objects that follow from the data alone are part of the declared state. Objects that need a lookup are
//! resolved later; for these, the declared state holds the address.
//!
//! **Invariant:** an object whose content is unknown is never treated as undeclared: no live object that it
//! might describe is removed.

pub mod check;
mod declare;
mod entry;
mod provider_group;
mod query;
mod resolve;
mod route;
mod rule;
mod secret;
mod variables;

pub use entry::{DeclaredResources, ResourceEntry, entries};
pub use provider_group::{NamespaceResources, ProviderGroup, ResourceProviders};
pub use rule::with_source_urls;
