//! Rate-limits repeated messages of a loop: a message is logged when it is new and then once an hour.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Interval at which an unchanged message is logged.
pub const REPEAT_INTERVAL: Duration = Duration::from_hours(1);

/// The messages of the last runs of a loop, and the time at which each was logged.
#[derive(Debug, Default)]
pub struct RepeatFilter {
    /// The messages of the current run.
    logged: BTreeMap<String, Instant>,
    /// The messages of the previous run.
    before: BTreeMap<String, Instant>,
}

impl RepeatFilter {
    /// Starts a run. A message that is missing from one run counts as new when it occurs again.
    pub fn start_run(&mut self) {
        self.before = std::mem::take(&mut self.logged);
    }

    /// Whether a message of the current run is due to be logged. A message that occurs twice in a run is logged only
    /// once.
    pub fn is_due(&mut self, message: &str, now: Instant) -> bool {
        if self.logged.contains_key(message) {
            return false;
        }
        let last = self.before.get(message).copied();
        let logged = last.filter(|last| now.duration_since(*last) < REPEAT_INTERVAL);
        self.logged.insert(message.to_owned(), logged.unwrap_or(now));
        logged.is_none()
    }

    /// Whether each message of a run is due to be logged.
    pub fn due(&mut self, messages: &[String], now: Instant) -> Vec<bool> {
        self.start_run();
        messages.iter().map(|message| self.is_due(message, now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_when_it_is_new_and_then_hourly() {
        let (mut filter, start) = (RepeatFilter::default(), Instant::now());
        let mut check = |seconds: u64, messages: &[&str], expect: &[bool]| {
            let messages: Vec<String> = messages.iter().map(|text| (*text).to_owned()).collect();
            let due = filter.due(&messages, start + Duration::from_secs(seconds));
            assert_eq!(due, expect, "after {seconds} s");
        };
        check(0, &["a", "b", "a"], &[true, true, false]);
        check(1, &["a", "b"], &[false, false]);
        check(3_599, &["a", "c"], &[false, true]);
        check(3_600, &["a", "c"], &[true, false]);
        check(3_601, &["a", "b", "c"], &[false, true, false]);
        check(7_199, &["a", "c"], &[false, true]);
        check(7_200, &["a"], &[true]);
        // After a run without the message, the message counts as new.
        check(7_201, &[], &[]);
        check(7_202, &["a"], &[true]);
    }
}
