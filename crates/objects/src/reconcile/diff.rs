//! The diff entries of a write, for a plan. Long diffs are truncated.

use qontract_client_kubernetes::{FieldOwnership, Kind, MANAGER, Preview, WritePrecondition};
use qontract_inventory::{
    DifferenceSide, Disclosure, FieldDifference, LiveWriter, ObjectWrite, SENSITIVE, SHA256SUM, diff,
    preserve_restarts,
};
use qontract_runtime::{DiffEntry, FieldChange, FieldDiff, FieldLoss};
use serde_json::Value;

use super::conflict::ExpectedConflict;
use super::observe::LiveObject;
use crate::scope::DesiredObject;

/// Maximum number of removed fields in a diff.
const MAX_REMOVED_FIELDS: usize = 100;

/// Maximum number of changed and added fields in a diff.
const MAX_OTHER_FIELDS: usize = 30;

/// Maximum number of fields of a created object, shown on request (`--full`).
const MAX_BODY_FIELDS: usize = 2000;

/// A write to an existing object.
pub struct ObjectUpdate<'a> {
    item: &'a DesiredObject,
    live: &'a LiveObject,
    preview: Preview,
    /// The precondition of the write, which also determines the requests of the write.
    pub precondition: WritePrecondition,
    writer: ValueWriter,
}

/// The origin of the live object's values.
enum ValueWriter {
    Us,
    /// We wrote the values, and the write also removes fields that other managers own. Holds the live object
    /// without the fields that only we own.
    UsAndOthers(Value),
    Others,
}

impl<'a> ObjectUpdate<'a> {
    /// The update that changes the observed object to `item`.
    pub fn in_place(item: &'a DesiredObject, live: &'a LiveObject) -> Self {
        let fields = migrated_fields(item, live);
        let declared = preserve_restarts(&item.desired, &live.live);
        let preview = live.managed_fields.preview(live.live.body(), MANAGER, fields, &declared);
        let precondition = preview.precondition(live.version.clone(), fields);
        let is_others = preview.conflicts.removed.iter().any(|field| !field.managers.is_empty());
        let writer =
            if is_others { ValueWriter::UsAndOthers(preview.without_ours.clone()) } else { ValueWriter::Us };
        Self { item, live, preview, precondition, writer: ValueWriter::of(live, writer) }
    }

    /// The removal of the observed object, and its creation as `item`.
    pub fn replacement(item: &'a DesiredObject, live: &'a LiveObject) -> Self {
        let declared = preserve_restarts(&item.desired, &live.live);
        let body = live.live.body();
        let others = live.managed_fields.preview(body, MANAGER, FieldOwnership::Ours, &declared).without_ours;
        let writer = ValueWriter::of(live, ValueWriter::UsAndOthers(others));
        let preview = live.managed_fields.replacement(body, &declared);
        let precondition = WritePrecondition::Replace(live.version.clone());
        Self { item, live, preview, precondition, writer }
    }

    /// The diff entries, limited to the parts that may be shown. `decided` are the differences that caused
    /// the write.
    pub fn entries(&self, decided: &[FieldDifference], disclosure: Disclosure<'_>) -> Vec<DiffEntry> {
        if matches!(disclosure, Disclosure::Nothing) {
            return entries(decided);
        }
        let differences = diff(&self.write(), disclosure).differences;
        if !differences.is_empty() {
            return entries(&differences);
        }
        let is_marked = self.live.live.mark().is_some_and(|mark| mark.sha256sum.is_some());
        let mut others: Vec<FieldDifference> =
            decided.iter().filter(|difference| difference.path != SHA256SUM).cloned().collect();
        if matches!(self.writer, ValueWriter::Others) {
            others.iter_mut().for_each(hide_before);
        }
        if !others.is_empty() || decided.is_empty() {
            return entries(&others);
        }
        let text = if is_marked {
            "only the annotation `qontract.sha256sum` changes: the declaration changed since the last write, but no field of the object differs"
        } else {
            "only our annotations change: no field of the object differs"
        };
        vec![text.into()]
    }

    /// The effect of other field managers on the write.
    pub fn conflict(&self) -> ExpectedConflict {
        ExpectedConflict::new(&self.live.address, &self.preview.conflicts, &self.item.sensitivity)
    }

