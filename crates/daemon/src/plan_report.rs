//! Builds plan reports from run records.

use std::collections::BTreeMap;

use qontract_access::Mode;
use qontract_diagnostics::{StyledText, pluralize};
use qontract_report::FileName;
use qontract_report::text::{self, PlanDetail};
use qontract_report::{
    DeclaredField, DisabledShards, FieldAction, IntegrationReport, Location, PlanReport, ReleasedEntry,
    ReportStatus, ReportedChange, ReportedFault, ReportedField, ReportedWait, RevisionInfo, Totals,
    UnaffectedIntegration, UnplannedEntry,
};
use qontract_runtime::record::{
    BundleRecord, ChangeRecord, LocatedText, RecordedState, ReleasedRecord, UnplannedRecord,
};
use qontract_runtime::{
    DeclaredCount, DiffEntry, FieldChange, FieldDiff, NOT_VALIDATED, RunEnd, RunRecord, SkipKind, StepResult,
};

use crate::exit::Exit;

/// The plan of one run as text, without the integration's name.
pub fn text_of(record: &RunRecord, detail: PlanDetail, file_name: FileName<'_>) -> StyledText {
    let mut integration = integration(record);
    integration.rename_files(file_name);
    text::render_integration(&integration, detail)
}

/// The note about a shard that only the base declares.
pub fn orphan_note(key: &str, record: &RunRecord) -> String {
    let RunRecord { integration, mode, .. } = record;
    match mode {
        Mode::Real => format!("`{key}` is no longer declared: its objects are removed"),
        Mode::DryRun => format!(
            "`{key}` exists only in the base: its objects are removed by loops that run when the data changes, or by `qontract reconcile {integration} --base REV`"
        ),
    }
}

/// Creates the report of runs that worked on one bundle.
pub fn from_records(records: &[RunRecord]) -> PlanReport {
    let first = records.first();
    let mode = first.map_or(Mode::DryRun, |record| record.mode);
    let base = first.and_then(|record| record.base.as_ref()).map(revision);
    let head = first.map(|record| revision(&record.head)).unwrap_or_default();
    let mut report = PlanReport::new(mode, base, head);
    for record in records {
        add(&mut report, record);
    }
    report
}

/// Adds a run to a report.
pub fn add(report: &mut PlanReport, record: &RunRecord) {
    if record.ended == RunEnd::EarlyExit {
        let reason = record.decisions.first().map(|one| one.text.clone()).unwrap_or_default();
        report.add_unaffected(UnaffectedIntegration { integration: record.integration.clone(), reason });
        return;
    }
    report.add(integration(record));
}

