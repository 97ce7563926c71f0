//! The objects that namespaces list in the data (`openshiftResources`), from files, templates and secrets.
//!
//! Four integrations share this: each handles a [`ProviderGroup`] and owns the objects of its providers.
//! Objects that follow from the data alone are part of the declared state; objects that need a look-up are
//! resolved later, and the declared state holds their address.
//!
//! **Invariant:** an object whose content is unknown is never treated as undeclared: nothing that it might be
//! is removed.

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