    /// The fields that the object loses; `None` if it loses no fields.
    pub fn loss(&self) -> Option<FieldLoss> {
        let qontract_inventory::KeyLoss { lost, of, lists } = diff(&self.write(), Disclosure::Nothing).loss;
        let was_sensitive = self.live.live.body()["metadata"]["annotations"][SENSITIVE] == "true";
        let depends_on_secret = was_sensitive || self.item.sensitivity.is_sensitive();
        (lost > 0 || lists > 0).then_some(FieldLoss { lost, of, lists, depends_on_secret })
    }

    fn write(&self) -> ObjectWrite<'_> {
        ObjectWrite {
            desired: &self.item.desired,
            live: &self.live.live,
            after: &self.preview.after,
            ours: &self.preview.ours,
            declared: &self.preview.declared,
            writer: match &self.writer {
                ValueWriter::Us => LiveWriter::Us,
                ValueWriter::UsAndOthers(others) => LiveWriter::UsAndOthers { others },
                ValueWriter::Others => LiveWriter::Others,
            },
        }
    }
}

impl ValueWriter {
    /// `ours`, unless another tool wrote the object.
    fn of(live: &LiveObject, ours: Self) -> Self {
        let is_taken_over = live.field_ownership != FieldOwnership::Ours || live.live.mark().is_none();
        if is_taken_over { Self::Others } else { ours }
    }
}

/// The fields of previous writers that become ours. When an object is adopted, undeclared fields that were
/// written by hand are kept. In a namespace, every undeclared field is kept, because the labels of the
/// namespace belong to another integration.
fn migrated_fields(item: &DesiredObject, live: &LiveObject) -> FieldOwnership {
    match live.field_ownership {
        _ if live.live.mark().is_none() && item.kind == Kind::namespace() => FieldOwnership::Ours,
        FieldOwnership::Updated if live.live.mark().is_none() => FieldOwnership::ClientSideApplied,
        fields => fields,
    }
}

/// Differences as diff entries. Removed fields come first; long lists end with a count of the rest.
pub fn entries(differences: &[FieldDifference]) -> Vec<DiffEntry> {
    entries_up_to(differences, MAX_OTHER_FIELDS)
}

/// The fields of a created object as diff entries. A run shows them only on request.
pub fn body_entries(fields: &[FieldDifference]) -> Vec<DiffEntry> {
    entries_up_to(fields, MAX_BODY_FIELDS)
}

/// Hides the value that another tool wrote.
fn hide_before(difference: &mut FieldDifference) {
    if matches!(difference.before, DifferenceSide::Shown(_)) {
        difference.before = DifferenceSide::Hidden;
    }
}

fn entries_up_to(differences: &[FieldDifference], max_others: usize) -> Vec<DiffEntry> {
    let is_removed = |difference: &&FieldDifference| difference.after == DifferenceSide::Absent;
    let (removed, others): (Vec<_>, Vec<_>) = differences.iter().partition(is_removed);
    let shown = removed.iter().take(MAX_REMOVED_FIELDS).chain(others.iter().take(max_others));
    let mut entries: Vec<DiffEntry> = shown.map(|difference| entry(difference)).collect();
    let more_removed = removed.len().saturating_sub(MAX_REMOVED_FIELDS);
    let more = more_removed + others.len().saturating_sub(max_others);
    if more > 0 {
        let fields = if more == 1 { "field" } else { "fields" };
        let removed = if more_removed > 0 { format!(" ({more_removed} removed)") } else { String::new() };
        entries.push(DiffEntry::Note(format!("… and {more} more {fields}{removed}")));
    }
    entries
}

/// A difference as a diff entry. Differences that are only counted become a note.
fn entry(difference: &FieldDifference) -> DiffEntry {
    let FieldDifference { path, before, after } = difference;
    let value = |side: &DifferenceSide| match side {
        DifferenceSide::Shown(value) => Some(value.clone()),
        DifferenceSide::Absent
        | DifferenceSide::Hidden
        | DifferenceSide::SecretContent
        | DifferenceSide::SecretFields(_) => None,
    };
    let change = match (before, after) {
        (_, DifferenceSide::SecretContent | DifferenceSide::SecretFields(_)) => {
            return DiffEntry::Note(difference.to_string());
        }
        (_, DifferenceSide::Absent) => FieldChange::Removed,
        (DifferenceSide::Absent, _) => FieldChange::Added,
        _ => FieldChange::Changed,
    };
    FieldDiff { change, path: path.clone(), before: value(before), after: value(after) }.into()
}

