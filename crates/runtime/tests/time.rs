//! Time, commits and plan digests: what integrations get instead of a clock, and what a run reports about its
//! plans.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::date;
use qontract_access::Mode;
use qontract_bundle::{Pool, load};
use qontract_graphql::Engine;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::record::{LineResolvers, RunTiming};
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, BundleReader, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf,
    DesiredItem, Fault, Integration, IntegrationMeta, LoadedBundle, ObjectKey, Observed, Options, Plan,
    ReadContext, RunOutcome, RunRecord, RunRequest, Scope, ShardKey, SourceLocation, StagedIntegration, Wait,
    WriteContext, run,
};
use serde_json::json;

/// An integration that notes the times and commits that it gets. Each pass takes five seconds.
#[derive(Clone)]
struct Clockwork {
    about: IntegrationMeta,
    notes: Arc<Mutex<Vec<String>>>,
    /// The cards of its plan, each with the datafile that declares it.
    cards: Vec<[&'static str; 2]>,
    /// Number of passes with an operation in progress.
    waits: usize,
}

impl Clockwork {
    fn new() -> Self {
        let about = IntegrationMeta::new("clockwork", "Notes the time");
        Self { about, notes: Arc::default(), cards: vec![["a", "/a.yml"]], waits: 0 }
    }

    fn note(&self, text: String) {
        self.notes.lock().unwrap().push(text);
    }
}

fn scope() -> Scope {
    Scope::new([("app", "a")])
}

type View<'a> = DeclaredShardView<'a, (), (), ()>;

impl StagedIntegration for Clockwork {
    type Common = ();
    type Target = ();
    type State = ();
    type Desired = ();
    type Current = ();
    type Action = ();

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        declared.add(ShardKey::new([("app", "a")]), Shard::new((), (), None));
        Ok(declared)
    }

    async fn resolve(&self, read: &ReadContext, _: View<'_>) -> Result<Vec<DesiredItem<()>>, Fault> {
        let base = read.base.as_ref().map(|base| base.commit().map(str::to_owned));
        self.note(format!("head {:?} base {base:?}", read.data.commit()));
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        read: &ReadContext,
        _: View<'_>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<()>, Fault> {
        self.note(format!("read {} on {}", read.now, read.today()));
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(BTreeMap::from([(scope(), Observed::Known(Vec::new()))]))
    }

    fn plan(&self, _: &[DesiredItem<()>], _: &CurrentState<()>) -> Plan<()> {
        let mut plan = Plan::default();
        for [name, file] in &self.cards {
            let object = ObjectKey { scope: scope(), kind: "Card".to_owned(), name: (*name).to_owned() };
            let change = Change::new(ChangeKind::Add, object, "write card");
            plan.add_step(change.at(Some(SourceLocation::datafile(file, ""))), ());
        }
        let passes = self.notes.lock().unwrap().iter().filter(|note| note.starts_with("read")).count();
        if passes <= self.waits {
            plan.waits.push(Wait { text: format!("pass {passes}"), place: None });
        }
        plan
    }

    async fn apply(&self, write: &WriteContext<'_>, (): &()) -> Result<ApplyResult, Fault> {
        self.note(format!("write {}", write.now));
        Ok(ApplyResult::Done)
    }
}

fn bundle(commit: &str) -> Arc<dyn BundleReader> {
    let bundle = json!({"git_commit": commit, "git_commit_timestamp": "", "schemas": {}, "resources": {},
        "data": {}, "graphql": [{"name": "Query", "fields": [{"name": "none", "type": "string"}]}]});
    let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).unwrap();
    Arc::new(LoadedBundle::new(Arc::new(Engine::new(Arc::new(bundle)).unwrap())))
}

fn request(mode: Mode) -> RunRequest {
    let protected = ProtectedKinds::default();
    let mut request = RunRequest::new("run", mode, bundle("of-head"), date(2026, 3, 31), protected);
    request.validate_schemas = false;
    request.now = "2026-03-31T23:59:58Z".parse::<Timestamp>().unwrap();
    request
}

fn perform(integration: &Clockwork, request: &RunRequest) -> RunOutcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(&Integration::staged(integration.clone()), request))
}

