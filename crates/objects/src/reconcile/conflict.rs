//! Predicts how the field managers of a live object affect a write. Pure.

use qontract_client_kubernetes::{ConflictingManager, FieldConflicts, KubernetesError, ObjectAddress};
use qontract_runtime::{DiffEntry, Fault};

use super::fault::cluster_fault;
use crate::scope::Sensitivity;

/// Maximum number of fields that a note names for a manager.
const MAX_NAMED_FIELDS: usize = 10;

/// The effect of other field managers on a write.
#[derive(Clone, Debug, Default)]
pub struct ExpectedConflict {
    /// Notes about the managers whose fields the write overrules, removes or keeps.
    pub notes: Vec<DiffEntry>,
    /// The refusal that is expected from the cluster. A dry run reports this refusal if the cluster does not
    /// validate writes; a real run leaves the decision to the cluster.
    pub refusal: Option<Fault>,
}

impl ExpectedConflict {
    /// The effect of these conflicts. Keys of objects that may hold secrets are not shown.
    pub fn new(address: &ObjectAddress, conflicts: &FieldConflicts, sensitivity: &Sensitivity) -> Self {
        let is_secret = sensitivity.is_sensitive() || address.kind.name == "Secret";
        let shown = |managers: &[ConflictingManager]| -> Vec<ConflictingManager> {
            let managers = managers.iter().cloned();
            managers.map(|one| if is_secret { one.without_keys() } else { one }).collect()
        };
        let refused = [shown(&conflicts.refused), shown(&conflicts.excluding)].concat();
        if !refused.is_empty() {
            let error = KubernetesError::Conflict { object: address.to_string(), conflicts: refused };
            return Self { notes: Vec::new(), refusal: Some(cluster_fault(&error)) };
        }
        // If a template renders the object from secrets, nothing about the differences of the object is
        // shown.
        if matches!(sensitivity, Sensitivity::Template) {
            return Self::default();
        }
        let removed = conflicts.removed.iter().cloned();
        let removed = removed.map(|one| if is_secret { one.without_keys() } else { one }.to_string());
        let kept = shown(&conflicts.kept).into_iter().map(kept_note);
        let notes = shown(&conflicts.overruled).into_iter().map(note).chain(removed).chain(kept);
        Self { notes: notes.map(DiffEntry::Note).collect(), refusal: None }
    }
}

/// The note about a manager whose fields are overruled.
fn note(conflict: ConflictingManager) -> String {
    let ConflictingManager { manager, fields, excludes: _ } = conflict;
    format!("overrules the field manager `{manager}`, which set {}", field_list(fields))
}

/// The note about a manager whose fields are kept.
fn kept_note(conflict: ConflictingManager) -> String {
    let ConflictingManager { manager, fields, excludes: _ } = conflict;
    format!(
        "keeps {}, which the field manager `{manager}` set and the data does not declare",
        field_list(fields)
    )
}

