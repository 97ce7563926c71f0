//! `qontract approve`: writes the datafile that approves the removals that a run held.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use qontract_cli::ApproveArgs;
use qontract_cli::printer::Printer;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::run_store::{HeldRun, NewerRuns};
use qontract_diagnostics::pluralize;
use qontract_journal::RunId;
use qontract_runtime::guard::{Approval, ApprovalFile, Date, ObjectRef};
use qontract_runtime::record::ChangeRecord;
use qontract_runtime::{ApprovalForm, PlanDigest, RunRecord};

use crate::commands::runs;

pub fn run(arguments: ApproveArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let ApproveArgs { run, out, expires, reason, bound, once, runs, config } = arguments;
    let store = runs::open(runs, config.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let HeldRun { record, newer } = runtime.block_on(store.resolve_held(&run))?;
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let expiration = last_day(&expires, today)?;
    if let Some(newer) = newer {
        printer.note(&format!("note: {}", found_run_note(&record, newer)));
    }
    if let (ApprovalForm::Own, Some(text)) = (record.approval_form, &record.approval) {
        if out.is_some() || bound || once {
            let name = &record.integration;
            let text = format!(
                "`{name}` is not approved with a datafile: run `qontract approve` without `--out`, `--bound` and `--once`"
            );
            return Err(UsageError(text).into());
        }
        printer.text(&format!("{}\n", text.trim_end()))?;
        return Ok(Exit::Ok);
    }
    let mut approval = held_approval(&record, || runtime.block_on(store.last_held()))?;
    if bound {
        bind(&mut approval, &record)?;
    }
    let name = name(&record);
    let file = ApprovalFile {
        name: &name,
        description: reason.as_deref().unwrap_or("why these may be removed"),
        integration: &approval.integration,
        expiration,
        once,
        removals: &approval.removals,
    };
    let text = file.to_string();
    let what = pluralize(approval.removals.len(), "removal");
    match out {
        None => {
            printer.text(&text)?;
            printer.note(&format!("note: {what} until {expiration}; save it as `data/approvals/{name}.yml`"));
        }
        Some(out) => {
            let path = destination(&out, &name)?;
            create(&path, &text)?;
            printer.note(&format!("wrote `{}`: {what} until {expiration}", path.display()));
        }
    }
    if reason.is_none() {
        printer.note("note: the description is only a template: pass `--reason TEXT`, or edit it, to explain why the removals are allowed");
    }
    Ok(Exit::Ok)
}

/// The note that names the run that was selected by the name of its integration.
fn found_run_note(record: &RunRecord, newer: NewerRuns) -> String {
    let RunRecord { run, began, mode, .. } = record;
    let text = format!("using run {run} ({mode} of {began}), the last run that held changes");
    let runs = [
        (newer.without_held, "held nothing"),
        (
            newer.unplanned,
            "ended as held, because the data no longer declares the shards of the held removals",
        ),
    ];
    let runs = runs.iter().filter(|(count, _)| *count > 0);
    let notes = runs.map(|(count, what)| format!("{} {what}", pluralize(*count, "newer run")));
    std::iter::once(text).chain(notes).collect::<Vec<_>>().join("; ")
}

/// The approval of the removals that a run held. If the run held nothing, the error names the last run that
/// held a removal.
fn held_approval(record: &RunRecord, last_held: impl FnOnce() -> Option<RunId>) -> anyhow::Result<Approval> {
    let Some(text) = &record.approval else {
        let held: usize = record.shards.values().map(|shard| shard.held_by_guards().count()).sum();
        let undecided: usize = record.shards.values().map(|shard| shard.held.len()).sum();
        let run = &record.run;
        if held == 0 && undecided > 0 {
            let changes = pluralize(undecided, "change");
            bail!(
                "run {run} has nothing to approve: {changes} not done because of an error, which no approval can release; `qontract explain run {run}` shows why"
            );
        }
        if held == 0 {
            let other = last_held().map(|other| {
                format!("; the last run that held changes is {other}: `qontract approve {other}`")
            });
            bail!("run {run} held nothing: no approval is needed{}", other.unwrap_or_default());
        }
        let held = pluralize(held, "change");
        bail!(
            "run {run} held {held}, but none that an approval can release; `qontract explain run {run}` shows why"
        );
    };
    let wrong = || format!("the record of run {} has an approval that cannot be read", record.run);
    let value = qontract_yaml::json::read(text.as_bytes()).map_err(anyhow::Error::msg).with_context(wrong)?;
    serde_json::from_value(value).with_context(wrong)
}

/// Binds each removal of an approval to the plan in which the run held it.
fn bind(approval: &mut Approval, record: &RunRecord) -> anyhow::Result<()> {
    for removal in &mut approval.removals {
        let ObjectRef { target, kind, name } = &removal.object;
        // The record contains the dimensions of a scope without their order.
        let mut dimensions: Vec<&str> = target.split(", ").collect();
        dimensions.sort_unstable();
        let is_it = |change: &&ChangeRecord| {
            let scope: Vec<String> =
                change.scope.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let mut scope: Vec<&str> = scope.iter().flat_map(|part| part.split(", ")).collect();
            scope.sort_unstable();
            change.kind == *kind && change.name == *name && scope == dimensions
        };
        let held = record.shards.values().flat_map(|shard| &shard.held);
        let plans: BTreeSet<&PlanDigest> =
            held.filter(is_it).filter_map(|change| change.plan.as_ref()).collect();
        let [plan] = plans.into_iter().collect::<Vec<_>>()[..] else {
            let run = &record.run;
            bail!(
                "run {run} has no digest of the plan that removes {kind} `{name}` in `{target}`: run it again"
            );
        };
        removal.plan = Some(plan.clone());
    }
    Ok(())
}

/// The name of the approval and of its file, from the id of the run, which is `TIME-INTEGRATION-SUFFIX`.
fn name(record: &RunRecord) -> String {
    let parts = record.run.split_once('-').and_then(|(time, rest)| {
        let own = rest.strip_prefix(record.integration.as_str())?.strip_prefix('-')?;
        Some(format!("{}-{time}-{own}", record.integration))
    });
    parts.unwrap_or_else(|| record.run.clone())
}

/// Parses the last day of an approval: a date, or a number of days from today.
fn last_day(text: &str, today: Date) -> Result<Date, UsageError> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u16>().ok());
    let day = match days {
        Some(days) => today.checked_add(jiff::Span::new().days(days)).ok(),
        None => text.parse::<Date>().ok(),
    };
    match day {
        None => Err(UsageError(format!(
            "`{text}` is not a date: use a date such as `2026-12-01`, or days such as `14d`"
        ))),
        Some(day) if day < today => {
            Err(UsageError(format!("{day} is in the past: the approval would never apply")))
        }
        Some(day) => Ok(day),
    }
}

