//! All that the emulator has and was asked.

use std::time::Duration;

use jiff::Timestamp;

use super::faults::Fault;
use super::kv::Secrets;
use super::tokens::Tokens;

/// When the clock starts, in seconds since 1970.
const START: i64 = 1_790_000_000;

/// All that the emulator has and was asked.
#[derive(Default)]
pub struct World {
    pub clock: Duration,
    pub fault: Option<Fault>,
    pub denied: Vec<String>,
    pub requests: Vec<String>,
    pub secrets: Secrets,
    pub tokens: Tokens,
}

impl World {
    /// The time as Vault writes it.
    pub fn now(&self) -> String {
        time(self.clock)
    }
}

/// A time on the emulator's clock as Vault writes it.
pub fn time(clock: Duration) -> String {
    let seconds = START + i64::try_from(clock.as_secs()).expect("a time within years");
    Timestamp::from_second(seconds).expect("a time within years").to_string()
}