fn field_list(mut fields: Vec<String>) -> String {
    let more = fields.len().saturating_sub(MAX_NAMED_FIELDS);
    fields.truncate(MAX_NAMED_FIELDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use qontract_client_kubernetes::{ExcludedFields, ExcludingField, Kind};
    use serde_json::Value;

    use super::*;

    /// One manager with these fields.
    fn managers(fields: &[&str]) -> Vec<ConflictingManager> {
        let fields = fields.iter().map(|field| format!("`{field}`")).collect();
        vec![ConflictingManager { manager: "m".to_owned(), fields, excludes: None }]
    }

    #[track_caller]
    fn check(kind: &str, sensitivity: &Sensitivity, conflicts: &FieldConflicts, expect: [&str; 2]) {
        let address = ObjectAddress::in_namespace(Kind::named(kind), "ns", "a");
        let ExpectedConflict { notes, refusal } = ExpectedConflict::new(&address, conflicts, sensitivity);
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!([notes.join("; "), refusal.map(|fault| fault.text).unwrap_or_default()], expect);
    }

    #[test]
    fn overruled_managers_are_noted_unless_the_write_is_refused() {
        let overruled = || managers(&["data.a", "data.b"]);
        let taken = FieldConflicts { overruled: overruled(), ..FieldConflicts::default() };
        let note = "overrules the field manager `m`, which set `data.a`, `data.b`";
        check("ConfigMap", &Sensitivity::Public, &taken, [note, ""]);
        let both = FieldConflicts {
            overruled: overruled(),
            refused: managers(&["data.c"]),
            ..FieldConflicts::default()
        };
        let refusal = "ConfigMap `a` in `ns` conflicts with other managers: `m` owns `data.c`";
        check("ConfigMap", &Sensitivity::Public, &both, ["", refusal]);
    }

    #[test]
    fn fields_of_manual_changes_that_stay_are_named() {
        let conflicts = FieldConflicts { kept: managers(&["data.a", "data.b"]), ..FieldConflicts::default() };
        let who = "which the field manager `m` set and the data does not declare";
        check(
            "ConfigMap",
            &Sensitivity::Public,
            &conflicts,
            [&format!("keeps `data.a`, `data.b`, {who}"), ""],
        );
        check("Secret", &Sensitivity::Public, &conflicts, [&format!("keeps `data`, {who}"), ""]);
        check("ConfigMap", &Sensitivity::Template, &conflicts, ["", ""]);
    }

    #[test]
    fn no_key_of_a_secret_is_shown() {
        let taken =
            FieldConflicts { overruled: managers(&["data.a", "data.b"]), ..FieldConflicts::default() };
        let note = "overrules the field manager `m`, which set `data`";
        check("Secret", &Sensitivity::Entry(Arc::new(Value::Null)), &taken, [note, ""]);
        check("Secret", &Sensitivity::Public, &taken, [note, ""]);
        check("ConfigMap", &Sensitivity::Filled(Arc::new(Value::Null)), &taken, [note, ""]);
        check("ConfigMap", &Sensitivity::Template, &taken, ["", ""]);
        let refused = FieldConflicts { refused: managers(&["data.a"]), ..FieldConflicts::default() };
        let refusal = "Secret `a` in `ns` conflicts with other managers: `m` owns `data`";
        check("Secret", &Sensitivity::Template, &refused, ["", refusal]);
    }

    #[test]
    fn fields_that_exclude_declared_ones_are_named_with_the_reason() {
        let removed = |managers: &[&str]| ExcludingField {
            managers: managers.iter().map(ToString::to_string).collect(),
            field: "spec.env[A].value".to_owned(),
            declared: "valueFrom".to_owned(),
        };
        let taken =
            FieldConflicts { removed: vec![removed(&["m"]), removed(&[])], ..FieldConflicts::default() };
        let why = "excludes the declared `valueFrom`";
        let notes = format!(
            "removes `spec.env[A].value`, which the field manager `m` set and which {why}; \
             removes `spec.env[A].value`, which has no field manager and {why}"
        );
        check("Deployment", &Sensitivity::Public, &taken, [&notes, ""]);
        check("Deployment", &Sensitivity::Template, &taken, ["", ""]);
        let excludes = ExcludedFields {
            declared: vec!["`valueFrom`".to_owned()],
            removal: Some("kubectl patch".to_owned()),
        };
        let mut excluding = managers(&["spec.env[A].value"]);
        excluding[0].excludes = Some(excludes);
        let refused = FieldConflicts { excluding, ..taken };
        let text = format!(
            "Deployment `a` in `ns` conflicts with other managers: `m` owns `spec.env[A].value`, which {why}"
        );
        check("Deployment", &Sensitivity::Public, &refused, ["", &text]);
        let address = ObjectAddress::in_namespace(Kind::named("Deployment"), "ns", "a");
        let hint =
            |sensitivity| ExpectedConflict::new(&address, &refused, &sensitivity).refusal.unwrap().hint;
        assert!(hint(Sensitivity::Public).unwrap().ends_with(": `kubectl patch`"));
        assert!(!hint(Sensitivity::Template).unwrap().contains("kubectl"));
    }

    #[test]
    fn many_fields_are_counted() {
        let fields: Vec<String> = (0..12).map(|number| format!("data.{number}")).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let taken = FieldConflicts { overruled: managers(&fields), ..FieldConflicts::default() };
        let address = ObjectAddress::in_namespace(Kind::named("ConfigMap"), "ns", "a");
        let expected = ExpectedConflict::new(&address, &taken, &Sensitivity::Public);
        assert!(expected.notes[0].to_string().ends_with("`data.9` and 2 more"), "{expected:?}");
    }
}