/// The file to write: the named file, or a file in the named directory. The file must have the extension of a
/// datafile, because bundles would not include it otherwise.
fn destination(out: &Path, name: &str) -> Result<PathBuf, UsageError> {
    let ending = out.extension().and_then(|ending| ending.to_str());
    match ending {
        None => Ok(out.join(format!("{name}.yml"))),
        Some(_) if out.is_dir() => Ok(out.join(format!("{name}.yml"))),
        Some("yml" | "yaml") => Ok(out.to_owned()),
        Some(_) => Err(UsageError(format!(
            "`{}` would not be read as a datafile: use the extension `.yml`, or name a directory",
            out.display()
        ))),
    }
}

/// Creates a file and its parent directories. An existing file is not replaced.
fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    let writing = || format!("cannot write `{}`", path.display());
    if let Some(folder) = path.parent().filter(|folder| *folder != PathBuf::new()) {
        fs::create_dir_all(folder).with_context(writing)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(UsageError(format!("`{}` already exists", path.display())).into());
        }
        opened => opened.with_context(writing)?,
    };
    file.write_all(text.as_bytes()).with_context(writing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_written_to_a_datafile() {
        let check = |out: &str, expect: Option<&str>| {
            let found = destination(Path::new(out), "x").ok();
            assert_eq!(found.as_deref(), expect.map(Path::new), "{out}");
        };
        check("data/approvals", Some("data/approvals/x.yml"));
        check("data/approvals/", Some("data/approvals/x.yml"));
        check("data/a.yml", Some("data/a.yml"));
        check("a.yaml", Some("a.yaml"));
        check("a.txt", None);
        check(".", Some("./x.yml"));
    }

    #[test]
    fn the_last_day_is_a_date_or_some_days_from_today() {
        let check = |text: &str, expect: Option<&str>| {
            let found = last_day(text, jiff::civil::date(2026, 11, 17)).ok().map(|day| day.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check("7d", Some("2026-11-24"));
        check("0d", Some("2026-11-17"));
        check("2026-11-17", Some("2026-11-17"));
        check("2026-11-16", None);
        check("2026-12-01", Some("2026-12-01"));
        for wrong in ["", "d", "7", "7h", "-1d", "99999d", "soon"] {
            check(wrong, None);
        }
    }
}
