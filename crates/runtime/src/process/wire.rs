//! The messages on stdin and stdout, one JSON document each way.

mod texts;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::State;
use crate::erased::{Fact, Kind};
use crate::fault::Fault;
use crate::key::{Scope, ShardKey};
use crate::place::{Place, Places};
use crate::plan::{Change, ChangeKind, Group, Plan, PlanStage, Step, Thing, Wait};
use crate::state::{Declared, Disabled, Shard};
pub use texts::{ShownTexts, check_texts};

/// Dimensions with their values, in order: `[["cluster", "c"]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Parts(Vec<(String, String)>);

impl Parts {
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn key(&self) -> ShardKey {
        ShardKey::new(self.pairs())
    }

    fn scope(&self) -> Scope {
        Scope::new(self.pairs())
    }
}

impl From<&ShardKey> for Parts {
    fn from(key: &ShardKey) -> Self {
        Self(key.parts().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// The answer to `describe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(rename = "description")]
    pub about: String,
    /// Its queries.
    #[serde(default)]
    pub queries: Vec<Query>,
    /// Its flags.
    #[serde(default)]
    pub flags: Vec<Flag>,
    /// Whether it supports a sandbox folder.
    #[serde(default)]
    pub sandbox: bool,
}

/// A query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The name of its operation.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A flag.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: String,
    /// Its help text.
    #[serde(default)]
    pub help: String,
    /// The dimension by which it selects shards.
    pub dimension: Option<String>,
}

/// A location in an answer, which the runner maps to a location in the data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// The query.
    pub query: String,
    /// JSON pointer to an object of its answer.
    #[serde(rename = "at")]
    pub object: String,
    /// JSON pointer from there, into the datafile.
    #[serde(default)]
    pub below: String,
}

/// A fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrong {
    /// In `declare`: the shard with the fault.
    #[serde(default)]
    key: Parts,
    /// The message.
    text: String,
    /// A hint what to do.
    hint: Option<String>,
    /// In `declare`: the location.
    place: Option<At>,
    /// Whether a retry may succeed.
    #[serde(default)]
    transient: bool,
}

impl Wrong {
    fn fault(&self, place: Option<Place>) -> Fault {
        let make = if self.transient { Fault::remote } else { Fault::author };
        let mut fault = make(self.text.clone()).at(place);
        fault.hint.clone_from(&self.hint);
        fault
    }
}

/// The answer to `declare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    #[serde(default)]
    common: Value,
    #[serde(default)]
    shards: Vec<DeclaredShard>,
    #[serde(default)]
    faults: Vec<Wrong>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredShard {
    #[serde(default)]
    key: Parts,
    #[serde(default)]
    target: Value,
    state: Value,
    place: Option<At>,
    disabled: Option<String>,
}

impl Declaration {
    /// Applies `redact` to the texts of faults and to the reasons for disabled shards.
    pub fn redacted(mut self, redact: impl Fn(&str) -> String) -> Self {
        for Wrong { text, hint, .. } in &mut self.faults {
            *text = redact(text);
            *hint = hint.as_deref().map(&redact);
        }
        for shard in &mut self.shards {
            shard.disabled = shard.disabled.as_deref().map(&redact);
        }
        self
    }

