//! Redacts the secrets that a shard has read in every report about the shard. This is the last line of defence, in
//! addition to the types that keep secrets out of reports.
//!
//! All reports about a shard pass through this module: changes, faults, waits, notes, audit records and
//! activities. Source locations are not searched, because they are paths of datafiles.

use qontract_redaction::{REDACTED, Redactor};
use qontract_telemetry::activity;
use qontract_telemetry::measure::Measurement;
use serde_json::Value;

use crate::fault::Fault;
use crate::field_diff::{DiffEntry, FieldDiff};
use crate::key::Scope;
use crate::plan::{
    Change, Degradation, DigestedNames, HeldPlanChange, ObjectKey, Plan, PlanHint, PlanOutline, Rollout, Wait,
};
use crate::truncation;
use crate::unplanned::UnplannedItem;

/// Redacts the reports of one shard.
#[derive(Debug, Default)]
pub struct ShardRedactor(Redactor, RedactionCount);

/// Whether redacted fields are counted in the metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RedactionCount {
    /// Redacted fields are counted in `qontract_reconcile_redactions_total`.
    #[default]
    Counted,
    /// Redacted fields are not counted, because nothing is reported.
    Ignored,
}

impl ShardRedactor {
    pub fn new(redactor: Redactor) -> Self {
        Self(redactor, RedactionCount::Counted)
    }

    /// Creates a redactor for a replay, which reports nothing.
    pub fn for_replay(redactor: Redactor) -> Self {
        Self(redactor, RedactionCount::Ignored)
    }

    fn count(&self) {
        if self.1 == RedactionCount::Counted {
            activity::record_measurement(Measurement::Redacted);
        }
    }

    /// The redactor for single strings.
    pub fn redactor(&self) -> &Redactor {
        &self.0
    }

    /// Whether a text of several lines contains a secret, within one line or across several lines.
    pub fn finds_in_lines(&self, text: &str) -> bool {
        self.0.finds(text) || self.0.lines(text) != text
    }

    /// Redacts one field of a report.
    pub fn text(&self, text: String) -> String {
        if !self.0.finds(&text) {
            return text;
        }
        self.count();
        REDACTED.to_owned()
    }

    fn texts(&self, texts: Vec<String>) -> Vec<String> {
        texts.into_iter().map(|text| self.text(text)).collect()
    }

    /// Redacts a fault. The text, each detail, the hint and the cause of the fault are separate fields.
    pub fn fault(&self, fault: Fault) -> Fault {
        if self.0.is_empty() {
            return fault;
        }
        let Fault { whose, text, details, hint, cause, places, is_undone, is_interrupted } = fault;
        Fault {
            whose,
            text: self.text(text),
            details: self.texts(details),
            hint: hint.map(|hint| self.text(hint)),
            cause: cause.map(|cause| self.text(cause.into_string()).into_boxed_str()),
            places,
            is_undone,
            is_interrupted,
        }
    }

    /// Redacts an item that was not planned. The declared differences of the item are not redacted, because they come
    /// from the data.
    pub fn unplanned(&self, item: UnplannedItem) -> UnplannedItem {
        UnplannedItem { text: self.text(item.text), ..item }
    }

    /// Redacts the diffs of a plan and then truncates them, before guards, ledger and reports see them. Values are
    /// not truncated before this call. Complete values need no further memory, because each value is part of a
    /// declared or observed object that the shard already holds.
    ///
    /// Returns the digests of the steps. The digests cover the redacted diffs before truncation: values that differ
    /// only in their truncated parts have different digests.
    pub fn redact_diffs<A>(&self, plan: &mut Plan<A>) -> PlanOutline {
        for entries in diffs(plan) {
            *entries = self.diff(std::mem::take(entries));
        }
        let outline = plan.outline(self);
        for entries in diffs(plan) {
            *entries = truncation::truncate_entries(std::mem::take(entries));
        }
        outline
    }

    /// Redacts a change. The action, the object and each diff entry of the change are separate fields.
    pub fn change(&self, change: Change) -> Change {
        if self.0.is_empty() {
            return change;
        }
        let Change { kind, object, what, diff, diff_by_name, body, loss, incarnation, place, result } =
            change;
        Change {
            kind,
            object: self.object(object),
            what: self.text(what),
            diff: self.diff(diff),
            diff_by_name: self.diff(diff_by_name),
            body: self.diff(body),
            loss,
            incarnation,
            place,
            result,
        }
    }

