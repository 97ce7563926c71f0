//! The fleet: which shards of which integrations run, and as which Kubernetes objects. Pure.
//!
//! The data describes where an integration runs ([`model`]) and how its work is divided ([`ShardingStrategy`]). A shard
//! becomes Kubernetes objects ([`manifest`]), with settings of its environment ([`parameters`]).

pub mod balance;
pub mod chart_values;
mod check;
pub mod commands;
mod finding;
pub mod manifest;
pub mod model;
pub mod names;
pub mod parameters;
mod strategy;

pub use check::check_spec;
pub use commands::{CommandInfo, Commands};
pub use finding::{Finding, FindingLevel};
pub use strategy::{
    Auto, AutoSharding, FixedCount, KeySource, MAX_SHARDS, PerAwsAccount, PerNamespaceLabel,
    PerOcmOrganization, PerOpenshiftCluster, STRATEGIES, ShardSpec, ShardingContext, ShardingError,
    ShardingStrategy, Shards, strategy_of,
};
