//! Faults of the emulator.

use tokio::sync::watch;

/// A fault that replaces all responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The Vault is sealed.
    Sealed,
    /// This status, with the request echoed in the body, as some proxies do.
    Status(u16),
}

/// Holds responses back until it is dropped.
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
