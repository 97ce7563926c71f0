//! Formats the record of a run as text: messages on stderr, and the full explanation that `explain run` prints.

use qontract_diagnostics::{pluralize, sanitize};
use qontract_report::text::PlanDetail;
use qontract_report::{FileName, Location};
use qontract_runtime::record::{BundleRecord, LocatedText, RecordedState, ShardRecord};
use qontract_runtime::{RunEnd, RunRecord, SkipKind};
use qontract_telemetry::activity::FinishedLog;
use qontract_telemetry::log::Level;

use crate::debug_log;
use crate::held_changes::held_changes;
use crate::plan_report;

/// The slot of a process that runs all shards.
const ALL_SHARDS: &str = "0 of 1";

fn message(word: &str, entry: &LocatedText, file_name: FileName<'_>) -> String {
    let mut text = format!("{word}: {}\n", sanitize(&entry.text));
    for line in &entry.details {
        text.push_str(&format!("    {}\n", sanitize(line)));
    }
    for place in &entry.places {
        let Location { file, line, .. } = Location::parse(place);
        let at = Location { file: file_name(&file), line, renamed_from: None };
        text.push_str(&format!("    --> {}\n", sanitize(&at.to_string())));
    }
    if let Some(hint) = &entry.hint {
        let lines: Vec<_> = hint.lines().map(sanitize).collect();
        text.push_str(&format!("    hint: {}\n", lines.join("\n    ")));
    }
    text
}

/// Messages about a run: decisions, skipped shards, and warnings.
pub fn messages(record: &RunRecord, level: Level, file_name: FileName<'_>) -> String {
    let mut text = String::new();
    if level <= Level::Info {
        for decision in &record.decisions {
            text.push_str(&message("note", decision, file_name));
        }
        for (key, shard) in &record.shards {
            // No note is needed for a shard that the data disables, or for objects that were not planned, because the
            // plan lists these objects.
            let is_disabled = shard.reason == Some(SkipKind::Disabled);
            let is_noted = (!is_disabled || level <= Level::Debug) && shard.unplanned.is_empty();
            if let Some(why) = shard.why.as_ref().filter(|_| is_noted) {
                text.push_str(&format!("note: `{}` skipped: {}\n", sanitize(key), sanitize(why)));
            }
            if shard.state == RecordedState::Orphaned {
                text.push_str(&format!("note: {}\n", sanitize(&plan_report::orphan_note(key, record))));
            }
            for note in &shard.notes {
                text.push_str(&format!("note: {}\n", sanitize(note)));
            }
            for hint in &shard.hints {
                text.push_str(&message("note", hint, file_name));
            }
        }
        let has_notes = record.shards.values().any(|shard| !shard.notes.is_empty());
        if record.ended == RunEnd::Ok && record.is_quiet() && !has_notes {
            let is_selective =
                !record.options.is_empty() || record.slot != ALL_SHARDS || !record.only_shards.is_empty();
            let is_nothing_selected = is_selective && record.shards.is_empty();
            let note = if is_nothing_selected { "no shard selected" } else { "nothing to change" };
            text.push_str(&format!("note: {note}\n"));
        }
    }
    if level <= Level::Warning {
        for warning in &record.warnings {
            text.push_str(&format!("warning: {}\n", sanitize(warning)));
        }
    }
    text
}

/// The messages of a run that prints: skipped shards, warnings and errors.
pub fn printing_messages(record: &RunRecord, level: Level, file_name: FileName<'_>) -> String {
    let mut text = String::new();
    for (key, shard) in &record.shards {
        let is_disabled = shard.reason == Some(SkipKind::Disabled);
        if let Some(why) = shard.why.as_ref().filter(|_| !is_disabled && level <= Level::Info) {
            text.push_str(&format!("note: `{}` skipped: {}\n", sanitize(key), sanitize(why)));
        }
    }
    if level <= Level::Warning {
        for warning in &record.warnings {
            text.push_str(&format!("warning: {}\n", sanitize(warning)));
        }
    }
    for fault in record.faults.iter().chain(record.shards.values().flat_map(|shard| &shard.faults)) {
        text.push_str(&message("error", fault, file_name));
    }
    text
}

