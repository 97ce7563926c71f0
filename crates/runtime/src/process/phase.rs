//! The phases of a program: the requests that it responds to.

use std::fmt;

use qontract_access::Access;

/// A phase of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPhase {
    /// The program describes itself.
    Describe,
    /// The program declares its shards for the data.
    Declare,
    /// The program reads the target and plans a shard.
    Plan,
    /// The program prints the desired state of a shard.
    Print,
    /// The program applies a step.
    Apply,
}

impl ProgramPhase {
    /// The name of the phase, which is the last argument of the executable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Declare => "declare",
            Self::Plan => "plan",
            Self::Print => "print",
            Self::Apply => "apply",
        }
    }

    /// The access of the phase to the target system; `None` if the phase does not contact the target. Only a
    /// phase that writes gets write credentials.
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
