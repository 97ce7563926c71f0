//! Rate-limits repeated messages of a loop: a message is logged when it is new, and then once an hour.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Interval at which an unchanged message is logged.
pub const REPEAT_INTERVAL: Duration = Duration::from_hours(1);

/// The messages of the last run of a loop, and the time at which each was logged.
#[derive(Debug, Default)]
pub struct RepeatFilter {
    logged: BTreeMap<String, Instant>,
}

impl RepeatFilter {
    /// Whether each message of a run is due to be logged. A message that is missing from one run counts as
    /// new when it comes back.
    pub fn due(&mut self, messages: &[String], now: Instant) -> Vec<bool> {
        let before = std::mem::take(&mut self.logged);
        let mut due = Vec::with_capacity(messages.len());
        for message in messages {
            let last = before.get(message).or_else(|| self.logged.get(message)).copied();
            let logged = last.filter(|last| now.duration_since(*last) < REPEAT_INTERVAL);
            // A message that occurs twice in a run is logged once.
            due.push(logged.is_none() && !self.logged.contains_key(message));
            self.logged.insert(message.clone(), logged.unwrap_or(now));
        }
        due
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
        // After a run without the message, it is new.
        check(7_201, &[], &[]);
        check(7_202, &["a"], &[true]);
    }
}