    /// Converts the answer to declared state; locations are looked up in the locations of the query answers.
    pub fn into_state(self, places: &BTreeMap<String, Places>) -> State {
        let find = |at: &At| {
            let place = places.get(&at.query)?.of(&at.object)?;
            Some(place.below(&at.below))
        };
        let mut declared = Declared::new(self.common);
        for shard in self.shards {
            let place = shard.place.as_ref().and_then(find);
            let disabled = shard.disabled.map(|by| Disabled { by, place: place.clone() });
            declared.add(shard.key.key(), Shard { disabled, ..Shard::new(shard.target, shard.state, place) });
        }
        for wrong in self.faults {
            let fault = wrong.fault(wrong.place.as_ref().and_then(find));
            declared.fault(wrong.key.key(), fault);
        }
        declared
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireThing {
    scope: Parts,
    kind: String,
    name: String,
}

impl WireThing {
    fn thing(&self) -> Thing {
        Thing { scope: self.scope.scope(), kind: self.kind.clone(), name: self.name.clone() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireScope {
    scope: Parts,
    #[serde(default)]
    count: usize,
    unknown: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireWant {
    thing: WireThing,
    #[serde(default)]
    delete: bool,
    unresolved: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireGroup {
    #[serde(default)]
    name: String,
    steps: Vec<WireStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireStep {
    changes: Vec<WireChange>,
    #[serde(default)]
    action: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireChange {
    kind: WireKind,
    thing: WireThing,
    what: String,
    #[serde(default)]
    diff: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
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

/// The answer to `plan`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    #[serde(default)]
    scopes: Vec<WireScope>,
    #[serde(default)]
    wants: Vec<WireWant>,
    #[serde(default)]
    groups: Vec<WireGroup>,
    #[serde(default)]
    waits: Vec<String>,
    #[serde(default)]
    faults: Vec<Wrong>,
    #[serde(skip)]
    place: Option<Place>,
}

impl Planned {
    /// The reason why the plan is invalid, if it is: guards must see every step and know the scope of every
    /// removal.
    pub fn problem(&self) -> Option<String> {
        let mut known: BTreeSet<&Parts> = BTreeSet::new();
        for WireScope { scope, .. } in &self.scopes {
            // A scope that is listed as unknown and as known would count as known.
            if !known.insert(scope) {
                return Some(format!("`{}` is listed more than once in `scopes`", scope.scope()));
            }
        }
        for step in self.groups.iter().flat_map(|group| &group.steps) {
            if step.changes.is_empty() {
                return Some("a step lists no changes".to_owned());
            }
            for change in &step.changes {
                let scope = &change.thing.scope;
                if change.kind.kind().removes() && !known.contains(scope) {
                    let scope = scope.scope();
                    return Some(format!(
                        "something is removed in `{scope}`, which is not listed in `scopes`"
                    ));
                }
            }
        }
        None
    }

    /// Sets the source location of the shard.
    pub fn at(mut self, place: Option<&Place>) -> Self {
        self.place = place.cloned();
        self
    }

    /// Takes the scopes with their object counts, to free their memory.
    pub fn take_scopes(&mut self) -> BTreeMap<Scope, Result<usize, Fault>> {
        let known = |scope: WireScope| match scope.unknown {
            Some(why) => (scope.scope.scope(), Err(Fault::remote(why))),
            None => (scope.scope.scope(), Ok(scope.count)),
        };
        std::mem::take(&mut self.scopes).into_iter().map(known).collect()
    }

    /// Takes the facts about desired state, to free their memory.
    pub fn take_facts(&mut self) -> Vec<Fact> {
        let fact = |want: WireWant| {
            let kind = match (want.unresolved, want.delete) {
                (Some(why), _) => Kind::Unresolved(Fault::remote(why)),
                (None, true) => Kind::Delete,
                (None, false) => Kind::Present,
            };
            (want.thing.thing(), self.place.clone(), kind)
        };
        std::mem::take(&mut self.wants).into_iter().map(fact).collect()
    }

    /// The plan.
    pub fn plan(&self) -> Plan<Value> {
        let change = |change: &WireChange| {
            Change::new(change.kind.kind(), change.thing.thing(), change.what.clone())
                .with_diff(change.diff.clone())
                .at(self.place.clone())
        };
        let step = |step: &WireStep| Step {
            changes: step.changes.iter().map(change).collect(),
            action: step.action.clone(),
        };
        // Programs rely on their order: no two groups run concurrently.
        let group = |(stage, group): (u32, &WireGroup)| Group {
            name: group.name.clone(),
            stage: PlanStage::Write(stage),
            steps: group.steps.iter().map(step).collect(),
        };
        let wait = |text: &String| Wait { text: text.clone(), place: self.place.clone() };
        Plan {
            groups: (0..).zip(&self.groups).map(group).collect(),
            waits: self.waits.iter().map(wait).collect(),
            held: Vec::new(),
            faults: self.faults.iter().map(|wrong| wrong.fault(self.place.clone())).collect(),
        }
    }
}

/// The answer to `apply`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Whether the target changed since the step was planned.
    #[serde(default)]
    pub stale: bool,
}
