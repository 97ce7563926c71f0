//! The kinds of changes that runs make to target systems.

use serde::{Deserialize, Serialize};

/// The kind of change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The object is created.
    Add,
    /// The object is updated in place.
    Change,
    /// The object is removed and created again.
    Replace,
    /// The object is removed.
    Remove,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Add, Self::Change, Self::Replace, Self::Remove];

    /// The name of the kind in records and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Remove => "remove",
        }
    }

    /// The sign in front of a change in a printed plan.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Change => "~",
            Self::Replace => "±",
            Self::Remove => "-",
        }
    }

    /// Whether the change removes an object.
    pub fn removes(self) -> bool {
        match self {
            Self::Replace | Self::Remove => true,
            Self::Add | Self::Change => false,
        }
    }
}
