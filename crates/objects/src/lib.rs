//! Objects of Kubernetes clusters, owned and reconciled: what the rooms of Kubernetes share.
//!
//! A room says which objects its data wants ([`Item`]) and where it looks after them ([`Estate`]); a [`Steward`]
//! answers the other questions of the contract: what is there, what would change, would the cluster take it, do it.
//! What is decided is decided in `qontract-inventory`; what is sent is sent by `qontract-client-kubernetes`.
//!
//! **Invariant:** nothing is written that carries the mark of another integration or of another living caller
//! (`tests/ownership.rs`).

mod act;
mod bindings;
mod collection;
mod contact;
mod estate;
mod fault;
mod flags;
mod grounds;
mod keeper;
mod observe;
mod plain;
mod plan;
mod recycle;

use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;

pub use act::{Action, applied, rehearsed};
pub use bindings::{Granted, Members, Person};
pub use collection::{Collection, without_nulls};
pub use contact::Contact;
pub use estate::{Estate, Item, Managed, Sensitivity};
pub use fault::fault;
pub use flags::{with_cluster_flags, with_take_over_flags};
pub use grounds::{Ground, Grounded, Grounds, Stated, in_namespaces};
pub use keeper::{Keeper, Kept, Plot};
pub use observe::Seen;
pub use plain::{Objects, Plain};
pub use qontract_client_kubernetes::{Cluster, TokenRef};

/// What a room declares: shards that are reached by their cluster.
pub type Declared<S> = qontract_runtime::state::Declared<(), Cluster, S>;

/// Looks after the objects of an integration.
#[derive(Clone)]
pub struct Steward {
    kubernetes: Arc<dyn Kubernetes>,
}

impl Steward {
    /// A steward on these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { kubernetes }
    }
}
