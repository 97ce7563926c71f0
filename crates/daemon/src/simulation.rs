//! Environment variables for tests in a sandbox: they set the clock of the runs, and let the process crash after some
//! writes.
//!
//! **Invariant:** without a sandbox, these variables are refused, because an old clock would make expired approvals
//! valid again (`a_simulation_needs_a_sandbox`).

use std::num::NonZeroU32;
use std::time::SystemTime;

use qontract_config::variable;

use crate::exit::UsageError;

/// The variable with the time of the runs, in RFC 3339.
const CLOCK: &str = "QONTRACT_SANDBOX_CLOCK";
/// The variable with the number of written objects after which the process aborts.
const KILL_AFTER: &str = "QONTRACT_SANDBOX_KILL_AFTER";

/// Fails if one of the variables is set. Called for real targets.
pub fn refuse() -> Result<(), UsageError> {
    match [CLOCK, KILL_AFTER].into_iter().find(|name| variable(name).is_some()) {
        Some(name) => Err(UsageError(format!("`{name}` is for tests in a sandbox: pass `--sandbox DIR`"))),
        None => Ok(()),
    }
}

/// The time at which a run starts.
pub fn now() -> Result<SystemTime, UsageError> {
    variable(CLOCK).map_or_else(|| Ok(SystemTime::now()), |text| parse_clock(&text))
}

fn parse_clock(text: &str) -> Result<SystemTime, UsageError> {
    let time: Result<jiff::Timestamp, _> = text.parse();
    time.map(SystemTime::from)
        .map_err(|_| UsageError(format!("`{CLOCK}` must be a time such as `2026-01-01T00:00:00Z`")))
}

/// The number of written objects after which the process aborts.
pub fn kill_after() -> Result<Option<NonZeroU32>, UsageError> {
    let parse =
        |text: String| text.parse().map_err(|_| UsageError(format!("`{KILL_AFTER}` must be a number")));
    variable(KILL_AFTER).map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::parse_clock;

    #[test]
    fn a_clock_is_a_time_in_utc() {
        let time = parse_clock("2026-01-01T00:10:00Z").unwrap();
        assert_eq!(time, UNIX_EPOCH + Duration::from_mins(29_453_770));
        for text in ["", "2026-01-01", "tomorrow", "1767226200"] {
            let error = parse_clock(text).unwrap_err();
            assert!(
                error.to_string().starts_with("`QONTRACT_SANDBOX_CLOCK` must be a time"),
                "{text}: {error}"
            );
        }
    }
}
