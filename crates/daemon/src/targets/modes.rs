//! The mode of each client.

use qontract_access::Mode;

/// The mode of each client: a run may write to one target system, and only read the others.
///
/// ```
/// use qontract_access::Mode;
/// use qontract_daemon::targets::ClientModes;
///
/// let only_secrets = ClientModes { secrets: Mode::Real, ..ClientModes::from(Mode::DryRun) };
/// assert_eq!(only_secrets.kubernetes, Mode::DryRun);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientModes {
    /// Clusters.
    pub kubernetes: Mode,
    /// The secret store.
    pub secrets: Mode,
    /// Buckets and the state store.
    pub blobs: Mode,
    /// The sources of templates, which are only read.
    pub lookups: Mode,
}

impl From<Mode> for ClientModes {
    /// One mode for all clients.
    fn from(mode: Mode) -> Self {
        Self { kubernetes: mode, secrets: mode, blobs: mode, lookups: mode }
    }
}