/// Warnings about held changes. A plan in text shows each change with its reason; in other formats, each
/// change has a warning.
pub fn held_warnings(record: &RunRecord, is_plan_shown: bool) -> String {
    let held = held_changes(record);
    let run = &record.run;
    if held.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    if !is_plan_shown {
        for change in &held {
            text.push_str(&format!("warning: held: {}: {}\n", sanitize(&change.text), sanitize(&change.why)));
        }
    }
    let approve = match &record.approval {
        Some(_) => format!(", `qontract approve {run}` writes the approval"),
        None => String::new(),
    };
    let what = pluralize(held.len(), "change");
    text.push_str(&format!("warning: {what} held: `qontract explain run {run}` shows why{approve}\n"));
    text
}

/// The activities of a run, for debugging.
pub fn activities(finished: &FinishedLog) -> String {
    let mut text = String::new();
    for activity in &finished.activities {
        text.push_str(&format!("debug: {}\n", sanitize(&debug_log::activity(activity))));
    }
    text
}

/// The full explanation of a run.
pub fn explain(record: &RunRecord) -> String {
    let RunRecord { run, integration, mode, head, base, ended, exit, milliseconds, .. } = record;
    let end = if record.in_progress {
        format!("in progress for {milliseconds} ms")
    } else {
        format!("ended `{}` (exit {exit}) after {milliseconds} ms", ended.as_str())
    };
    let mut text = format!("run {run}: {integration}, {mode}, {end}\n");
    let commit = |bundle: &BundleRecord| {
        let mark = if bundle.modified { ", modified" } else { "" };
        bundle.commit.as_ref().map(|id| format!(" (commit {id}{mark})")).unwrap_or_default()
    };
    text.push_str(&format!("head: {}{}\n", head.sha, commit(head)));
    if let Some(base) = base {
        text.push_str(&format!("base: {}{}\n", base.sha, commit(base)));
    }
    if let Some(digest) = &record.plan_digest {
        text.push_str(&format!("plan: {digest}\n"));
    }
    for (flag, values) in &record.options {
        for value in values {
            text.push_str(&format!("flag: --{flag} {}\n", sanitize(value)));
        }
    }
    if record.slot != ALL_SHARDS {
        text.push_str(&format!("slot: {}\n", sanitize(&record.slot)));
    }
    if record.decisions.is_empty() {
        match base {
            // A run of a loop with a base makes no decisions before its shards run.
            Some(_) if record.shards.is_empty() && record.ended != RunEnd::Ok => {
                text.push_str("the run ended before a decision\n");
            }
            Some(_) => {}
            None => text.push_str("the integration ran because it had no base to compare with\n"),
        }
    }
    for decision in &record.decisions {
        text.push_str(&message("decided", decision, &str::to_owned));
    }
    for (key, shard) in &record.shards {
        text.push_str(&shard_line(key, shard));
        for note in &shard.notes {
            text.push_str(&format!("note: {}\n", sanitize(note)));
        }
        for line in &shard.output {
            text.push_str(&format!("output: {}\n", sanitize(line)));
        }
    }
    for (cause, old) in &record.renamed {
        text.push_str(&format!("renamed: {} was {}\n", sanitize(cause), sanitize(old)));
    }
    // File names are printed relative to the data repo, because the data repo may have moved since the run.
    text.push_str(&plan_report::text_of(record, PlanDetail::FULL, &str::to_owned).plain());
    for warning in &record.warnings {
        text.push_str(&format!("warning: {}\n", sanitize(warning)));
    }
    text
}

fn shard_line(key: &str, shard: &ShardRecord) -> String {
    let rounds = pluralize(shard.rounds as usize, "round");
    let Some(why) = &shard.why else {
        let steps = pluralize(shard.applied, "step");
        let failed = match shard.faults.len() {
            0 => String::new(),
            errors => format!(", failed with {}", pluralize(errors, "error")),
        };
        return format!(
            "shard {}: {} in {rounds}, {steps} done{failed}\n",
            sanitize(key),
            shard.state.as_str()
        );
    };
    format!("shard {}: {}: {}\n", sanitize(key), shard.state.as_str(), sanitize(why))
}
