//! The wire format: one JSON document on stdin, one on stdout.

mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::declaration::{LocatedShard, ProgramDeclaration, ProgramShard, ShardFault};
use super::{ProcessState, ProgramTarget};
use crate::fault::Fault;
use crate::flag::ArgumentKind;
use crate::key::Scope;
use crate::meta::Patience;
use crate::plan::{Change, ChangeKind, Degradation, ObjectKey, Plan, PlanStage, Step, StepGroup, Wait};
use crate::source_location::{SourceLocation, SourceLocations};
use crate::state::{DeclaredState, DisabledReason, RemovalConsent, Shard};
use crate::type_erasure::{DesiredFact, DesiredKind};
use crate::wire_dimensions::WireDimensions;
pub use texts::{ShownTexts, check_texts};

/// The response to `describe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeResponse {
    /// The name of the integration.
    pub name: String,
    /// The description of the integration.
    #[serde(rename = "description")]
    pub about: String,
    /// The declared queries.
    #[serde(default)]
    pub queries: Vec<WireQuery>,
    /// The flags of the integration.
    #[serde(default)]
    pub flags: Vec<WireFlag>,
    /// Whether the program supports a sandbox directory.
    #[serde(default)]
    pub sandbox: bool,
    /// Whether `plan` receives the results of the queries on base.
    #[serde(default)]
    pub base: bool,
    /// The time that a run waits for operations in progress.
    pub patience: Option<WirePatience>,
    /// Whether the program plans and applies its own steps or only declares objects.
    #[serde(default)]
    pub form: ProgramForm,
    /// The dimension whose value decides in which slot a shard runs.
    pub slots_by: Option<String>,
}

/// The requests that a program responds to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramForm {
    /// `declare`, `plan` and `apply`.
    #[default]
    Steps,
    /// Only `declare`: it declares objects, which an integration of qontract manages.
    Objects,
}

/// The time that a run waits, in seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WirePatience {
    every: u32,
    total: u32,
}

impl From<WirePatience> for Patience {
    fn from(wire: WirePatience) -> Self {
        let seconds = |number: u32| Duration::from_secs(number.into());
        Self { every: seconds(wire.every), total: seconds(wire.total) }
    }
}

/// A query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireQuery {
    /// The name of the query's operation.
    pub name: String,
    /// The GraphQL document.
    pub text: String,
    /// Whether the query is executed only if the GraphQL types have all of its fields.
    #[serde(default)]
    pub if_known: bool,
}

/// A flag.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireFlag {
    /// The name of the flag, without dashes.
    pub name: String,
    /// The help text.
    #[serde(default)]
    pub help: String,
    /// The dimension by which the flag selects shards.
    pub dimension: Option<String>,
    /// The short option, without the dash.
    pub short: Option<char>,
    /// The environment variable that provides the value if the flag is not given.
    pub variable: Option<String>,
    /// The kind of positional argument; absent if it is a flag.
    pub argument: Option<WireArgument>,
    /// Whether the flag is a switch that prints the desired state.
    #[serde(default)]
    pub print: bool,
}

/// The number of times that a positional argument is given.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireArgument {
    /// The argument is given exactly once.
    Required,
    /// The argument is given at most once.
    Optional,
    /// The argument is given any number of times.
    Repeated,
}

impl From<WireArgument> for ArgumentKind {
    fn from(wire: WireArgument) -> Self {
        match wire {
            WireArgument::Required => Self::Required,
            WireArgument::Optional => Self::Optional,
            WireArgument::Repeated => Self::Repeated,
        }
    }
}

/// A location in a query result, which the runner maps to a location in the data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ResultPointer {
    /// The name of the query.
    pub query: String,
    /// JSON pointer to an object in the result of the query.
    #[serde(rename = "at")]
    pub object: String,
    /// JSON pointer relative to that object. It is followed in the object's datafile.
    #[serde(default)]
    pub below: String,
}

/// A fault that a program reports.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WireFault {
    /// In `declare`: the key of the shard with the fault.
    #[serde(default)]
    key: WireDimensions,
    /// The message of the fault.
    text: String,
    /// A hint on how to fix it.
    hint: Option<String>,
    /// In `declare`: the location of the fault in the query results.
    place: Option<ResultPointer>,
    /// Whether a retry may succeed.
    #[serde(default)]
    transient: bool,
}

impl WireFault {
    fn fault(&self, place: Option<SourceLocation>) -> Fault {
        let make = if self.transient { Fault::remote } else { Fault::author };
        let mut fault = make(self.text.clone()).at(place);
        fault.hint.clone_from(&self.hint);
        fault
    }
}

/// The response to `declare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclareResponse {
    #[serde(default)]
    common: Value,
    #[serde(default)]
    shards: Vec<WireShard>,
    #[serde(default)]
    faults: Vec<WireFault>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireShard {
    #[serde(default)]
    key: WireDimensions,
    #[serde(default)]
    target: Value,
    #[serde(default)]
    targets: Vec<Value>,
    state: Value,
    place: Option<ResultPointer>,
    disabled: Option<String>,
    #[serde(default)]
    may_remove: RemovalConsent,
}

