//! Faults of the emulator.

use tokio::sync::watch;

/// A fault that replaces all responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultFault {
    /// The Vault is sealed.
    Sealed,
    /// This status, with the request echoed in the body, as some proxies do.
    Status(u16),
}

/// Holds responses back until it is dropped.
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