/// The part of a report about one integration.
pub fn integration(record: &RunRecord) -> IntegrationReport {
    let mut changes = Vec::new();
    let (mut waits, mut rollouts, mut degraded) = (Vec::new(), Vec::new(), Vec::new());
    let mut unplanned = Vec::new();
    let mut notes = Vec::new();
    let mut disabled = Vec::new();
    for (key, shard) in &record.shards {
        changes.extend(shard.changes.iter().map(|one| change(key, one)));
        changes.extend(shard.held.iter().map(|one| change(key, one)));
        let located = |one: &LocatedText| ReportedWait {
            shard: key.clone(),
            message: one.text.clone(),
            locations: locations(&one.places),
        };
        waits.extend(shard.waits.iter().map(located));
        degraded.extend(shard.degraded.iter().map(located));
        rollouts.extend(shard.rollouts.iter().map(|one| ReportedWait {
            shard: key.clone(),
            message: format!("{} `{}`: {}", one.kind, one.name, one.text),
            locations: one.place.iter().map(|place| Location::parse(place)).collect(),
        }));
        match (&shard.why, shard.reason) {
            (Some(why), Some(SkipKind::Disabled)) => add_disabled(&mut disabled, key, why),
            // The shard is listed as not planned.
            (Some(_), Some(SkipKind::UntrustedTarget)) if !shard.unplanned.is_empty() => {}
            (Some(why), _) => notes.push(format!("`{key}` is skipped: {why}")),
            (None, _) => {}
        }
        unplanned.extend(shard.unplanned.iter().map(|item| unplanned_entry(key, item)));
        if shard.state == RecordedState::Orphaned {
            notes.push(orphan_note(key, record));
        }
        notes.extend(shard.notes.iter().cloned());
        notes.extend(shard.hints.iter().map(|hint| match hint.places.first() {
            Some(place) => format!("{} ({place})", hint.text),
            None => hint.text.clone(),
        }));
    }
    fold_unvalidated(&mut notes);
    let errors = distinct_errors(record);
    notes.extend(record.warnings.iter().map(|warning| format!("warning: {warning}")));
    let mut totals = Totals::of(&changes, &errors);
    totals.not_planned = record.shards.values().map(|shard| shard.not_planned).sum();
    let released: Vec<ReleasedEntry> = record.released.iter().map(released_entry).collect();
    let stays = released.iter().filter(|entry| !entry.removed_with_target);
    totals.released = stays.map(|entry| entry.objects.unwrap_or(1)).sum();
    if record.mode != Mode::DryRun {
        totals.applied = Some(record.shards.values().map(|shard| shard.applied).sum());
    }
    IntegrationReport {
        integration: record.integration.clone(),
        run: Some(record.run.clone()),
        plan_digest: record.plan_digest.as_ref().map(ToString::to_string),
        status: status(record, &totals),
        totals,
        causes: record.causes.iter().map(|cause| cause_location(record, cause)).collect(),
        changes,
        unplanned,
        released,
        waits,
        rollouts,
        degraded,
        errors,
        notes,
        disabled,
        approval: record.approval.clone(),
    }
}

/// Combines the notes about changes that could not be validated into one note, because the plan lists these changes.
fn fold_unvalidated(notes: &mut Vec<String>) {
    let is_unvalidated = |note: &&mut String| note.starts_with(NOT_VALIDATED);
    let count = notes.iter_mut().filter(is_unvalidated).count();
    if count < 2 {
        return;
    }
    if let Some(first) = notes.iter_mut().find(is_unvalidated) {
        let example = first.trim_start_matches(NOT_VALIDATED);
        *first = format!("{count} changes not validated, for example {example}");
    }
    notes.retain(|note| !note.starts_with(NOT_VALIDATED));
}

/// The part of a report about an integration that only the base defines, with the number of objects that the base
/// declares, if they can be counted.
pub fn undefined(name: &str, declared: Option<DeclaredCount>, at: Location) -> IntegrationReport {
    let what = match declared {
        Some(DeclaredCount { shards, objects: Some(objects) }) => {
            format!("{} in {}", pluralize(objects, "declared object"), pluralize(shards, "shard"))
        }
        Some(DeclaredCount { shards, objects: None }) => {
            format!("the objects of {}", pluralize(shards, "shard"))
        }
        None => "the objects that it manages".to_owned(),
    };
    let objects = declared.and_then(|declared| declared.objects);
    let released = ReleasedEntry {
        shard: None,
        message: format!("`{name}` is no longer defined: it stops running, and {what} stay in the target"),
        objects,
        removed_with_target: false,
        locations: vec![at],
    };
    let totals = Totals { released: objects.unwrap_or(1), ..Totals::default() };
    let status = if totals.has_news() { ReportStatus::Changes } else { ReportStatus::Unchanged };
    IntegrationReport { status, totals, released: vec![released], ..without_run(name) }
}

/// The part of a report about an integration that could not be started.
pub fn unstarted(name: &str, error: &anyhow::Error) -> IntegrationReport {
    let message = format!("cannot start: {error:#}");
    let errors = vec![ReportedFault {
        shards: Vec::new(),
        message,
        details: Vec::new(),
        hint: None,
        locations: Vec::new(),
    }];
    let (status, totals) = (ReportStatus::Failed, Totals::of(&[], &errors));
    IntegrationReport { status, totals, errors, ..without_run(name) }
}

