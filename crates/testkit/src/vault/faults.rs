//! What may be wrong with a Vault.

use tokio::sync::watch;

/// What every answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// That it is sealed.
    Sealed,
    /// This status, with the request repeated in the body, as a bad proxy does it.
    Status(u16),
}

/// Holds answers back until it is dropped.
#[derive(Debug)]
pub struct Held {
    gate: watch::Sender<bool>,
}

impl Held {
    pub(crate) fn new(gate: watch::Sender<bool>) -> Self {
        gate.send_replace(true);
        Self { gate }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.send_replace(false);
    }
}
