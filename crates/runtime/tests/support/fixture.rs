//! A small integration and its target: shelves with boxes. It uses every part of the contract: a secret to
//! resolve, an ownership marker, deletion, versions, groups of steps, waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use qontract_bundle::{Pool, load};
use qontract_graphql::Engine;
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, BundleReader, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf,
    DesiredItem, DesiredState, Fault, IntegrationMeta, LoadedBundle, ObjectKey, Observed, Operation, Options,
    Plan, PlanStage, QuerySource, ReadContext, Scope, ShardKey, StagedIntegration, Step, StepGroup,
    WriteContext,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use qontract_testkit::SeededRng;

/// A box that is declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredBox {
    pub name: String,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<bool>,
}

/// Shelf ↦ its boxes.
pub type Stock = BTreeMap<String, Vec<DeclaredBox>>;

/// A bundle that declares this, and defines the integration.
pub fn source(stock: &Stock) -> Arc<dyn BundleReader> {
    let listed = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/shelf"]}});
    source_with(stock, listed)
}

/// A bundle that declares this stock, with further datafiles.
pub fn source_with(stock: &Stock, mut data: serde_json::Value) -> Arc<dyn BundleReader> {
    for (shelf, boxes) in stock {
        data[format!("/{shelf}.yml")] = json!({"$schema": "/shelf", "name": shelf, "boxes": boxes});
    }
    let field = |name: &str, type_: &str| json!({"name": name, "type": type_});
    let bundle = json!({"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {}, "data": data,
        "graphql": [
            {"name": "Query", "fields": [
                {"name": "integrations_v1", "type": "Integration", "isList": true, "datafileSchema": "/integration"},
                {"name": "removal_approvals_v1", "type": "Approval", "isList": true, "datafileSchema": "/approval"},
                {"name": "shelves", "type": "Shelf", "isList": true, "datafileSchema": "/shelf"}]},
            {"name": "Approval", "fields": [field("integration", "string"), field("expiration", "string"), field("path", "string"), field("once", "boolean"),
                {"name": "removals", "type": "Removal", "isList": true}]},
            {"name": "Removal", "fields": [field("target", "string"), field("kind", "string"), field("name", "string"),
                field("plan", "string")]},
            {"name": "Integration", "fields": [field("name", "string"), field("path", "string"),
                {"name": "schemas", "type": "string", "isList": true}]},
            {"name": "Shelf", "fields": [field("name", "string"),
                {"name": "boxes", "type": "Box", "isList": true}]},
            {"name": "Box", "fields": [field("name", "string"), field("content", "string"), field("delete", "boolean"),
                field("secret", "boolean")]}]});
    let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).unwrap();
    Arc::new(LoadedBundle::new(Arc::new(Engine::new(Arc::new(bundle)).unwrap())))
}

/// A box in the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBox {
    pub content: String,
    pub version: u64,
    pub ours: bool,
}

/// Probability of each fault, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub silent_read: usize,
    pub failed_read: usize,
    pub failed_write: usize,
    pub lost_answer: usize,
    pub meddling: usize,
    pub no_secret: usize,
    /// The process crashes after this many writes.
    pub crash_after: Option<usize>,
}

/// The target.
pub struct Shelves {
    pub boxes: BTreeMap<String, BTreeMap<String, StoredBox>>,
    pub faults: Faults,
    pub chance: SeededRng,
    pub writes: usize,
    pub problems: Vec<String>,
    /// Number of reads in progress, and their maximum.
    pub reading: (usize, usize),
    /// Notified when the process of this run crashes.
    pub crash: Arc<tokio::sync::Notify>,
    observed: BTreeSet<String>,
    unresolved: BTreeSet<String>,
    versions: u64,
}

impl Shelves {
    pub fn new(boxes: BTreeMap<String, BTreeMap<String, StoredBox>>, seed: u64) -> Self {
        Self {
            boxes,
            faults: Faults::default(),
            chance: SeededRng::new(seed),
            writes: 0,
            problems: Vec::new(),
            reading: (0, 0),
            crash: Arc::default(),
            observed: BTreeSet::new(),
            unresolved: BTreeSet::new(),
            versions: 100,
        }
    }

    /// A new run begins.
    pub fn begin(&mut self, faults: Faults) {
        self.faults = faults;
        self.writes = 0;
        self.crash = Arc::default();
        self.observed.clear();
        self.unresolved.clear();
    }