impl DeclareResponse {
    /// Applies `redact` to the messages of faults and to the reasons why shards are disabled.
    pub fn redacted(mut self, redact: impl Fn(&str) -> String) -> Self {
        for WireFault { text, hint, .. } in &mut self.faults {
            *text = redact(text);
            *hint = hint.as_deref().map(&redact);
        }
        for shard in &mut self.shards {
            shard.disabled = shard.disabled.as_deref().map(&redact);
        }
        self
    }

    /// Converts the response to declared state, with the source locations of the query results.
    pub fn into_state(self, places: &BTreeMap<String, SourceLocations>) -> ProcessState {
        let find = |at: &ResultPointer| {
            let place = places.get(&at.query)?.of(&at.object)?;
            Some(place.below(&at.below))
        };
        let mut declared = DeclaredState::new(self.common);
        for shard in self.shards {
            let place = shard.place.as_ref().and_then(find);
            let disabled = shard.disabled.map(|by| DisabledReason::new(by, place.clone()));
            let key = shard.key.key();
            let target = ProgramTarget { whole: shard.target, parts: shard.targets };
            // If several targets were passed as one value, the trust in each of them would not be decided
            // independently.
            let is_ambiguous = !target.whole.is_null() && !target.parts.is_empty();
            let whole = Shard::new(target, shard.state, place.clone()).consent_to_removals(shard.may_remove);
            declared.add(key.clone(), Shard { disabled, ..whole });
            if is_ambiguous {
                let text = format!("`{key}` has both `target` and `targets`");
                declared.add_fault(key, Fault::operator(text).at(place));
            }
        }
        for wire_fault in self.faults {
            let fault = wire_fault.fault(wire_fault.place.as_ref().and_then(find));
            declared.add_fault(wire_fault.key.key(), fault);
        }
        declared
    }
}

/// The response to `declare` of a program whose shards are managed by an integration of qontract.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "S: ProgramShard")]
pub struct DeclareShardsResponse<S> {
    #[serde(default = "Vec::new")]
    shards: Vec<S>,
    #[serde(default)]
    faults: Vec<WireFault>,
}

impl<S: ProgramShard> DeclareShardsResponse<S> {
    /// Applies `redact` to the messages of faults.
    pub fn redacted(mut self, redact: impl Fn(&str) -> String) -> Self {
        for WireFault { text, hint, .. } in &mut self.faults {
            *text = redact(text);
            *hint = hint.as_deref().map(&redact);
        }
        self
    }

