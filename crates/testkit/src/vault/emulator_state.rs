//! The state of the emulator.

use std::time::Duration;

use jiff::Timestamp;

use super::faults::VaultFault;
use super::kv::SecretStore;
use super::tokens::TokenStore;

/// The initial time of the clock, in seconds since 1970.
const CLOCK_START: i64 = 1_790_000_000;

/// The state of the emulator, and the requests it received.
#[derive(Default)]
pub struct EmulatorState {
    pub clock: Duration,
    pub fault: Option<VaultFault>,
    pub denied: Vec<String>,
    pub requests: Vec<String>,
    pub secrets: SecretStore,
    pub tokens: TokenStore,
}

impl EmulatorState {
    /// The current time in the format of Vault.
    pub fn now(&self) -> String {
        time(self.clock)
    }
}

/// A time of the emulator's clock in the format of Vault.
pub fn time(clock: Duration) -> String {
    let seconds = CLOCK_START + i64::try_from(clock.as_secs()).expect("a time within years");
    Timestamp::from_second(seconds).expect("a time within years").to_string()
}