#[cfg(test)]
mod tests {
    use qontract_inventory::{DifferenceSide, FieldDifference};
    use serde_json::json;

    use super::{MAX_BODY_FIELDS, MAX_OTHER_FIELDS, MAX_REMOVED_FIELDS, body_entries, entries, hide_before};

    fn differences(removed: usize, added: usize) -> Vec<FieldDifference> {
        let one = |number: usize, before: DifferenceSide, after: DifferenceSide| FieldDifference {
            path: format!("data.{number}"),
            before,
            after,
        };
        let added =
            (0..added).map(|number| one(number, DifferenceSide::Absent, DifferenceSide::Shown(json!(1))));
        let removed =
            (0..removed).map(|number| one(number, DifferenceSide::Shown(json!("x")), DifferenceSide::Absent));
        added.chain(removed).collect()
    }

    fn check(removed: usize, added: usize, expect: [&str; 2]) {
        let entries = entries(&differences(removed, added));
        let ends =
            [entries.first(), entries.last()].map(|entry| entry.map(ToString::to_string).unwrap_or_default());
        assert_eq!(ends, expect);
    }

    #[test]
    fn removed_fields_come_first_and_are_truncated_last() {
        check(1, 1, ["- data.0: \"x\"", "+ data.0: 1"]);
        check(0, MAX_OTHER_FIELDS, ["+ data.0: 1", "+ data.29: 1"]);
        check(0, MAX_OTHER_FIELDS + 1, ["+ data.0: 1", "… and 1 more field"]);
        check(MAX_REMOVED_FIELDS, 0, ["- data.0: \"x\"", "- data.99: \"x\""]);
        check(MAX_REMOVED_FIELDS, MAX_OTHER_FIELDS + 34, ["- data.0: \"x\"", "… and 34 more fields"]);
        check(
            MAX_REMOVED_FIELDS + 12,
            MAX_OTHER_FIELDS + 22,
            ["- data.0: \"x\"", "… and 34 more fields (12 removed)"],
        );
        check(0, 0, ["", ""]);
    }

    #[test]
    fn a_body_shows_many_more_fields() {
        let check = |fields: usize, expect: &str| {
            let entries = body_entries(&differences(0, fields));
            assert_eq!(entries.last().map(ToString::to_string).as_deref(), Some(expect));
        };
        check(MAX_OTHER_FIELDS + 1, "+ data.30: 1");
        check(MAX_BODY_FIELDS, "+ data.1999: 1");
        check(MAX_BODY_FIELDS + 2, "… and 2 more fields");
    }

    #[test]
    fn only_a_value_before_is_hidden() {
        let check = |before: DifferenceSide, expect: DifferenceSide| {
            let mut difference =
                FieldDifference { path: "data.x".to_owned(), before, after: DifferenceSide::Shown(json!(2)) };
            hide_before(&mut difference);
            assert_eq!((difference.before, difference.after), (expect, DifferenceSide::Shown(json!(2))));
        };
        check(DifferenceSide::Shown(json!(1)), DifferenceSide::Hidden);
        check(DifferenceSide::Absent, DifferenceSide::Absent);
    }

    #[test]
    fn a_hidden_side_has_no_value() {
        let check = |before: DifferenceSide, after: DifferenceSide, expect: &str| {
            let entries = entries(&[FieldDifference { path: "data.x".to_owned(), before, after }]);
            assert_eq!(entries[0].to_string(), expect);
        };
        check(DifferenceSide::Hidden, DifferenceSide::Absent, "- data.x");
        check(DifferenceSide::Absent, DifferenceSide::Hidden, "+ data.x");
        check(DifferenceSide::Hidden, DifferenceSide::Hidden, "~ data.x");
        check(DifferenceSide::Hidden, DifferenceSide::Shown(json!(2)), "~ data.x: 2");
        check(DifferenceSide::Shown(json!(1)), DifferenceSide::Shown(json!(2)), "~ data.x: 1 → 2");
        check(
            DifferenceSide::Hidden,
            DifferenceSide::SecretFields(2),
            "data.x: 2 fields that come from a secret differ",
        );
        check(
            DifferenceSide::Hidden,
            DifferenceSide::SecretContent,
            "data.x: content that depends on a secret differs",
        );
    }
}
