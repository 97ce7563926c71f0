//! The objects that namespaces name in the data (`openshiftResources`), from files, templates and secrets.
//!
//! Four rooms share this: each is a [`Family`] of providers, and owns the objects that they give. What follows from the data
//! alone is declared; what lies outside ([`Outside`]) is looked up in `resolve`, and is its address in the declared state.
//!
//! **Invariant:** an object whose text cannot be told is never taken for unwanted: nothing is removed where it might be.

mod asking;
pub mod check;
mod declare;
mod family;
mod item;
mod outside;
mod parse;
pub mod preview;
pub mod query;
mod render;
mod resolve;
mod route;
mod rule;
mod secret;
mod variables;

pub use family::{Family, Resources};
pub use item::{Item, Named};
pub use outside::{Allowed, Limits, Outside};
