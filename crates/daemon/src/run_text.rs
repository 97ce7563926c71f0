//! The record of a run as text: messages on stderr, and the full explanation for `explain run`.

use qontract_diagnostics::{counted, shown};
use qontract_report::text::Detail;
use qontract_report::{FileName, Location};
use qontract_runtime::record::{Bundle, Shard, Told};
use qontract_runtime::{Ended, Record};
use qontract_telemetry::activity::FinishedLog;
use qontract_telemetry::log::Level;

use crate::debug_log;
use crate::held::held_changes;
use crate::plan_report;

fn told(word: &str, entry: &Told, file_name: FileName<'_>) -> String {
    let mut text = format!("{word}: {}\n", shown(&entry.text));
    for line in &entry.details {
        text.push_str(&format!("    {}\n", shown(line)));
    }
    for place in &entry.places {
        let Location { file, line, .. } = Location::parse(place);
        let at = Location { file: file_name(&file), line, renamed_from: None };
        text.push_str(&format!("    --> {}\n", shown(&at.to_string())));
    }
    if let Some(hint) = &entry.hint {
        let lines: Vec<_> = hint.lines().map(shown).collect();
        text.push_str(&format!("    hint: {}\n", lines.join("\n    ")));
    }
    text
}

/// Messages about a run: decisions, skipped shards, warnings.
pub fn talk(record: &Record, level: Level, file_name: FileName<'_>) -> String {
    let mut text = String::new();
    if level <= Level::Info {
        for decision in &record.decisions {
            text.push_str(&told("note", decision, file_name));
        }
        for (key, shard) in &record.shards {
            // It is normal that the data disables an integration for a shard.
            let is_disabled = shard.reason.as_deref() == Some("disabled");
            if let Some(why) = shard.why.as_ref().filter(|_| !is_disabled || level <= Level::Debug) {
                text.push_str(&format!("note: `{}` skipped: {}\n", shown(key), shown(why)));
            }
            if shard.state == "orphaned" {
                text.push_str(&format!("note: {}\n", shown(&plan_report::orphan_note(key, record))));
            }
            for note in &shard.notes {
                text.push_str(&format!("note: {}\n", shown(note)));
            }
        }
        let has_notes = record.shards.values().any(|shard| !shard.notes.is_empty());
        if record.ended == Ended::Ok && record.is_quiet() && !has_notes {
            text.push_str("note: nothing to change\n");
        }
    }
    if level <= Level::Warning {
        for warning in &record.warnings {
            text.push_str(&format!("warning: {}\n", shown(warning)));
        }
    }
    text
}

/// Warnings about held changes. A plan in text shows each change with its reason; in other formats, each
/// change has a warning.
pub fn held_warnings(record: &Record, is_plan_shown: bool) -> String {
    let held = held_changes(record);
    let run = &record.run;
    if held.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    if !is_plan_shown {
        for change in &held {
            text.push_str(&format!("warning: held: {}: {}\n", shown(&change.text), shown(&change.why)));
        }
    }
    let approve = match &record.approval {
        Some(_) => format!(", `qontract approve {run}` writes the approval"),
        None => String::new(),
    };
    let what = counted(held.len(), "change");
    text.push_str(&format!("warning: {what} held: `qontract explain run {run}` shows why{approve}\n"));
    text
}

/// The activities of a run, for debugging.
pub fn activities(finished: &FinishedLog) -> String {
    let mut text = String::new();
    for activity in &finished.activities {
        text.push_str(&format!("debug: {}\n", shown(&debug_log::activity(activity))));
    }
    text
}

/// The full explanation of a run.
pub fn explain(record: &Record) -> String {
    let Record { run, integration, mode, head, base, ended, exit, milliseconds, .. } = record;
    let ended = ended.as_str();
    let mut text =
        format!("run {run}: {integration}, {mode}, ended `{ended}` (exit {exit}) after {milliseconds} ms\n");
    let commit = |bundle: &Bundle| {
        let mark = if bundle.modified { ", modified" } else { "" };
        bundle.commit.as_ref().map(|id| format!(" (commit {id}{mark})")).unwrap_or_default()
    };
    text.push_str(&format!("head: {}{}\n", head.sha, commit(head)));
    if let Some(base) = base {
        text.push_str(&format!("base: {}{}\n", base.sha, commit(base)));
    }
    for (flag, values) in &record.options {
        for value in values {
            text.push_str(&format!("flag: --{flag} {}\n", shown(value)));
        }
    }
    if record.slot != "0 of 1" {
        text.push_str(&format!("slot: {}\n", shown(&record.slot)));
    }
    if record.decisions.is_empty() {
        text.push_str(match base {
            Some(_) => "it ended before a decision\n",
            None => "it ran because there was no base to compare with\n",
        });
    }
    for decision in &record.decisions {
        text.push_str(&told("decided", decision, &str::to_owned));
    }
    for (key, shard) in &record.shards {
        text.push_str(&story(key, shard));
        for note in &shard.notes {
            text.push_str(&format!("note: {}\n", shown(note)));
        }
    }
    for (cause, old) in &record.renamed {
        text.push_str(&format!("renamed: {} was {}\n", shown(cause), shown(old)));
    }
    // The data repo may have moved since: file names are relative to it.
    text.push_str(&plan_report::text_of(record, Detail::FULL, &str::to_owned).plain());
    for warning in &record.warnings {
        text.push_str(&format!("warning: {}\n", shown(warning)));
    }
    text
}

fn story(key: &str, shard: &Shard) -> String {
    let rounds = counted(shard.rounds as usize, "round");
    let Some(why) = &shard.why else {
        let steps = counted(shard.applied, "step");
        let failed = match shard.faults.len() {
            0 => String::new(),
            errors => format!(", failed with {}", counted(errors, "error")),
        };
        return format!("shard {}: {} in {rounds}, {steps} done{failed}\n", shown(key), shard.state);
    };
    format!("shard {}: {}: {}\n", shown(key), shard.state, shown(why))
}
