//! Kubernetes objects, owned and reconciled: the adapter for integrations, and the objects that namespaces name.
//!
//! An [`ObjectIntegration`] declares which objects its data wants, shard by shard; [`ManagedObjects`] makes an integration of it, which observes,
//! plans, rehearses and applies. [`ShardBuilder`] builds shards from the answers to queries, which spread the [`fragments`]. What is
//! decided is decided in `qontract-inventory`; what is sent is sent by `qontract-client-kubernetes`.
//!
//! **Invariant:** nothing is written that carries the mark of another integration or of another living caller
//! (`tests/ownership.rs`).

mod cluster_access;
mod declared;
mod flags;
pub mod fragments;
mod integration;
mod namespaces;
mod object_set;
mod reconcile;
pub mod resources;
mod role_members;
mod scope;
pub mod templates;

pub use declared::DeclaredObjects;
pub use flags::{NO_TAKE_OVER, about_clusters, about_namespaces, with_cluster_flags, with_take_over_flags};
pub use fragments::{ClusterAccess, NamespaceTarget};
pub use integration::{ManagedObjects, ObjectIntegration, ObjectState, ResolveContext, ScopeSpec, ShardView};
pub use namespaces::{LocatedNamespace, ShardBuilder, WithProvenance, in_namespaces};
pub use object_set::{ObjectSet, without_nulls};
pub use qontract_client_kubernetes::{Cluster, TokenRef};
pub use reconcile::{Action, LiveObject, ObjectReconciler, applied, fault, rehearsed};
pub use role_members::Grant;
pub use scope::{DesiredObject, ManagedKind, ManagedScope, Sensitivity};

/// What an integration declares: shards that are reached by their cluster.
pub type Declared<S> = qontract_runtime::state::Declared<(), Cluster, S>;
