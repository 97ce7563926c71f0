//! The plan report: the model that all formats render, and its JSON form.

use std::collections::BTreeMap;

use qontract_access::{ChangeKind, Mode};
use qontract_diagnostics::pluralize;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::invalid::InvalidData;

/// The version of the JSON form. It is incremented when a field is renamed, removed or changes its meaning,
/// but not when an optional field is added.
pub const SCHEMA_VERSION: u32 = 1;

/// The changes that one or more integrations would make, or made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The mode.
    pub mode: Mode,
    /// The most severe status of all integrations; `invalid` if the data is invalid.
    #[serde(default)]
    pub status: ReportStatus,
    /// The data before the change, if the run compared two bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<RevisionInfo>,
    /// The data that was planned.
    pub head: RevisionInfo,
    /// A description of the targets, if they are known: `sandbox ./sandbox`, or the clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<String>,
    /// Counts over all integrations.
    pub totals: Totals,
    /// The integrations that ran, by name.
    pub integrations: Vec<IntegrationReport>,
    /// The integrations that the change does not affect, by name.
    pub unaffected: Vec<UnaffectedIntegration>,
    /// The integrations that could not run on this machine, by name; their changes are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<UncheckedIntegration>,
    /// The findings that prevented planning; absent if the data is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<InvalidData>,
    /// Remarks about the plan as a whole.
    pub notes: Vec<String>,
}

/// The revision of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionInfo {
    /// The SHA-256 of the bundle; empty if the data could not be bundled.
    pub sha256: String,
    /// The Git commit from which the bundle was built, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the bundle was built from a directory whose files differ from that commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
}

/// Numbers of changes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of objects to add.
    pub add: usize,
    /// Number of objects to change.
    pub change: usize,
    /// Number of objects to replace.
    pub replace: usize,
    /// Number of objects to remove.
    pub remove: usize,
    /// Number of fields, list items and keys that are removed from objects that remain.
    #[serde(default)]
    pub fields_removed: usize,
    /// Number of changes that guards hold until they are approved.
    pub held: usize,
    /// Number of changes that are not made because the desired state of their scope is unknown.
    #[serde(default)]
    pub not_done: usize,
    /// Number of objects, scopes and shards that are not planned because an input or an address is not
    /// approved yet, or because a command does not report its changes.
    #[serde(default)]
    pub not_planned: usize,
    /// Number of objects that are no longer managed and stay in the target. A shard with an unknown number of
    /// objects counts as one.
    #[serde(default)]
    pub released: usize,
    /// Number of errors.
    pub errors: usize,
    /// Number of steps that were executed; absent in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<usize>,
}

/// An integration that the change does not affect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnaffectedIntegration {
    /// The name.
    pub integration: String,
    /// The reason why the integration is not affected.
    pub reason: String,
}

/// An integration that could not run on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncheckedIntegration {
    /// The name.
    pub integration: String,
    /// The requirement that this machine does not meet.
    pub reason: String,
}

/// Shards for which the data disables an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledShards {
    /// The reason.
    pub reason: String,
    /// The keys of the shards.
    pub shards: Vec<String>,
}

/// The report of one integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrationReport {
    /// The name.
    pub integration: String,
    /// The id of the integration's run, for `qontract explain run ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The digest of the integration's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
    /// The status of the integration's run.
    pub status: ReportStatus,
    /// The counts.
    pub totals: Totals,
    /// The changed lines of the data that caused the run.
    pub causes: Vec<Location>,
    /// The changes, including held changes.
    pub changes: Vec<ReportedChange>,
    /// Objects, scopes and shards that were not planned, although the change may affect them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplanned: Vec<UnplannedEntry>,
    /// Objects that the base manages and the head does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<ReleasedEntry>,
    /// Operations in progress in the target for which the run waits.
    pub waits: Vec<ReportedWait>,
    /// Rollouts in progress for which the run does not wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<ReportedWait>,
    /// Objects that do not work as declared, although nothing failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<ReportedWait>,
    /// The errors.
    pub errors: Vec<ReportedFault>,
    /// Remarks about the run.
    pub notes: Vec<String>,
    /// Shards for which the data disables the integration, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<DisabledShards>,
    /// The datafile that would approve the held changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

