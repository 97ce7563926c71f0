//! Describes how the last valid bundle is used while the data is invalid.

use qontract_diagnostics::human;

/// How the last valid bundle is used while the data is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataUse {
    /// Loops reconcile the bundle.
    Reconcile,
    /// A server serves the bundle.
    Serve,
}

impl DataUse {
    /// Describes the use, for example `reconciling bundle ecc2860`.
    pub fn describe(self, bundle: Option<&str>) -> String {
        match (self, bundle) {
            (Self::Reconcile, Some(sha)) => format!("reconciling bundle {}", human::short_sha(sha)),
            (Self::Serve, Some(sha)) => format!("serving bundle {}", human::short_sha(sha)),
            (Self::Reconcile, None) => "no valid bundle to reconcile yet".to_owned(),
            (Self::Serve, None) => "no valid bundle to serve yet".to_owned(),
        }
    }
}
