//! The objects that namespaces name in the data (`openshiftResources`), from files, templates and secrets.
//!
//! Four integrations share this: each handles a [`ProviderGroup`], and owns the objects that its providers give. What follows from the data
//! alone is declared; what needs a look-up is resolved, and is its address in the declared state.
//!
//! **Invariant:** an object whose text cannot be told is never taken for unwanted: nothing is removed where it might be.

pub mod check;
mod declare;
pub(crate) mod entry;
pub(crate) mod parse;
mod provider_group;
pub(crate) mod query;
pub(crate) mod resolve;
mod route;
pub(crate) mod rule;
mod secret;

pub use entry::{DeclaredResources, ResourceEntry};
pub use provider_group::{NamespaceResources, ProviderGroup, ResourceProviders};
