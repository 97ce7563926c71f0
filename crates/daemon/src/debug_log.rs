//! Debug log lines of a run: decisions, skipped shards, and activities with their durations.

use qontract_diagnostics::human;
use qontract_runtime::{RunRecord, SkipKind};
use qontract_telemetry::activity::{FinishedActivity, FinishedLog};
use qontract_telemetry::log::{Level, LogLine};

/// Log lines about the decisions of a run and its skipped shards.
pub fn decisions(record: &RunRecord) -> Vec<LogLine> {
    let mut lines = Vec::new();
    for decision in &record.decisions {
        let line = LogLine::new(Level::Debug, format!("decided: {}", decision.text));
        lines.push(
            decision.places.iter().take(1).fold(line, |line, place| line.with("place", place.as_str())),
        );
    }
    for (key, shard) in &record.shards {
        if let Some(why) = &shard.why {
            let line = LogLine::new(Level::Debug, format!("shard `{key}` skipped: {why}"));
            lines.push(line.with("reason", shard.reason.map(SkipKind::as_str).unwrap_or_default()));
        }
        let notes = shard.notes.iter().map(|note| format!("shard `{key}`: {note}"));
        lines.extend(notes.map(|note| LogLine::new(Level::Debug, note)));
    }
    lines
}

/// Log lines about the queries, phases and requests of a run.
pub fn activities(finished: &FinishedLog) -> Vec<LogLine> {
    let mut lines: Vec<LogLine> = finished
        .activities
        .iter()
        .map(|one| LogLine::new(Level::Debug, format!("done: {}", activity(one))))
        .collect();
    if finished.dropped > 0 {
        lines.push(LogLine::new(Level::Debug, format!("done: {} more activities", finished.dropped)));
    }
    lines
}

/// The text about a finished activity: its name, its result (if it has one) and its duration.
pub fn activity(FinishedActivity { what, took, result }: &FinishedActivity) -> String {
    let result = result.as_ref().map(|result| format!(": {result}")).unwrap_or_default();
    format!("{what}{result} in {}", human::duration(*took))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use qontract_telemetry::log::LineFormat;

    use super::*;

    #[test]
    fn activities_have_their_result_and_duration() {
        let finished = |what: &str, result: Option<&str>| FinishedActivity {
            what: what.to_owned(),
            took: Duration::from_millis(12),
            result: result.map(str::to_owned),
        };
        let (activities, dropped) =
            (vec![finished("`GET https://c`", Some("200 OK")), finished("declare", None)], 3);
        let lines = super::activities(&FinishedLog { activities, dropped });
        let texts: Vec<String> =
            lines.iter().map(|line| line.format(LineFormat::Levelled, jiff::Timestamp::UNIX_EPOCH)).collect();
        assert_eq!(
            texts,
            [
                "[DEBUG] done: `GET https://c`: 200 OK in 12ms",
                "[DEBUG] done: declare in 12ms",
                "[DEBUG] done: 3 more activities"
            ]
        );
        assert_eq!(super::activities(&FinishedLog::default()).len(), 0);
    }
}
