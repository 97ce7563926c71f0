//! The record of a run in words: the plan on stdout, the talk on stderr, and the whole story for `explain run`.

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

fn told(word: &str, told: &Told, file_name: FileName<'_>) -> String {
    let mut text = format!("{word}: {}\n", shown(&told.text));
    for line in &told.details {
        text.push_str(&format!("    {}\n", shown(line)));
    }
    for place in &told.places {
        let Location { file, line, .. } = Location::parse(place);
        let at = Location { file: file_name(&file), line, renamed_from: None };
        text.push_str(&format!("    --> {}\n", shown(&at.to_string())));
    }
    if let Some(hint) = &told.hint {
        let lines: Vec<_> = hint.lines().map(shown).collect();
        text.push_str(&format!("    hint: {}\n", lines.join("\n    ")));
    }
    text
}

/// What is said while running: what was decided, which shards were passed over, what may be wrong.
pub fn talk(record: &Record, level: Level, file_name: FileName<'_>) -> String {
    let mut text = String::new();
    if level <= Level::Info {
        for decision in &record.decisions {
            text.push_str(&told("note", decision, file_name));
        }
        for (key, shard) in &record.shards {
            // That the data disables an integration somewhere is no news.
            let is_disabled = shard.reason.as_deref() == Some("disabled");
            if let Some(why) = shard.why.as_ref().filter(|_| !is_disabled || level <= Level::Debug) {
                text.push_str(&format!("note: `{}` skipped: {}\n", shown(key), shown(why)));
            }
            if shard.state == "orphaned" {
                text.push_str(&format!("note: only base has `{}`: nothing is wanted there\n", shown(key)));
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

/// Warnings about what is held. The plan as text names each change with its reason; where it is not shown as text, each has a warning.
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

/// The whole story of a run.
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
            Some(_) => "nothing was decided before it ended\n",
            None => "it ran because nothing was given to compare with\n",
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
    // The data may be elsewhere by now: files are named as in the data repo.
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
        return format!("shard {}: {} in {rounds}, {steps} done\n", shown(key), shard.state);
    };
    format!("shard {}: {}: {}\n", shown(key), shard.state, shown(why))
}
