//! `[fleet]`: the commands that pods run and that are not part of this binary.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The commands of other programs that pods run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetTable {
    /// The commands, by integration.
    pub commands: BTreeMap<String, FleetCommandTable>,
}

/// A command that pods run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetCommandTable {
    /// The flags by which the command selects shards.
    pub flags: Vec<String>,
    /// The time that a pod of the command gets to end.
    pub grace_seconds: Option<u64>,
}
