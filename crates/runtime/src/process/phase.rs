//! The phases of a program: the requests that it responds to.

use std::fmt;

use qontract_access::Access;

/// A phase of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPhase {
    /// It describes itself.
    Describe,
    /// It declares its shards for the data.
    Declare,
    /// It reads the target, and plans a shard.
    Plan,
    /// It prints the desired state of a shard.
    Print,
    /// It applies a step.
    Apply,
}

impl ProgramPhase {
    /// The name of the phase: the last argument of the executable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Declare => "declare",
            Self::Plan => "plan",
            Self::Print => "print",
            Self::Apply => "apply",
        }
    }

    /// How the phase accesses the target system; `None` if it does not contact it. Only a phase that writes
    /// gets write credentials.
    pub fn access(self) -> Option<Access> {
        match self {
            Self::Describe | Self::Declare => None,
            Self::Plan | Self::Print => Some(Access::Read),
            Self::Apply => Some(Access::Write),
        }
    }
}

impl fmt::Display for ProgramPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