fn record(outcome: &RunOutcome) -> RunRecord {
    let file = |place: &SourceLocation| place.path.to_string();
    RunRecord::new(
        outcome,
        RunTiming { began: Timestamp::UNIX_EPOCH, milliseconds: 0 },
        LineResolvers::uniform(&file),
    )
}

#[test]
fn each_pass_has_a_time_of_its_own_that_follows_the_monotonic_clock() {
    let integration = Clockwork { waits: 1, ..Clockwork::new() };
    let about = integration.about.clone().patience(Duration::from_secs(1), Duration::from_mins(1));
    let integration = Clockwork { about, ..integration };
    let outcome = perform(&integration, &request(Mode::Real));
    let notes = integration.notes.lock().unwrap().clone();
    assert_eq!(
        notes,
        [
            "head Some(\"of-head\") base None",
            "read 2026-03-31T23:59:58Z on 2026-03-31",
            "write 2026-03-31T23:59:58Z",
            "read 2026-04-01T00:00:04Z on 2026-04-01",
            "write 2026-04-01T00:00:04Z",
        ]
    );
    let shard = outcome.shards.values().next().unwrap();
    assert_eq!(shard.planned_at.unwrap().to_string(), "2026-03-31T23:59:58Z");
}

#[test]
fn the_base_is_a_handle_to_the_other_bundle() {
    let integration = Clockwork::new();
    let mut request = request(Mode::Real);
    request.base = Some(bundle("of-base"));
    perform(&integration, &request);
    let first = integration.notes.lock().unwrap().remove(0);
    assert_eq!(first, "head Some(\"of-head\") base Some(Some(\"of-base\"))");
}

#[test]
fn the_digest_of_a_plan_is_the_same_in_every_run_and_changes_with_the_plan() {
    let digest = |mode, cards: &[[&'static str; 2]], waits| {
        let outcome = perform(&Clockwork { cards: cards.into(), waits, ..Clockwork::new() }, &request(mode));
        let record = record(&outcome);
        assert_eq!(record.shards["app=a"].plan_digest.as_ref().map(ToString::to_string).unwrap().len(), 64);
        record.plan_digest.unwrap()
    };
    let first = digest(Mode::DryRun, &[["a", "/a.yml"], ["b", "/b.yml"]], 0);
    assert_eq!(digest(Mode::DryRun, &[["a", "/a.yml"], ["b", "/b.yml"]], 0), first);
    assert_eq!(digest(Mode::Real, &[["a", "/a.yml"], ["b", "/b.yml"]], 0), first, "in a real run as well");
    assert_eq!(digest(Mode::DryRun, &[["a", "/other.yml"], ["b", "/b.yml"]], 0), first, "in another file");
    assert_eq!(digest(Mode::DryRun, &[["a", "/a.yml"], ["b", "/b.yml"]], 9), first, "while it waits");
    assert_ne!(digest(Mode::DryRun, &[["b", "/b.yml"], ["a", "/a.yml"]], 0), first, "in another order");
    assert_ne!(digest(Mode::DryRun, &[["a", "/a.yml"]], 0), first);
}

#[test]
fn records_of_earlier_versions_are_read() {
    let outcome = perform(&Clockwork::new(), &request(Mode::DryRun));
    let written = serde_json::to_value(record(&outcome)).unwrap();
    assert_eq!(written["version"], qontract_runtime::record::RECORD_VERSION);
    assert_eq!(serde_json::from_value::<RunRecord>(written.clone()).unwrap(), record(&outcome));
    // A record of version 3 has neither digests nor the times of plans.
    let mut old = written;
    old["version"] = 3.into();
    old.as_object_mut().unwrap().remove("plan_digest");
    let shard = old["shards"]["app=a"].as_object_mut().unwrap();
    shard.retain(|name, _| !["planned_at", "plan_digest"].contains(&name.as_str()));
    let read: RunRecord = serde_json::from_value(old).unwrap();
    assert_eq!((read.version, read.plan_digest.as_ref(), read.state().as_str()), (3, None, "ok"));
    assert_eq!(read.shards["app=a"].planned_at, None);
}
