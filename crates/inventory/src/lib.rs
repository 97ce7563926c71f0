//! Kubernetes objects as the inventory knows them. Pure: values in, values out.
//!
//! What is here so far is the canonical form of an object and its hash, which is kept on every object that we own: a live
//! cluster of the established runtime is taken over without applying anything again.

mod canonical;
mod python;

pub use canonical::{Canonical, NotAnObject, canonical};
