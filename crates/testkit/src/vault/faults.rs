//! Faults of the emulator.

use tokio::sync::watch;

/// A fault that replaces all responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultFault {
    /// The Vault is sealed.
    Sealed,
    /// All responses have this status and echo the request in the body, as those of some proxies do.
    Status(u16),
}

/// Delays all responses until this value is dropped.
#[derive(Debug)]
pub struct AnswerHold {
    gate: watch::Sender<bool>,
}

impl AnswerHold {
    pub(crate) fn new(gate: watch::Sender<bool>) -> Self {
        gate.send_replace(true);
        Self { gate }
    }
}

impl Drop for AnswerHold {
    fn drop(&mut self) {
        self.gate.send_replace(false);
    }
}