    fn diff(&self, entries: Vec<DiffEntry>) -> Vec<DiffEntry> {
        if self.0.is_empty() {
            return entries;
        }
        entries.into_iter().map(|entry| self.diff_entry(entry)).collect()
    }

    /// Redacts a diff entry. The path and each value of the entry are separate fields. A value is searched in its
    /// printed form. Each string in the value is also searched separately, because printing escapes characters.
    fn diff_entry(&self, entry: DiffEntry) -> DiffEntry {
        match entry {
            DiffEntry::Note(text) => DiffEntry::Note(self.text(text)),
            DiffEntry::Field(FieldDiff { change, path, before, after }) => DiffEntry::Field(FieldDiff {
                change,
                path: self.text(path),
                before: before.map(|value| self.value(value)),
                after: after.map(|value| self.value(value)),
            }),
        }
    }

    fn value(&self, value: Value) -> Value {
        if self.finds(&value) || self.0.finds(&value.to_string()) {
            self.count();
            return Value::String(REDACTED.to_owned());
        }
        value
    }

    fn finds(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.0.finds(text),
            Value::Array(items) => items.iter().any(|item| self.finds(item)),
            Value::Object(map) => map.iter().any(|(key, value)| self.0.finds(key) || self.finds(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn object(&self, object: ObjectKey) -> ObjectKey {
        let ObjectKey { scope, kind, name } = object;
        let scope = if self.0.finds(&scope.to_string()) {
            self.count();
            Scope::new([("scope", REDACTED)])
        } else {
            scope
        };
        ObjectKey { scope, kind: self.text(kind), name: self.text(name) }
    }

    /// Redacts a held change.
    pub fn held(&self, held: HeldPlanChange) -> HeldPlanChange {
        let HeldPlanChange { change, why, hold, plan, remedy } = held;
        let remedy = remedy.map(|remedy| self.text(remedy));
        HeldPlanChange { change: self.change(change), why: self.text(why), hold, plan, remedy }
    }

    /// Redacts a wait.
    pub fn wait(&self, wait: Wait) -> Wait {
        let Wait { text, place } = wait;
        Wait { text: self.text(text), place }
    }

    /// Redacts a rollout.
    pub fn rollout(&self, rollout: Rollout) -> Rollout {
        let Rollout { object, progress, text, place } = rollout;
        Rollout { object: self.object(object), progress, text: self.text(text), place }
    }

    /// Redacts a remark.
    pub fn hint(&self, hint: PlanHint) -> PlanHint {
        let PlanHint { text, place } = hint;
        PlanHint { text: self.text(text), place }
    }

    /// Redacts a degradation.
    pub fn degradation(&self, degradation: Degradation) -> Degradation {
        let Degradation { text, place } = degradation;
        Degradation { text: self.text(text), place }
    }
}

impl DigestedNames for ShardRedactor {
    fn text(&self, text: &str) -> String {
        self.text(text.to_owned())
    }

    fn object(&self, object: &ObjectKey) -> ObjectKey {
        self.object(object.clone())
    }
}

/// The diffs of all changes of a plan.
fn diffs<A>(plan: &mut Plan<A>) -> impl Iterator<Item = &mut Vec<DiffEntry>> {
    let steps = plan.groups.iter_mut().flat_map(|group| &mut group.steps);
    let changes = steps.flat_map(|step| &mut step.changes);
    let changes = changes.chain(plan.held.iter_mut().map(|held| &mut held.change));
    changes.flat_map(|change| [&mut change.diff, &mut change.diff_by_name, &mut change.body])
}

#[cfg(test)]
mod tests {
    use qontract_redaction::{REDACTED, Redactor};
    use serde_json::{Value, json};

    use super::ShardRedactor;
    use crate::fault::Fault;
    use crate::field_diff::{DiffEntry, FieldChange, FieldDiff};
    use crate::key::Scope;
    use crate::plan::{Change, ChangeKind, HeldPlanChange, Hold, ObjectKey, Plan, Wait};
    use crate::source_location::SourceLocation;

    const SECRET: &str = "hunter22hunter22";

    fn redactor() -> ShardRedactor {
        ShardRedactor::new(Redactor::new([SECRET]))
    }

    fn text(prefix: &str) -> String {
        format!("{prefix} {SECRET}")
    }

    fn held(change: Change, why: &str, hold: Hold) -> HeldPlanChange {
        HeldPlanChange { change, why: why.to_owned(), hold, plan: None, remedy: None }
    }

    fn change() -> Change {
        let object = ObjectKey { scope: Scope::new([("kind", SECRET)]), kind: text("k"), name: text("n") };
        let mut change =
            Change::new(ChangeKind::Add, object, text("create")).with_diff(["a".to_owned(), text("b")]);
        change.diff_by_name = vec![text("c").into(), "d".into()];
        change.body = vec![text("e").into(), "f".into()];
        change.at(Some(SourceLocation::resource("/x")))
    }

    #[test]
    fn every_field_of_a_change_is_searched() {
        let redacted = redactor().change(change());
        assert_eq!(redacted.what, REDACTED);
        assert_eq!((redacted.object.kind.as_str(), redacted.object.name.as_str()), (REDACTED, REDACTED));
        assert_eq!(redacted.object.scope, Scope::new([("scope", REDACTED)]));
        assert_eq!(redacted.diff, ["a", REDACTED].map(DiffEntry::from));
        assert_eq!(redacted.diff_by_name, [REDACTED, "d"].map(DiffEntry::from));
        assert_eq!(redacted.body, [REDACTED, "f"].map(DiffEntry::from));
        assert_eq!(redacted.place, change().place);
    }

    #[test]
    fn every_value_of_a_diff_is_searched() {
        let check = |before: Value, after: Value, expect: [Value; 2]| {
            let (before, after) = (Some(before), Some(after));
            let field = FieldDiff { change: FieldChange::Changed, path: text("p"), before, after };
            let entry = redactor().diff_entry(field.into());
            let [before, after] = expect.map(Some);
            let path = REDACTED.to_owned();
            assert_eq!(entry, FieldDiff { change: FieldChange::Changed, path, before, after }.into());
        };
        check(json!("a"), json!(text("b")), [json!("a"), json!(REDACTED)]);
        check(json!([text("a")]), json!({ "b": SECRET }), [json!(REDACTED), json!(REDACTED)]);
        check(json!({ SECRET: 1 }), json!({ "c": [2] }), [json!(REDACTED), json!({ "c": [2] })]);
    }

    #[test]
    fn diffs_of_steps_and_held_changes_are_redacted_and_then_shortened() {
        let field = |value: String| FieldDiff {
            change: FieldChange::Added,
            path: "p".to_owned(),
            before: None,
            after: Some(value.into()),
        };
        let changed = || {
            let cut = format!("{}{SECRET}", "x".repeat(195));
            let mut change = change().with_diff([field(cut), field("y".repeat(201))]);
            change.diff_by_name = change.diff.clone();
            change.body = change.diff.clone();
            change
        };
        let mut plan = Plan::default();
        plan.add_step(changed(), ());
        plan.held.push(held(changed(), "", Hold::Unresolved));
        redactor().redact_diffs(&mut plan);
        let expect = [field(REDACTED.to_owned()), field(format!("{}… (1 more character)", "y".repeat(200)))]
            .map(DiffEntry::from);
        for change in [&plan.groups[0].steps[0].changes[0], &plan.held[0].change] {
            assert_eq!([&change.diff, &change.diff_by_name, &change.body], [&expect; 3]);
            assert_eq!(change.object, changed().object, "guards need the object");
        }
        let mut plan = Plan::default();
        plan.add_step(changed(), ());
        ShardRedactor::default().redact_diffs(&mut plan);
        assert_eq!(plan.groups[0].steps[0].changes[0].diff[1], expect[1], "also without a secret");
    }

    #[test]
    fn every_field_of_a_fault_is_searched() {
        let fault = Fault::remote(text("a")).details(&format!("b\n{SECRET}")).hint(text("c")).undone();
        let redacted = redactor().fault(fault.clone());
        assert_eq!((redacted.text.as_str(), redacted.hint.as_deref()), (REDACTED, Some(REDACTED)));
        assert_eq!(redacted.details, ["b", REDACTED]);
        assert_eq!((redacted.whose, redacted.is_undone), (fault.whose, true));
    }

    #[test]
    fn held_changes_and_waits_are_searched() {
        let held = HeldPlanChange { remedy: Some(text("r")), ..held(change(), &text("w"), Hold::Approval) };
        let held = redactor().held(held);
        assert_eq!(
            (held.why.as_str(), held.change.what.as_str(), held.hold),
            (REDACTED, REDACTED, Hold::Approval)
        );
        let wait = redactor().wait(Wait { text: text("w"), place: None });
        assert_eq!(wait.text, REDACTED);
    }

    #[test]
    fn without_a_secret_nothing_is_redacted() {
        let none = ShardRedactor::default();
        assert_eq!(none.change(change()), change());
        assert_eq!(none.text(text("a")), text("a"));
    }
}