/// The status of an integration, or of a whole report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportStatus {
    /// No changes, and everything was planned.
    #[default]
    Unchanged,
    /// One or more changes, none of them held, or objects that are no longer managed.
    Changes,
    /// Nothing failed, but not all changes are known: something was not planned, or a command does not report its
    /// changes.
    NotKnown,
    /// Nothing failed, but an object does not work as declared.
    Degraded,
    /// Nothing failed, but an operation in the target is still in progress after a real run.
    Waiting,
    /// One or more changes are held, and nothing failed.
    Held,
    /// Something failed.
    Failed,
    /// Nothing was planned, because the data is invalid; only for a whole report.
    Invalid,
}

/// A change to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedChange {
    /// The kind of change.
    pub action: ChangeKind,
    /// The shard that planned the change.
    pub shard: String,
    /// The scope of the object, by dimension: `cluster`, `namespace`.
    pub scope: BTreeMap<String, String>,
    /// The kind of the object, such as `ConfigMap`.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The namespace of the object, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// A description of the change, without its sign.
    pub summary: String,
    /// The fields that differ.
    pub fields: Vec<ReportedField>,
    /// Remarks about the change.
    pub notes: Vec<String>,
    /// Remarks that follow the fields, such as the number of omitted fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailing_notes: Vec<String>,
    /// The provenance of the change in the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// The reason why the change is not made; absent if the change is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Whether an approval would allow the change. If so, the change counts as held, otherwise as not done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approvable: bool,
    /// The result of the change in a real run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<StepResult>,
}

/// The result of a change in a real run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepResult {
    /// The change was made.
    Done,
    /// The change failed.
    Failed,
    /// The change was interrupted by a shutdown and may be partially applied.
    Interrupted,
    /// The change was not attempted, because an earlier change failed or because of a shutdown.
    NotTried,
}

/// The kind of change to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldAction {
    /// The field is added.
    Added,
    /// The value of the field changes.
    Changed,
    /// The field is removed.
    Removed,
}

/// A field that differs. The values of sensitive fields are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedField {
    /// The kind of change.
    pub action: FieldAction,
    /// The path of the field, such as `spec.hard.limits.memory`.
    pub path: String,
    /// The value before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Something that was not planned, although the change may affect it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedEntry {
    /// The shard.
    pub shard: String,
    /// Describes what was not planned, the reason, and what happens after the merge.
    pub message: String,
    /// The provenance in the data.
    pub locations: Vec<Location>,
    /// The declared fields that differ between base and head. They were not compared with the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<DeclaredField>,
}

/// A field that the data declares differently in base and head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredField {
    /// The field. Its path is a JSON pointer into the declared state.
    #[serde(flatten)]
    pub field: ReportedField,
    /// The provenance in the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// Objects that the base manages and the head does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedEntry {
    /// The shard; absent if the whole integration is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The reason why the objects are no longer managed, and what happens to them.
    pub message: String,
    /// Number of these objects that the base declares; absent if the number is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<usize>,
    /// Whether the objects are removed together with their target. If not, they stay in the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed_with_target: bool,
    /// The provenance in the data.
    pub locations: Vec<Location>,
}

/// A line of the data repo.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    /// The file, relative to the data repo.
    pub file: String,
    /// The line, counted from 1; absent if the source of the file is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The name of the file before it was renamed; only in causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// The state of an operation or an object in the target: a wait, a rollout or a degradation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedWait {
    /// The shard that observed the state.
    pub shard: String,
    /// A description of the state.
    pub message: String,
    /// The provenance in the data.
    pub locations: Vec<Location>,
}

/// An error of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedFault {
    /// The affected shards; empty if the error affects the whole run.
    pub shards: Vec<String>,
    /// The message.
    pub message: String,
    /// Details, line by line.
    pub details: Vec<String>,
    /// How to fix the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The provenance in the data.
    pub locations: Vec<Location>,
}

/// Maximum number of shards that an error names; further shards are counted.
const MAX_NAMED_SHARDS: usize = 3;