/// The part of a report about an integration that did not run.
fn without_run(name: &str) -> IntegrationReport {
    IntegrationReport {
        integration: name.to_owned(),
        run: None,
        plan_digest: None,
        status: ReportStatus::Unchanged,
        totals: Totals::default(),
        causes: Vec::new(),
        changes: Vec::new(),
        unplanned: Vec::new(),
        released: Vec::new(),
        waits: Vec::new(),
        rollouts: Vec::new(),
        degraded: Vec::new(),
        errors: Vec::new(),
        notes: Vec::new(),
        disabled: Vec::new(),
        approval: None,
    }
}

fn status(record: &RunRecord, totals: &Totals) -> ReportStatus {
    match record.ended {
        RunEnd::Waiting => return ReportStatus::Waiting,
        RunEnd::NotKnown => return ReportStatus::NotKnown,
        RunEnd::Degraded if record.mode == Mode::Real || !totals.has_news() => {
            return ReportStatus::Degraded;
        }
        RunEnd::Degraded
        | RunEnd::Ok
        | RunEnd::EarlyExit
        | RunEnd::Held
        | RunEnd::Failed
        | RunEnd::Usage
        | RunEnd::NotDefined
        | RunEnd::Forbidden
        | RunEnd::Transient
        | RunEnd::Interrupted => {}
    }
    // A held run without errors has an unsuccessful end state only because of the held changes.
    let failed = !record.ended.is_success();
    if totals.errors > 0 || (failed && totals.held == 0) {
        ReportStatus::Failed
    } else if failed {
        ReportStatus::Held
    } else if totals.not_planned > 0 {
        ReportStatus::NotKnown
    } else if totals.has_news() {
        ReportStatus::Changes
    } else {
        ReportStatus::Unchanged
    }
}

/// The exit code of a dry run with this report.
pub fn exit(report: &PlanReport) -> Exit {
    match report.status {
        ReportStatus::Changes | ReportStatus::NotKnown => Exit::Changes,
        // The status of one integration must not hide that another integration has changes.
        ReportStatus::Degraded | ReportStatus::Waiting if report.totals.has_news() => Exit::Changes,
        ReportStatus::Unchanged | ReportStatus::Degraded | ReportStatus::Waiting => Exit::Ok,
        ReportStatus::Held | ReportStatus::Failed | ReportStatus::Invalid => Exit::Failure,
    }
}

fn revision(bundle: &BundleRecord) -> RevisionInfo {
    RevisionInfo { sha256: bundle.sha.clone(), commit: bundle.commit.clone(), modified: bundle.modified }
}

fn locations(places: &[String]) -> Vec<Location> {
    places.iter().map(|place| Location::parse(place)).collect()
}

fn cause_location(record: &RunRecord, cause: &str) -> Location {
    Location { renamed_from: record.renamed.get(cause).cloned(), ..Location::parse(cause) }
}

/// Adds a shard for which the data disables the integration. Shards are grouped by reason; the reason does not
/// include the name of the namespace.
fn add_disabled(all: &mut Vec<DisabledShards>, key: &str, why: &str) {
    let rest = why.strip_prefix("disabled for namespace `").and_then(|rest| rest.split_once('`'));
    let reason = rest.map_or_else(|| why.to_owned(), |(_, rest)| format!("disabled for the namespace{rest}"));
    match all.iter_mut().find(|group| group.reason == reason) {
        Some(group) => group.shards.push(key.to_owned()),
        None => all.push(DisabledShards { reason, shards: vec![key.to_owned()] }),
    }
}

/// The errors of a run, without duplicates: an error that several shards or scopes have in common, such as an
/// unreachable cluster, is listed once.
pub fn distinct_errors(record: &RunRecord) -> Vec<ReportedFault> {
    let mut groups: Vec<FaultGroup<'_>> = Vec::new();
    for (key, shard) in &record.shards {
        for fault in &shard.faults {
            match groups.iter_mut().find(|group| group.includes(fault)) {
                Some(group) => group.add(key, fault),
                None => groups.push(FaultGroup { fault, shards: vec![key], scopes: 1 }),
            }
        }
    }
    let of_run = record.faults.iter().map(|fault| FaultGroup { fault, shards: Vec::new(), scopes: 1 });
    groups.into_iter().chain(of_run).map(FaultGroup::report).collect()
}

