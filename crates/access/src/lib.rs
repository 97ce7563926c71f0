//! Permits to read the world and to change it.
//!
//! Dry run is a permit, not a flag. The Read half of every client asks for a [`ReadPermit`], the Write half for a
//! [`WritePermit`], and a dry run has none to give: code that could write cannot even be called. What holds a permit
//! to write cannot make another one. Whoever makes targets before a run takes [`ReadPermit::for_targets`], and
//! [`ReadPermit::for_data`] is for the data alone.
//!
//! **Invariant:** only the runner mints, once per run. The call of [`mint`] is a disallowed method everywhere else
//! (`clippy.toml`).

use std::fmt;

/// Whether a run may change the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It goes as far as it can without changing anything.
    DryRun,
    /// It changes what the plan says.
    Real,
}

impl Mode {
    /// The word for it in logs and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::DryRun => "dry run",
            Mode::Real => "real run",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Permission to read the world, in a run of a certain mode.
#[derive(Clone, Debug)]
pub struct ReadPermit {
    mode: Mode,
}

impl ReadPermit {
    /// Permission to read the data itself, before there is a run. What is made with it refuses to write.
    pub fn for_data() -> Self {
        Self { mode: Mode::DryRun }
    }

    /// Permission to read targets that are made before the run of this mode begins. What is made with it for a dry run
    /// refuses to write, whichever permit it is shown later.
    pub fn for_targets(mode: Mode) -> Self {
        Self { mode }
    }

    /// The mode of the run. Clients pass it on to what refuses writes below them; rooms have no use for it.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

/// Permission to change the world. It exists only in a real run.
#[derive(Debug)]
pub struct WritePermit {
    _sealed: (),
}

/// The permits of one run.
#[derive(Debug)]
pub struct Permits {
    /// To read.
    pub read: ReadPermit,
    /// To write, in a real run.
    pub write: Option<WritePermit>,
}

/// Which half of a client sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The Read half.
    Read,
    /// The Write half.
    Write,
}

/// The permit with which a half of a client sends a request.
#[derive(Clone, Copy, Debug)]
pub enum AccessPermit<'p> {
    /// The Read half's.
    Read(&'p ReadPermit),
    /// The Write half's.
    Write(&'p WritePermit),
}

impl AccessPermit<'_> {
    /// Which half it belongs to.
    pub fn access(self) -> Access {
        match self {
            AccessPermit::Read(_) => Access::Read,
            AccessPermit::Write(_) => Access::Write,
        }
    }
}

/// Mints the permits of one run.
pub fn mint(mode: Mode) -> Permits {
    let write = match mode {
        Mode::DryRun => None,
        Mode::Real => Some(WritePermit { _sealed: () }),
    };
    Permits { read: ReadPermit { mode }, write }
}

#[cfg(test)]
mod tests {
    use super::{Mode, mint};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn a_dry_run_has_no_permit_to_write() {
        assert!(mint(Mode::DryRun).write.is_none());
        assert!(mint(Mode::Real).write.is_some());
    }
}
