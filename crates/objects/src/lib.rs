//! Reconciles owned Kubernetes objects: the adapter for integrations, and the `openshiftResources` of
//! namespaces.
//!
//! An [`ObjectIntegration`] declares the desired objects of each shard; [`ManagedObjects`] makes it an
//! integration that observes, plans, rehearses and applies. [`ShardBuilder`] builds shards from the results
//! of queries that spread the [`fragments`]. `qontract-inventory` makes the decisions;
//! `qontract-client-kubernetes` sends the requests.
//!
//! **Invariant:** an object that carries the mark of another integration, or of another existing caller, is
//! never written (`tests/suite/ownership.rs`).

mod cluster_access;
mod declared;
mod duplicates;
mod flags;
pub mod fragments;
mod integration;
mod label;
mod namespaces;
mod object_set;
mod print;
mod program;
mod reconcile;
mod recorded;
pub mod resources;
mod role_members;
mod scope;
pub mod templates;

pub use declared::{DeclaredObjects, ObjectName};
pub use flags::{
    NO_TAKE_OVER, PRINT_ONLY, cluster_integration, namespace_integration, with_cluster_flags,
    with_print_flag, with_take_over_flags,
};
pub use fragments::{ClusterAccess, NamespaceTarget};
pub use integration::{
    DeclaredObject, ManagedObjects, ObjectIntegration, ObjectShardView, ObjectState, ResolveContext,
    ScopeSpec, object_meta,
};
pub use label::check_label;
pub use namespaces::{LocatedNamespace, LocatedState, ShardBuilder, check_namespace_name, in_namespaces};
pub use object_set::{ObjectSet, without_nulls};
pub use program::ObjectProgram;
pub use qontract_client_kubernetes::{Cluster, Kind, TokenRef};
pub use qontract_inventory::{Callers, Replacement, is_quantity};
pub use reconcile::{
    ExpectedConflict, LiveObject, ObjectAction, ObjectReconciler, apply_result, cluster_fault, plan_objects,
    rehearsal_result,
};
pub use recorded::RecordedObjects;
pub use role_members::{Grant, expiration_date};
pub use scope::{DesiredObject, ManagedKind, ManagedScope, Sensitivity, WriteVersion};

/// The declared state of an integration whose shards are reached through their cluster.
pub type Declared<S> = qontract_runtime::state::DeclaredState<(), Cluster, S>;
