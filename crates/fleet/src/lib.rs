//! The fleet: which shards of which integrations run, and as which Kubernetes objects. Pure.

pub mod balance;
