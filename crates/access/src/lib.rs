//! Permits to read from and write to target systems.
//!
//! A dry run is the absence of a permit, not a flag. The read half of every client requires a [`ReadPermit`],
//! the write half requires a [`WritePermit`]. A dry run has no write permit, so code that writes cannot be
//! called. A permit cannot be used to create another one. Code that creates clients before a run uses
//! [`ReadPermit::for_targets`]; code that only reads the data uses [`ReadPermit::for_data`].
//!
//! **Invariant:** only two callers mint permits: the runner, once per run, and `qontract journal init`, which
//! writes to the journal and to no target. A lint refuses [`mint`] everywhere else (`clippy.toml`).

mod bounds;
mod change_kind;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use bounds::{BoundError, WriteBound, WriteBounds};
pub use change_kind::ChangeKind;

/// Whether a run may write to targets. Logs, records and reports have its [name](Mode::as_str).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The run plans and validates changes, but applies none of them.
    #[default]
    #[serde(rename = "dry run")]
    DryRun,
    /// The run applies its plan.
    #[serde(rename = "real run")]
    Real,
}

impl Mode {
    /// The name of the mode.
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

/// Permission to read from targets in a run of the given mode.
///
/// ```
/// use qontract_access::{Mode, ReadPermit};
///
/// assert_eq!(ReadPermit::for_targets(Mode::Real).mode(), Mode::Real);
/// assert_eq!(ReadPermit::for_data().mode(), Mode::DryRun);
/// ```
#[derive(Clone, Debug)]
pub struct ReadPermit {
    mode: Mode,
}

impl ReadPermit {
    /// Permission to read the data before a run. Clients that are created with it refuse to write.
    pub fn for_data() -> Self {
        Self { mode: Mode::DryRun }
    }

    /// Permission for clients that are created before a run in this mode. Clients that are created for a dry
    /// run refuse to write, even if they are later passed a write permit.
    pub fn for_targets(mode: Mode) -> Self {
        Self { mode }
    }

    /// The mode of the run. Clients pass it to the layers below, which refuse writes in a dry run;
    /// integrations do not need it.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

/// Permission to write to targets. It exists only in a real run.
#[derive(Debug)]
pub struct WritePermit {
    bounds: Option<Arc<WriteBounds>>,
}

impl WritePermit {
    /// The only requests that the permit allows; without bounds, it allows all requests. Clients pass it to
    /// the layers below, which refuse other requests; a client whose requests cannot be judged refuses every
    /// write.
    pub fn bounds(&self) -> Option<&WriteBounds> {
        self.bounds.as_deref()
    }
}

/// The permits of one run.
#[derive(Debug)]
pub struct Permits {
    /// The read permit.
    pub read: ReadPermit,
    /// The write permit; `None` in a dry run.
    pub write: Option<WritePermit>,
}

/// The half of a client that sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The Read half.
    Read,
    /// The Write half.
    Write,
}

/// The permit that authorizes a request of one half of a client.
#[derive(Clone, Copy, Debug)]
pub enum AccessPermit<'p> {
    /// The permit of the Read half.
    Read(&'p ReadPermit),
    /// The permit of the Write half.
    Write(&'p WritePermit),
}

impl AccessPermit<'_> {
    /// The half of the client that the permit belongs to.
    pub fn access(self) -> Access {
        match self {
            AccessPermit::Read(_) => Access::Read,
            AccessPermit::Write(_) => Access::Write,
        }
    }
}

/// Mints the permits of one run.
pub fn mint(mode: Mode) -> Permits {
    permits(mode, None)
}

/// Mints the permits of one run. If there are bounds, the write permit allows only requests within the
/// bounds.
pub fn mint_within(mode: Mode, bounds: Option<Arc<WriteBounds>>) -> Permits {
    permits(mode, bounds)
}

fn permits(mode: Mode, bounds: Option<Arc<WriteBounds>>) -> Permits {
    let write = match mode {
        Mode::DryRun => None,
        Mode::Real => Some(WritePermit { bounds }),
    };
    Permits { read: ReadPermit { mode }, write }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Mode, WriteBounds, mint, mint_within};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn a_dry_run_has_no_permit_to_write() {
        assert!(mint(Mode::DryRun).write.is_none());
        assert!(mint(Mode::Real).write.is_some());
        assert!(mint_within(Mode::DryRun, Some(Arc::new(WriteBounds::new([])))).write.is_none());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is what is tested")]
    fn a_permit_has_the_bounds_of_its_run() {
        assert_eq!(mint(Mode::Real).write.unwrap().bounds(), None);
        let bounds = Arc::new(WriteBounds::new([]));
        let permits = mint_within(Mode::Real, Some(Arc::clone(&bounds)));
        assert_eq!(permits.write.unwrap().bounds(), Some(&*bounds));
    }
}