/// Faults of shards that are reported as one error.
struct FaultGroup<'a> {
    /// The first fault of the group.
    fault: &'a LocatedText,
    /// The shards with this fault, in order and without duplicates.
    shards: Vec<&'a String>,
    /// The number of scopes that could not be read, if the faults are about scopes.
    scopes: usize,
}

impl<'a> FaultGroup<'a> {
    fn includes(&self, fault: &LocatedText) -> bool {
        let LocatedText { text, details, hint, cause, whose: _, places } = self.fault;
        let is_same_cause = match cause {
            Some(_) => *cause == fault.cause,
            None => *text == fault.text,
        };
        // Faults with a common cause may have different source locations.
        let is_same_place = cause.is_some() || *places == fault.places;
        is_same_cause && is_same_place && (details, hint) == (&fault.details, &fault.hint)
    }

    fn add(&mut self, key: &'a String, fault: &LocatedText) {
        if self.shards.last() != Some(&key) {
            self.shards.push(key);
        }
        // If several shards read one scope, their faults have equal texts and count as one scope.
        self.scopes += usize::from(fault.text != self.fault.text);
    }

    fn report(self) -> ReportedFault {
        let LocatedText { text, details, hint, cause, whose: _, places } = self.fault;
        let message = match cause {
            // The message of a fault about a scope ends with the cause.
            Some(cause) if self.scopes > 1 && text.ends_with(cause.as_str()) => {
                format!("cannot read {} scopes: {cause}", self.scopes)
            }
            Some(cause) if self.scopes > 1 => {
                format!("{} changes failed: {cause}; the first: {text}", self.scopes)
            }
            Some(_) | None => text.clone(),
        };
        ReportedFault {
            shards: self.shards.into_iter().cloned().collect(),
            message,
            details: details.clone(),
            hint: hint.clone(),
            locations: locations(places),
        }
    }
}

fn change(shard: &str, planned: &ChangeRecord) -> ReportedChange {
    let (mut fields, mut notes, mut trailing_notes) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &planned.diff {
        match entry {
            DiffEntry::Field(one) => fields.push(field(one)),
            DiffEntry::Note(note) if fields.is_empty() => notes.push(note.clone()),
            DiffEntry::Note(note) => trailing_notes.push(note.clone()),
        }
    }
    let sign = format!("{} ", planned.change.sign());
    ReportedChange {
        action: planned.change,
        shard: shard.to_owned(),
        namespace: namespace(&planned.scope),
        scope: planned.scope.clone(),
        kind: planned.kind.clone(),
        name: planned.name.clone(),
        summary: planned.text.strip_prefix(&sign).unwrap_or(&planned.text).to_owned(),
        fields,
        notes,
        trailing_notes,
        location: planned.place.as_deref().map(Location::parse),
        held: planned.reason(),
        approvable: planned.is_held(),
        result: match planned.result {
            StepResult::Planned => None,
            StepResult::Done => Some(qontract_report::StepResult::Done),
            StepResult::Failed => Some(qontract_report::StepResult::Failed),
            StepResult::Interrupted => Some(qontract_report::StepResult::Interrupted),
            StepResult::NotTried => Some(qontract_report::StepResult::NotTried),
        },
    }
}

fn field(field: &FieldDiff) -> ReportedField {
    ReportedField {
        action: match field.change {
            FieldChange::Added => FieldAction::Added,
            FieldChange::Changed => FieldAction::Changed,
            FieldChange::Removed => FieldAction::Removed,
        },
        path: field.path.clone(),
        before: field.before.clone(),
        after: field.after.clone(),
    }
}

fn unplanned_entry(shard: &str, item: &UnplannedRecord) -> UnplannedEntry {
    let UnplannedRecord { text, places, declared } = item;
    let declared = declared.iter().map(|one| DeclaredField {
        field: field(&one.field),
        location: one.place.as_deref().map(Location::parse),
    });
    UnplannedEntry {
        shard: shard.to_owned(),
        message: text.clone(),
        locations: locations(places),
        declared: declared.collect(),
    }
}