    /// Changes one of our boxes concurrently, as another owner.
    fn meddle(&mut self) {
        self.versions += 1;
        let version = self.versions;
        let ours: Vec<&mut StoredBox> =
            self.boxes.values_mut().flat_map(BTreeMap::values_mut).filter(|stored| stored.ours).collect();
        let chosen = self.chance.below(ours.len());
        if let Some(stored) = ours.into_iter().nth(chosen) {
            (stored.content, stored.version) = ("meddled with".to_owned(), version);
        }
    }
}

pub struct ShelvesIntegration {
    pub about: IntegrationMeta,
    pub world: Arc<Mutex<Shelves>>,
}

impl ShelvesIntegration {
    pub fn new(world: Arc<Mutex<Shelves>>) -> Self {
        Self { about: IntegrationMeta::new("shelves", "boxes").query::<ShelvesQuery>(), world }
    }
}

#[derive(Deserialize)]
pub struct ShelvesQuery {
    shelves: Vec<ShelvesAnswer>,
}

#[derive(Deserialize)]
struct ShelvesAnswer {
    name: String,
    boxes: Option<Vec<DeclaredBox>>,
}

impl Operation for ShelvesQuery {
    const SOURCE: QuerySource = QuerySource::new(
        "Shelves",
        "query Shelves { shelves { name boxes { name content delete secret } } }",
        &[],
    );
}

#[derive(Clone, Debug)]
pub enum Action {
    Put { shelf: String, name: String, content: String, version: Option<u64> },
    Remove { shelf: String, name: String, version: u64 },
}

fn scope(shelf: &str) -> Scope {
    Scope::new([("shelf", shelf)])
}

/// The declared state of all shelves.
pub fn declared(data: &Data) -> Result<DeclaredState<(), String, Vec<DeclaredBox>>, Fault> {
    let answer = data.query::<ShelvesQuery>()?;
    let mut declared = DeclaredState::new(());
    for (index, shelf) in answer.data.shelves.into_iter().enumerate() {
        let place = answer.places.of(&format!("/shelves/{index}"));
        let key = ShardKey::new([("shelf", shelf.name.as_str())]);
        declared.add(key, Shard::new(shelf.name, shelf.boxes.unwrap_or_default(), place));
    }
    Ok(declared)
}