    /// Converts the response to a declaration, with the source locations of the query results.
    pub fn into_declaration(self, places: &BTreeMap<String, SourceLocations>) -> ProgramDeclaration<S> {
        let find = |at: &ResultPointer| Some(places.get(&at.query)?.of(&at.object)?.below(&at.below));
        let shards = self
            .shards
            .into_iter()
            .map(|shard| LocatedShard { place: shard.pointer().and_then(find), shard });
        let faults = self.faults.iter().map(|fault| ShardFault {
            key: fault.key.key(),
            fault: fault.fault(fault.place.as_ref().and_then(find)),
        });
        ProgramDeclaration { faults: faults.collect(), shards: shards.collect() }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireObject {
    scope: WireDimensions,
    kind: String,
    name: String,
}

impl WireObject {
    fn object_key(&self) -> ObjectKey {
        ObjectKey { scope: self.scope.scope(), kind: self.kind.clone(), name: self.name.clone() }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireScope {
    scope: WireDimensions,
    #[serde(default)]
    count: usize,
    unknown: Option<String>,
    /// Whether the scope is unknown because its target was refused.
    #[serde(default)]
    refused: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireWant {
    thing: WireObject,
    #[serde(default)]
    delete: bool,
    unresolved: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireGroup {
    #[serde(default)]
    name: String,
    steps: Vec<WireStep>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireStep {
    changes: Vec<WireChange>,
    /// The action as the program wrote it. It may contain secrets, and no digest depends on it.
    #[serde(default, skip_serializing)]
    action: Value,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireChange {
    kind: WireKind,
    thing: WireObject,
    what: String,
    #[serde(default)]
    diff: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum WireKind {
    Add,
    Change,
    Replace,
    Remove,
}

impl WireKind {
    fn kind(self) -> ChangeKind {
        match self {
            WireKind::Add => ChangeKind::Add,
            WireKind::Change => ChangeKind::Change,
            WireKind::Replace => ChangeKind::Replace,
            WireKind::Remove => ChangeKind::Remove,
        }
    }
}

/// The response to `plan`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlanResponse {
    #[serde(default)]
    scopes: Vec<WireScope>,
    #[serde(default)]
    wants: Vec<WireWant>,
    /// The objects whose removal is approved by an observation of the program.
    #[serde(default)]
    approved: Vec<WireObject>,
    #[serde(default)]
    groups: Vec<WireGroup>,
    #[serde(default)]
    waits: Vec<String>,
    #[serde(default)]
    degraded: Vec<String>,
    #[serde(default)]
    faults: Vec<WireFault>,
    approval: Option<String>,
    #[serde(skip)]
    place: Option<SourceLocation>,
}

impl PlanResponse {
    /// The reason why the plan is invalid, if any. A plan must be complete because guards check every step and need
    /// the scope of every removal.
    pub fn problem(&self) -> Option<String> {
        let mut listed: BTreeSet<&WireDimensions> = BTreeSet::new();
        for WireScope { scope, .. } in &self.scopes {
            // A scope that is listed both as unknown and as known would be treated as known.
            if !listed.insert(scope) {
                return Some(format!("`{}` is listed more than once in `scopes`", scope.scope()));
            }
        }
        for step in self.groups.iter().flat_map(|group| &group.steps) {
            if step.changes.is_empty() {
                return Some("a step lists no changes".to_owned());
            }
            for change in &step.changes {
                let scope = &change.thing.scope;
                if change.kind.kind().removes() && !listed.contains(scope) {
                    let scope = scope.scope();
                    return Some(format!(
                        "a step removes an object in `{scope}`, which is not listed in `scopes`"
                    ));
                }
            }
        }
        None
    }

    /// Sets the source location of the shard.
    pub fn at(mut self, place: Option<&SourceLocation>) -> Self {
        self.place = place.cloned();
        self
    }

    /// Moves out the scopes with their object counts, to free their memory. A scope that is unknown because its
    /// target was refused is not a failure; `has_refused` is false if no target was refused.
    pub fn take_scopes(&mut self, has_refused: bool) -> BTreeMap<Scope, Result<usize, Fault>> {
        let count = |scope: WireScope| match scope.unknown {
            Some(why) if scope.refused && has_refused => (scope.scope.scope(), Err(Fault::guard(why))),
            Some(why) => (scope.scope.scope(), Err(Fault::remote(why))),
            None => (scope.scope.scope(), Ok(scope.count)),
        };
        std::mem::take(&mut self.scopes).into_iter().map(count).collect()
    }

    /// Moves out the facts about desired state and approvals, to free the memory of the response.
    pub fn take_facts(&mut self) -> Vec<DesiredFact> {
        let (wants, approved) = (std::mem::take(&mut self.wants), std::mem::take(&mut self.approved));
        let wanted = wants.into_iter().map(|want| {
            let kind = match (want.unresolved, want.delete) {
                (Some(why), _) => DesiredKind::Unresolved(Fault::remote(why)),
                (None, true) => DesiredKind::Delete,
                (None, false) => DesiredKind::Present,
            };
            DesiredFact { object: want.thing.object_key(), place: self.place.clone(), kind }
        });
        let approved = approved.iter().map(|thing| DesiredFact {
            object: thing.object_key(),
            place: self.place.clone(),
            kind: DesiredKind::Approved,
        });
        wanted.chain(approved).collect()
    }

    /// Converts the response to a plan.
    pub fn plan(&self) -> Plan<Value> {
        let change = |change: &WireChange| {
            Change::new(change.kind.kind(), change.thing.object_key(), change.what.clone())
                .with_diff(change.diff.clone())
                .at(self.place.clone())
        };
        let step = |step: &WireStep| Step {
            changes: step.changes.iter().map(change).collect(),
            action: step.action.clone(),
        };
        // Programs rely on the order of groups, so each group is a separate stage: groups do not run concurrently.
        let group = |(stage, group): (u32, &WireGroup)| StepGroup {
            name: group.name.clone(),
            stage: PlanStage::Write(stage),
            steps: group.steps.iter().map(step).collect(),
        };
        let wait = |text: &String| Wait { text: text.clone(), place: self.place.clone() };
        let degradation = |text: &String| Degradation { text: text.clone(), place: self.place.clone() };
        Plan {
            groups: (0..).zip(&self.groups).map(group).collect(),
            waits: self.waits.iter().map(wait).collect(),
            rollouts: Vec::new(),
            degraded: self.degraded.iter().map(degradation).collect(),
            hints: Vec::new(),
            held: Vec::new(),
            faults: self.faults.iter().map(|wire_fault| wire_fault.fault(self.place.clone())).collect(),
            refused: BTreeSet::new(),
            approval: self.approval.clone(),
        }
    }
}

/// The response to `print`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintResponse {
    /// The desired state as text.
    pub text: Option<String>,
    /// Objects whose desired state could not be determined.
    #[serde(default)]
    wants: Vec<WireWant>,
    /// Errors of the shard.
    #[serde(default)]
    faults: Vec<WireFault>,
}

impl PrintResponse {
    /// The faults of the shard and of its unresolved objects, at the source location of the shard.
    pub fn faults(&self, place: Option<&SourceLocation>) -> Vec<Fault> {
        let unresolved = self.wants.iter().filter_map(|want| {
            let text = format!("{}; {} is not printed", want.unresolved.as_ref()?, want.thing.object_key());
            Some(Fault::remote(text).at(place.cloned()))
        });
        self.faults.iter().map(|fault| fault.fault(place.cloned())).chain(unresolved).collect()
    }
}

/// The response to `apply`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyResponse {
    /// Whether the target changed since the step was planned.
    #[serde(default)]
    pub stale: bool,
}