fn released_entry(objects: &ReleasedRecord) -> ReleasedEntry {
    let ReleasedRecord { shard, text, count, removed_with_target, place } = objects;
    ReleasedEntry {
        shard: Some(shard.clone()),
        message: text.clone(),
        objects: *count,
        removed_with_target: *removed_with_target,
        locations: place.iter().map(|place| Location::parse(place)).collect(),
    }
}

fn namespace(scope: &BTreeMap<String, String>) -> Option<String> {
    scope.get("namespace").cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn namespaces_that_are_disabled_for_one_reason_are_folded() {
        let mut all = Vec::new();
        for (key, why) in [
            ("n=a", "disabled for namespace `a` (managedByExternal)"),
            ("n=b", "disabled for namespace `b` (managedByExternal)"),
            ("n=c", "disabled for namespace `c` (to be deleted)"),
            ("n=d", "disabled for cluster `x`"),
            ("n=e", "disabled for cluster `x`"),
            ("n=f", "disabled for namespace `"),
        ] {
            add_disabled(&mut all, key, why);
        }
        let folded: Vec<String> =
            all.iter().map(|one| format!("{}: {}", one.reason, one.shards.join(" "))).collect();
        assert_eq!(
            folded,
            [
                "disabled for the namespace (managedByExternal): n=a n=b",
                "disabled for the namespace (to be deleted): n=c",
                "disabled for cluster `x`: n=d n=e",
                "disabled for namespace `: n=f",
            ]
        );
    }

    #[test]
    fn errors_with_the_same_cause_are_one_error() {
        let fault = |scope: &str, cause: &str| json!({"text": format!("cannot read `{scope}`: {cause}"), "cause": cause, "hint": "check it"});
        let shard = |faults: &[Value]| {
            json!({"state": "ran", "rounds": 1, "changes": [], "held": [], "waits": [], "faults": faults,
                "applied": 0, "removed": 0})
        };
        let check = |shards: Value, expect: &[(&str, usize)]| {
            let record: RunRecord = serde_json::from_value(json!({
                "version": 2, "run": "r1", "began": 0, "milliseconds": 5, "integration": "a", "mode": "real run",
                "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1",
                "decisions": [], "shards": shards, "faults": [], "warnings": [], "approval": null,
                "ended": "failed", "exit": 1,
            }))
            .expect("a record");
            let errors = distinct_errors(&record);
            let errors: Vec<(&str, usize)> =
                errors.iter().map(|error| (error.message.as_str(), error.shards.len())).collect();
            assert_eq!(errors, expect);
        };
        let (down, slow) = ("cannot reach cluster `c1`: refused", "cannot reach cluster `c2`: timed out");
        check(
            json!({"n=a": shard(&[fault("n=a", down)])}),
            &[("cannot read `n=a`: cannot reach cluster `c1`: refused", 1)],
        );
        check(
            json!({
                "n=a": shard(&[fault("n=a, kind=A", down), fault("n=a, kind=B", down)]),
                "n=b": shard(&[fault("n=b, kind=A", down), fault("n=b, kind=B", slow)]),
            }),
            &[
                ("cannot read 3 scopes: cannot reach cluster `c1`: refused", 2),
                ("cannot read `n=b, kind=B`: cannot reach cluster `c2`: timed out", 1),
            ],
        );
        let same = json!({"text": "broken"});
        check(json!({"n=a": shard(std::slice::from_ref(&same)), "n=b": shard(&[same])}), &[("broken", 2)]);
        let full = |name: &str| {
            json!({"text": format!("create {name}: cannot write `{name}.yaml`: disk full"),
                "cause": "cannot use the sandbox: disk full", "places": [format!("data/{name}.yml")]})
        };
        check(json!({"n=a": shard(&[full("a")])}), &[("create a: cannot write `a.yaml`: disk full", 1)]);
        let message = "2 changes failed: cannot use the sandbox: disk full; the first: create a: cannot write `a.yaml`: disk full";
        check(json!({"n=a": shard(&[full("a")]), "n=b": shard(&[full("b")])}), &[(message, 2)]);
    }
}