impl ReportedFault {
    /// The affected shards, for example `shard app=billing`; `None` if the message or a location names them.
    pub fn concerned_shards(&self) -> Option<String> {
        let values = |key: &String| -> Vec<String> {
            key.split(", ").filter_map(|part| Some(part.split_once('=')?.1.to_owned())).collect()
        };
        let is_named = |key: &String| values(key).iter().all(|value| self.message.contains(value.as_str()));
        if !self.locations.is_empty() || self.shards.iter().all(is_named) {
            return None;
        }
        let named =
            self.shards.iter().take(MAX_NAMED_SHARDS).map(String::as_str).collect::<Vec<_>>().join("; ");
        let word = if self.shards.len() == 1 { "shard" } else { "shards" };
        Some(match self.shards.len().saturating_sub(MAX_NAMED_SHARDS) {
            0 => format!("{word} {named}"),
            more => format!("{word} {named}; and {more} more"),
        })
    }
}

impl FieldAction {
    /// The sign in front of the change.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Added => "+",
            Self::Changed => "~",
            Self::Removed => "-",
        }
    }
}

impl Location {
    /// Parses `file:line`, or a file name without a line.
    ///
    /// ```
    /// use qontract_report::Location;
    /// let at = Location::parse("data/a.yml:7");
    /// assert_eq!((at.file.as_str(), at.line), ("data/a.yml", Some(7)));
    /// assert_eq!(Location::parse("data/a.yml").line, None);
    /// ```
    pub fn parse(text: &str) -> Self {
        let split = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        match split {
            Some((file, line)) => Self { file: file.to_owned(), line: Some(line), renamed_from: None },
            None => Self { file: text.to_owned(), line: None, renamed_from: None },
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file)?,
            None => f.write_str(&self.file)?,
        }
        match &self.renamed_from {
            Some(old) => write!(f, " (renamed from {old})"),
            None => Ok(()),
        }
    }
}

impl Totals {
    /// Counts changes and errors.
    pub fn of(changes: &[ReportedChange], errors: &[ReportedFault]) -> Self {
        let mut totals = Self { errors: errors.len(), ..Self::default() };
        for change in changes {
            *match (&change.held, change.action) {
                (Some(_), _) if change.approvable => &mut totals.held,
                (Some(_), _) => &mut totals.not_done,
                (None, ChangeKind::Add) => &mut totals.add,
                (None, ChangeKind::Change) => &mut totals.change,
                (None, ChangeKind::Replace) => &mut totals.replace,
                (None, ChangeKind::Remove) => &mut totals.remove,
            } += 1;
            if change.held.is_none() && change.action == ChangeKind::Change {
                let is_removed = |field: &&ReportedField| field.action == FieldAction::Removed;
                totals.fields_removed += change.fields.iter().filter(is_removed).count();
            }
        }
        totals
    }

    /// Number of changes that are made, that is, neither held nor not done.
    pub fn changes(&self) -> usize {
        self.add + self.change + self.replace + self.remove
    }

    /// Whether there is anything to report besides held changes and errors.
    pub fn has_news(&self) -> bool {
        self.changes() + self.not_planned + self.released > 0
    }

    /// Whether all counts are 0.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes() + self.held + self.not_done + self.not_planned + self.released + self.errors == 0
    }

    fn plus(self, other: Self) -> Self {
        Self {
            add: self.add + other.add,
            change: self.change + other.change,
            replace: self.replace + other.replace,
            remove: self.remove + other.remove,
            fields_removed: self.fields_removed + other.fields_removed,
            held: self.held + other.held,
            not_done: self.not_done + other.not_done,
            not_planned: self.not_planned + other.not_planned,
            released: self.released + other.released,
            errors: self.errors + other.errors,
            applied: match (self.applied, other.applied) {
                (None, None) => None,
                (one, two) => Some(one.unwrap_or_default() + two.unwrap_or_default()),
            },
        }
    }
}

impl IntegrationReport {
    /// Renames all files, for output outside of the data repo.
    pub fn rename_files(&mut self, name: &dyn Fn(&str) -> String) {
        let Self { causes, changes, unplanned, released, waits, rollouts, degraded, errors, .. } = self;
        let left_out = unplanned.iter_mut().flat_map(|entry| {
            let declared = entry.declared.iter_mut().filter_map(|field| field.location.as_mut());
            entry.locations.iter_mut().chain(declared)
        });
        let left_out = left_out.chain(released.iter_mut().flat_map(|entry| &mut entry.locations));
        let locations = changes.iter_mut().filter_map(|change| change.location.as_mut());
        let observed = waits.iter_mut().chain(rollouts).chain(degraded);
        let locations = locations.chain(observed.flat_map(|one| &mut one.locations));
        let locations = locations.chain(errors.iter_mut().flat_map(|error| &mut error.locations));
        for location in locations.chain(left_out).chain(causes) {
            location.file = name(&location.file);
            location.renamed_from = location.renamed_from.as_deref().map(name);
        }
    }
}