impl StagedIntegration for ShelvesIntegration {
    type Common = ();
    type Target = String;
    type State = Vec<DeclaredBox>;
    type Desired = String;
    type Current = (String, StoredBox);
    type Action = Action;

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        declared(data)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
    ) -> Result<Vec<DesiredItem<String>>, Fault> {
        let mut world = self.world.lock().unwrap();
        let shelf = &view.shard.target;
        let mut wants = Vec::new();
        for declared in &view.shard.state {
            let needs_secret = declared.secret == Some(true) && declared.delete != Some(true);
            let unresolved = needs_secret && {
                let percent = world.faults.no_secret;
                world.chance.percent(percent)
            };
            if unresolved {
                world.unresolved.insert(shelf.clone());
            }
            let wanted = match declared.delete {
                Some(true) => DesiredState::Delete,
                _ if unresolved => DesiredState::Unresolved(Fault::remote("no secret")),
                _ => DesiredState::Present(declared.content.clone()),
            };
            let object =
                ObjectKey { scope: scope(shelf), kind: "Box".to_owned(), name: declared.name.clone() };
            wants.push(DesiredItem { object, place: None, state: wanted });
        }
        Ok(wants)
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
        _: &[DesiredItem<String>],
    ) -> Result<CurrentState<(String, StoredBox)>, Fault> {
        let shelf = &view.shard.target;
        {
            let mut world = self.world.lock().unwrap();
            let now = world.reading.0 + 1;
            world.reading = (now, world.reading.1.max(now));
        }
        tokio::task::yield_now().await;
        let answered = {
            let mut world = self.world.lock().unwrap();
            world.reading.0 -= 1;
            let (silent, failed) = (world.faults.silent_read, world.faults.failed_read);
            world.observed.remove(shelf);
            if world.chance.percent(silent) {
                None
            } else if world.chance.percent(failed) {
                Some(Observed::Unknown(Fault::remote("no answer")))
            } else {
                world.observed.insert(shelf.clone());
                let boxes = world.boxes.get(shelf).cloned().unwrap_or_default();
                Some(Observed::Known(boxes.into_iter().filter(|(_, stored)| stored.ours).collect()))
            }
        };
        match answered {
            Some(observed) => Ok(BTreeMap::from([(scope(shelf), observed)])),
            None => std::future::pending().await,
        }
    }

    fn plan(
        &self,
        wanted: &[DesiredItem<String>],
        current: &CurrentState<(String, StoredBox)>,
    ) -> Plan<Action> {
        let mut plan = Plan::default();
        for (scope, observed) in current {
            let Observed::Known(boxes) = observed else { continue };
            let shelf = scope.get("shelf").unwrap().to_owned();
            let mut steps = Vec::new();
            let of = |name: &str| boxes.iter().find(|(other, _)| other == name).map(|(_, stored)| stored);
            for want in wanted {
                let change = |kind, what: &str| Change::new(kind, want.object.clone(), what);
                let name = want.object.name.clone();
                match (&want.state, of(&name)) {
                    (DesiredState::Present(content), there)
                        if there.is_none_or(|there| there.content != *content) =>
                    {
                        let kind = if there.is_some() { ChangeKind::Change } else { ChangeKind::Add };
                        let version = there.map(|there| there.version);
                        let action =
                            Action::Put { shelf: shelf.clone(), name, content: content.clone(), version };
                        steps.push(Step::new(change(kind, "put box"), action));
                    }
                    (DesiredState::Delete, Some(there)) => {
                        let action = Action::Remove { shelf: shelf.clone(), name, version: there.version };
                        steps.push(Step::new(change(ChangeKind::Remove, "remove box"), action));
                    }
                    _ => {}
                }
            }
            for (name, there) in boxes {
                if wanted.iter().all(|want| want.object.name != *name) {
                    let object =
                        ObjectKey { scope: scope.clone(), kind: "Box".to_owned(), name: name.clone() };
                    let action =
                        Action::Remove { shelf: shelf.clone(), name: name.clone(), version: there.version };
                    steps.push(Step::new(Change::new(ChangeKind::Remove, object, "remove box"), action));
                }
            }
            // Two groups, so that a failure stops only one of them.
            let rest = steps.split_off(steps.len() / 2);
            plan.groups.extend([steps, rest].map(|steps| StepGroup {
                name: shelf.clone(),
                stage: PlanStage::default(),
                steps,
            }));
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, action: &Action) -> Result<ApplyResult, Fault> {
        let (result, crash, crashing) = {
            let mut world = self.world.lock().unwrap();
            let result = world.apply(action);
            let crash = world.faults.crash_after.is_some_and(|after| world.writes > after);
            (result, crash, Arc::clone(&world.crash))
        };
        if crash {
            crashing.notify_one();
            std::future::pending::<()>().await;
        }
        result
    }
}

impl Shelves {
    fn apply(&mut self, action: &Action) -> Result<ApplyResult, Fault> {
        let Faults { failed_write, lost_answer, meddling, .. } = self.faults;
        if self.chance.percent(meddling) {
            self.meddle();
        }
        if self.chance.percent(failed_write) {
            return Err(Fault::remote("the write failed"));
        }
        self.versions += 1;
        let version = self.versions;
        let applied = match action {
            Action::Put { shelf, name, content, version: expected } => {
                let boxes = self.boxes.entry(shelf.clone()).or_default();
                let there = boxes.get(name);
                if there.is_some_and(|there| !there.ours) {
                    // Another owner has a box of this name.
                    return Err(Fault::author(format!("`{name}` is not ours")));
                }
                if there.map(|there| there.version) != *expected {
                    return Ok(ApplyResult::Stale);
                }
                boxes.insert(name.clone(), StoredBox { content: content.clone(), version, ours: true });
                ApplyResult::Done
            }
            Action::Remove { shelf, name, version: expected } => {
                if !self.observed.contains(shelf) || self.unresolved.contains(shelf) {
                    self.problems.push(format!("`{name}` removed from a shelf that was not observed"));
                }
                let boxes = self.boxes.entry(shelf.clone()).or_default();
                match boxes.get(name) {
                    Some(there) if !there.ours => {
                        self.problems.push(format!("`{name}` of another owner removed"));
                    }
                    Some(there) if there.version != *expected => return Ok(ApplyResult::Stale),
                    _ => {}
                }
                boxes.remove(name);
                ApplyResult::Done
            }
        };
        self.writes += 1;
        if self.chance.percent(lost_answer) {
            return Err(Fault::remote("the answer was lost"));
        }
        Ok(applied)
    }
}
