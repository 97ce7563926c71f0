//! Log lines about held changes. A line is logged when a change is held for the first time, when the reason changes,
//! and then once an hour.

use std::collections::BTreeMap;

use qontract_runtime::{RunRecord, record};
use qontract_telemetry::log::{Level, LogLine};
use tokio::time::Instant;

use crate::repeat_filter::REPEAT_INTERVAL;

/// Maximum number of changes of one run that are reported individually.
const MAX_REPORTED: usize = 100;

/// A change that a guard holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldChange {
    /// The text of the change, with its sign.
    pub text: String,
    /// The reason why the change is held.
    pub why: String,
    /// Whether an approval would release the change.
    pub approvable: bool,
}

/// All changes that a run held, in shard order.
pub fn held_changes(record: &RunRecord) -> Vec<HeldChange> {
    let all = record.shards.values().flat_map(record::ShardRecord::held_by_guards);
    let change = |held: &record::ChangeRecord| HeldChange {
        text: held.text.clone(),
        why: held.reason().unwrap_or_default(),
        approvable: held.approvable,
    };
    all.map(change).collect()
}

/// Log lines about held changes. Each line names the commands that explain and approve the change.
pub fn lines(run: &str, held: &[HeldChange]) -> Vec<LogLine> {
    let mut lines: Vec<LogLine> = held.iter().take(MAX_REPORTED).map(|held| line(run, held)).collect();
    if held.len() > MAX_REPORTED {
        let text = format!(
            "held: {} more changes; `qontract explain run {run}` lists them",
            held.len() - MAX_REPORTED
        );
        lines.push(LogLine::new(Level::Warning, text).with("run", run));
    }
    lines
}

fn line(run: &str, HeldChange { text, why, approvable }: &HeldChange) -> LogLine {
    let approve =
        if *approvable { format!(", approve with `qontract approve {run}`") } else { String::new() };
    let text = format!("held: {text}: {why}; see `qontract explain run {run}`{approve}");
    LogLine::new(Level::Warning, text).with("run", run)
}

/// The held changes of a loop that were reported, with the times of the reports.
#[derive(Debug, Default)]
pub struct HeldReporter {
    reported: BTreeMap<String, ReportedHold>,
}

#[derive(Debug)]
struct ReportedHold {
    why: String,
    at: Instant,
}

/// The changes to report now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HeldReport {
    /// Changes that are held and must be reported.
    pub held: Vec<HeldChange>,
    /// Changes that are no longer held.
    pub released: Vec<String>,
}

impl HeldReporter {
    /// The changes to report after a run. After an incomplete run, no change counts as released, because the run
    /// might not have found all held changes.
    pub fn update(&mut self, held: &[HeldChange], is_complete: bool, now: Instant) -> HeldReport {
        let mut report = HeldReport::default();
        if is_complete {
            let is_held = |text: &String| held.iter().any(|held| held.text == *text);
            let gone = self.reported.extract_if(.., |text, _| !is_held(text));
            report.released = gone.map(|(text, _)| text).collect();
        }
        for change in held {
            let is_due = self.reported.get(&change.text).is_none_or(|reported| {
                !is_same_reason(&reported.why, &change.why)
                    || now.duration_since(reported.at) >= REPEAT_INTERVAL
            });
            if is_due {
                let why = change.why.clone();
                self.reported.insert(change.text.clone(), ReportedHold { why, at: now });
                report.held.push(change.clone());
            }
        }
        report
    }
}

/// Whether a reason equals the reported one. In later runs, the reason begins with the time since which the change is
/// held, followed by the first reason.
fn is_same_reason(reported: &str, now: &str) -> bool {
    now.ends_with(reported)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn held(texts: &[(&str, &str)]) -> Vec<HeldChange> {
        let change = |(text, why): &(&str, &str)| HeldChange {
            text: (*text).to_owned(),
            why: (*why).to_owned(),
            approvable: true,
        };
        texts.iter().map(change).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_held_change_is_reported_when_it_changes_and_then_hourly() {
        let (mut reporter, start) = (HeldReporter::default(), Instant::now());
        let mut check = |seconds: u64, now: &[(&str, &str)], is_complete: bool, expect: &str| {
            let at = start + Duration::from_secs(seconds);
            let HeldReport { held, released } = reporter.update(&held(now), is_complete, at);
            let mut words: Vec<String> =
                held.into_iter().map(|held| format!("{}:{}", held.text, held.why)).collect();
            words.extend(released.into_iter().map(|text| format!("-{text}")));
            assert_eq!(words.join(" "), expect, "after {seconds} s");
        };
        check(0, &[("a", "many"), ("b", "many")], true, "a:many b:many");
        check(10, &[("a", "since then: many"), ("b", "many")], true, "");
        check(20, &[("a", "since then: other"), ("b", "many")], true, "a:since then: other");
        check(3_599, &[("a", "since then: other"), ("b", "many")], true, "");
        check(3_600, &[("a", "since then: other"), ("b", "many")], true, "b:many");
        check(3_620, &[("a", "since then: other"), ("b", "many")], true, "a:since then: other");
        // A run that failed might not have planned all shards.
        check(3_630, &[("b", "many")], false, "");
        check(3_640, &[("b", "many")], true, "-a");
        check(3_650, &[("a", "many")], true, "a:many -b");
    }

    #[test]
    fn a_line_names_the_run_and_the_next_commands() {
        let change =
            HeldChange { text: "- remove x".to_owned(), why: "too many".to_owned(), approvable: true };
        let many: Vec<HeldChange> = vec![change; MAX_REPORTED + 2];
        let lines = lines("r1", &many);
        assert_eq!(lines.len(), MAX_REPORTED + 1);
        let print = |line: &LogLine| {
            line.format(qontract_telemetry::log::LineFormat::Levelled, jiff::Timestamp::UNIX_EPOCH)
        };
        assert_eq!(
            print(&lines[0]),
            "[WARNING] held: - remove x: too many; see `qontract explain run r1`, approve with `qontract approve r1` run=r1"
        );
        assert_eq!(
            print(&lines[MAX_REPORTED]),
            "[WARNING] held: 2 more changes; `qontract explain run r1` lists them run=r1"
        );
        assert_eq!(super::lines("r1", &many[..MAX_REPORTED]).len(), MAX_REPORTED);
    }
}