impl PlanReport {
    /// Creates a report without integrations.
    pub fn new(mode: Mode, base: Option<RevisionInfo>, head: RevisionInfo) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            mode,
            status: ReportStatus::Unchanged,
            base,
            head,
            targets: None,
            totals: Totals::default(),
            integrations: Vec::new(),
            unaffected: Vec::new(),
            unchecked: Vec::new(),
            invalid: None,
            notes: Vec::new(),
        }
    }

    /// Marks the data as invalid, with its findings.
    #[must_use]
    pub fn with_invalid(mut self, invalid: InvalidData) -> Self {
        self.status = ReportStatus::Invalid;
        self.totals.errors += invalid.errors;
        self.invalid = Some(invalid);
        self
    }

    /// Adds an integration that ran. Integrations are kept in the order of their names.
    pub fn add(&mut self, integration: IntegrationReport) {
        self.totals = self.totals.plus(integration.totals);
        self.status = self.status.max(integration.status);
        let at = self.integrations.partition_point(|other| other.integration <= integration.integration);
        self.integrations.insert(at, integration);
    }

    /// Adds an integration that the change does not affect.
    pub fn add_unaffected(&mut self, integration: UnaffectedIntegration) {
        let at = self.unaffected.partition_point(|other| other.integration <= integration.integration);
        self.unaffected.insert(at, integration);
    }

    /// Adds an integration that could not run on this machine.
    pub fn add_unchecked(&mut self, integration: UncheckedIntegration) {
        let at = self.unchecked.partition_point(|other| other.integration <= integration.integration);
        self.unchecked.insert(at, integration);
    }

    /// Adds a note to the removal of each namespace: the number of declared objects that are removed with it.
    pub fn note_objects_removed_with_namespaces(&mut self) {
        let mut removed: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
        for IntegrationReport { integration, released, .. } in &self.integrations {
            for entry in released.iter().filter(|entry| entry.removed_with_target) {
                let (Some(shard), Some(objects)) = (&entry.shard, entry.objects) else { continue };
                let (count, parts) = removed.entry(shard.clone()).or_default();
                *count += objects;
                parts.push(format!("{integration}: {objects}"));
            }
        }
        let changes = self.integrations.iter_mut().flat_map(|integration| &mut integration.changes);
        let is_removal =
            |change: &&mut ReportedChange| change.kind == "Namespace" && change.action == ChangeKind::Remove;
        for change in changes.filter(is_removal) {
            let Some((count, parts)) = removed.get(&change.shard) else { continue };
            let objects = pluralize(*count, "declared object");
            change.notes.push(format!("removes {objects} in it ({})", parts.join(", ")));
        }
    }

    /// One sentence for each reason why the data disables integrations, with the number of shards and the
    /// integrations.
    pub fn disabled(&self) -> Vec<String> {
        let mut reasons: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
        for integration in &self.integrations {
            for DisabledShards { reason, shards } in &integration.disabled {
                let (count, names) = reasons.entry(reason).or_default();
                *count += shards.len();
                names.push(&integration.integration);
            }
        }
        let sentence = |(reason, (count, names)): (&str, (usize, Vec<&str>))| {
            let of = match names.as_slice() {
                [one] => format!("`{one}`"),
                names => pluralize(names.len(), "integration"),
            };
            format!("{} of {of} skipped: {reason}", pluralize(count, "shard"))
        };
        reasons.into_iter().map(sentence).collect()
    }

    /// Renames all files, for output outside of the data repo.
    pub fn rename_files(&mut self, name: &dyn Fn(&str) -> String) {
        self.integrations.iter_mut().for_each(|integration| integration.rename_files(name));
    }

    /// The JSON form, with a final newline. Unsafe characters are not escaped here, because the printer
    /// escapes them.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).expect("a report is plain data");
        json.push(b'\n');
        json
    }
}

#[cfg(test)]
mod tests;
