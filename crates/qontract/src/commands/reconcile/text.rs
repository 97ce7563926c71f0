//! The record of a run in words: the plan on stdout, the talk on stderr, and the whole story for `explain run`.

use std::collections::{BTreeMap, BTreeSet};

use qontract_diagnostics::{counted, shown};
use qontract_runtime::record::Bundle;
use qontract_runtime::record::{Planned, Shard, Told};
use qontract_runtime::{ChangeKind, Record};

use crate::cli::LogLevel;

/// The plan: changes, what is held, what is under way, what is wrong, and how many of each.
pub fn plan(record: &Record) -> String {
    let mut text = String::new();
    let mut counts: BTreeMap<ChangeKind, usize> = BTreeMap::new();
    let mut held = 0;
    let mut told_already = BTreeSet::new();
    for shard in record.shards.values() {
        for change in &shard.changes {
            *counts.entry(change.change).or_default() += 1;
            text.push_str(&line(change));
        }
        for change in &shard.held {
            held += 1;
            text.push_str(&format!("held: {}", line(change)));
            text.push_str(&format!("    {}\n", shown(change.why.as_deref().unwrap_or_default())));
        }
        for wait in &shard.waits {
            text.push_str(&told("waits", wait));
        }
        for fault in &shard.faults {
            // One cluster that is away is told once, not for each of its shards.
            if told_already.insert(told("error", fault)) {
                text.push_str(&told("error", fault));
            }
        }
    }
    for fault in &record.faults {
        text.push_str(&told("error", fault));
    }
    let count = |kind: ChangeKind| counts.get(&kind).copied().unwrap_or_default();
    let [add, change, replace, remove] = ChangeKind::ALL.map(count);
    if text.is_empty() {
        return text;
    }
    let mut summary = format!("{add} to add, {change} to change, {remove} to remove");
    if replace > 0 {
        summary.push_str(&format!(", {replace} to replace"));
    }
    if held > 0 {
        summary.push_str(&format!(", {held} held"));
    }
    let applied: usize = record.shards.values().map(|shard| shard.applied).sum();
    if record.mode != "dry run" {
        summary.push_str(&format!("; {} done", counted(applied, "step")));
    }
    let failures = record.faults.len() + told_already.len();
    if failures > 0 {
        summary.push_str(&format!("; {}", counted(failures, "error")));
    }
    text.push_str(&summary);
    text.push('\n');
    if let Some(approval) = &record.approval {
        text.push_str("\nto approve what is held, add this to the data:\n\n");
        for line in approval.lines() {
            text.push_str(&if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") });
        }
    }
    text
}

fn line(change: &Planned) -> String {
    let mut text = format!("{}\n", shown(&change.text));
    for line in &change.diff {
        text.push_str(&format!("    {}\n", shown(line)));
    }
    if let Some(place) = &change.place {
        text.push_str(&format!("    --> {}\n", shown(place)));
    }
    text
}

fn told(word: &str, told: &Told) -> String {
    let mut text = format!("{word}: {}\n", shown(&told.text));
    for line in &told.details {
        text.push_str(&format!("    {}\n", shown(line)));
    }
    for place in &told.places {
        text.push_str(&format!("    --> {}\n", shown(place)));
    }
    if let Some(hint) = &told.hint {
        let lines: Vec<_> = hint.lines().map(shown).collect();
        text.push_str(&format!("    hint: {}\n", lines.join("\n    ")));
    }
    text
}

/// What is said while running: what was decided, which shards were passed over, what may be wrong.
pub fn talk(record: &Record, level: LogLevel) -> String {
    let mut text = String::new();
    if level <= LogLevel::Info {
        for decision in &record.decisions {
            text.push_str(&told("note", decision));
        }
        for (key, shard) in &record.shards {
            if let Some(why) = &shard.why {
                text.push_str(&format!("note: `{}` is passed over: {}\n", shown(key), shown(why)));
            }
            if shard.state == "orphaned" {
                text.push_str(&format!("note: only base has `{}`: nothing is wanted there\n", shown(key)));
            }
            for note in &shard.notes {
                text.push_str(&format!("note: {}\n", shown(note)));
            }
        }
        let has_notes = record.shards.values().any(|shard| !shard.notes.is_empty());
        if record.exit == 0 && record.ended == "ok" && record.is_quiet() && !has_notes {
            text.push_str("note: nothing to change\n");
        }
    }
    if level <= LogLevel::Warning {
        for warning in &record.warnings {
            text.push_str(&format!("warning: {}\n", shown(warning)));
        }
    }
    text
}

/// The whole story of a run.
pub fn explain(record: &Record) -> String {
    let Record { run, integration, mode, head, base, ended, exit, milliseconds, .. } = record;
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
        text.push_str(&told("decided", decision));
    }
    for (key, shard) in &record.shards {
        text.push_str(&story(key, shard));
        for note in &shard.notes {
            text.push_str(&format!("note: {}\n", shown(note)));
        }
    }
    text.push_str(&plan(record));
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
