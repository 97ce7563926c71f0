//! Early exit as in qontract-reconcile: 50 recorded comparisons of desired states, and 7 recorded dry runs.
//!
//! **Invariant:** where qontract-reconcile sees a change, so does the comparison of declared states. The cases
//! in which only the comparison here sees one are listed with the reason, as in `docs/compatibility.md`.
//! **Invariant:** a dry run here covers every shard that the recorded dry run covers, and ends with its exit
//! code. A full run there is a run of all affected shards here.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use jiff::civil::date;
use qontract_access::Mode;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::state::{Comparison, DeclaredState, Shard, compare};
use qontract_runtime::{
    ApplyResult, BundleReader, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem, Fault,
    Integration, IntegrationMeta, Observed, Options, Plan, ReadContext, RunRequest, Scope, ShardKey,
    StagedIntegration, WriteContext, run,
};
use qontract_testkit::vectors;
use serde_json::{Value, json};
use support::fixture::{self, DeclaredBox, ShelvesQuery, Stock};

/// The cases in which qontract-reconcile sees no change, with the reason why there is one.
const UNSEEN_BY_PEER: [(u64, &str); 4] = [
    (12, "the order of a list is ignored; here an integration sorts a list whose order has no meaning"),
    (37, "the order of a list is ignored; here an integration sorts a list whose order has no meaning"),
    (42, "content keys collide: the string `NONE` and null have the same key"),
    (137, "repetition in a list is ignored"),
];

/// The shards of a state with the shard configuration `state.*.shard`: each item belongs to the shard that it
/// names. Any other state is one shard.
fn declared(state: &Value, is_sharded: bool) -> DeclaredState<Value, (), Value> {
    let items = state.get("state").and_then(Value::as_object);
    let shard_of = |item: &Value| item["shard"].as_str().map(str::to_owned);
    let (Some(items), true) = (items, is_sharded) else {
        let mut declared = DeclaredState::new(Value::Null);
        declared.add(ShardKey::default(), Shard::new((), state.clone(), None));
        return declared;
    };
    let mut shards: BTreeMap<String, BTreeMap<&String, &Value>> = BTreeMap::new();
    let mut common = state.clone();
    for (name, item) in items {
        if let Some(shard) = shard_of(item) {
            shards.entry(shard).or_default().insert(name, item);
            common["state"].as_object_mut().unwrap().remove(name);
        }
    }
    let mut declared = DeclaredState::new(common);
    for (shard, items) in shards {
        declared.add(ShardKey::new([("shard", shard.as_str())]), Shard::new((), json!(items), None));
    }
    declared
}

fn compared(case: &Value) -> Comparison {
    let is_sharded = case["selectors"] == json!(["state.*.shard"]);
    compare(&declared(&case["old"], is_sharded), &declared(&case["new"], is_sharded))
}

fn recorded() -> Value {
    let text = std::fs::read_to_string(vectors().join("check/early_exit.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_change_that_the_peer_sees_is_seen() {
    let recorded = recorded();
    let mut unseen = BTreeSet::new();
    for case in recorded["cases"].as_array().unwrap() {
        let (id, expected, comparison) = (case["id"].as_u64().unwrap(), &case["expected"], compared(case));
        match expected["diff_found"].as_bool() {
            Some(true) => assert!(!comparison.is_empty(), "case {id}: the change is not seen"),
            Some(false) if !comparison.is_empty() => {
                unseen.insert(id);
            }
            // The peer fails with an exception.
            Some(false) | None => {}
        }
        if case["selectors"] != json!(["state.*.shard"]) {
            continue;
        }
        for shard in expected["affected_shards"].as_array().into_iter().flatten() {
            let key = ShardKey::new([("shard", shard.as_str().unwrap())]);
            let is_affected = comparison.affects(&key) || comparison.gone.contains(&key);
            assert!(is_affected, "case {id}: the shard {key} is not affected");
        }
    }
    let listed: BTreeSet<u64> = UNSEEN_BY_PEER.iter().map(|(id, _)| *id).collect();
    assert_eq!(unseen, listed);
}

/// The recorded dry runs in which qontract-reconcile runs the integration once for all shards, with the shards
/// that run here, and the reason.
const FULL_RUNS_OF_PEER: [(usize, &[&str], &str); 2] = [
    (0, &["c1", "c2", "c3"], "more shards than the limit of two are affected; there is no limit here"),
    (1, &["c1", "c2"], "the state of base is unknown, so all shards of head run, each by itself"),
];

/// A shard whose presence makes `declare` fail: the state of that bundle cannot be computed.
const RAISES: &str = "raises";

/// An integration with the shard configuration of the recorded runs. It notes the shards that it runs.
struct ShardedItems {
    meta: IntegrationMeta,
    /// The shards whose runs fail.
    failures: BTreeSet<String>,
    ran: Arc<Mutex<BTreeSet<String>>>,
}

impl StagedIntegration for ShardedItems {
    type Common = ();
    type Target = String;
    type State = Vec<DeclaredBox>;
    type Desired = ();
    type Current = ();
    type Action = ();

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let declared = fixture::declared(data)?;
        if declared.shards.contains_key(&ShardKey::new([("shelf", RAISES)])) {
            return Err(Fault::author("the state cannot be computed"));
        }
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        _: DeclaredShardView<'_, (), String, Self::State>,
    ) -> Result<Vec<DesiredItem<()>>, Fault> {
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, Self::State>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<()>, Fault> {
        let shard = &view.shard.target;
        self.ran.lock().unwrap().insert(shard.clone());
        if self.failures.contains(shard) {
            return Err(Fault::operator("the shard fails"));
        }
        Ok(BTreeMap::from([(Scope::new([("shelf", shard.as_str())]), Observed::Known(Vec::new()))]))
    }

    fn plan(&self, _: &[DesiredItem<()>], _: &CurrentState<()>) -> Plan<()> {
        Plan::default()
    }

    async fn apply(&self, _: &WriteContext<'_>, (): &()) -> Result<ApplyResult, Fault> {
        unreachable!("a dry run applies nothing")
    }
}

/// A bundle that declares the items of a recorded state: a shelf for each shard, with a box for each item.
fn bundle(state: &Value, computed: &Value) -> Arc<dyn BundleReader> {
    let mut stock = Stock::new();
    for (name, item) in state["state"].as_object().unwrap() {
        let text = |field: &str| item[field].as_str().unwrap().to_owned();
        let declared = DeclaredBox { name: name.clone(), content: text("hash"), delete: None, secret: None };
        stock.entry(text("shard")).or_default().push(declared);
    }
    if computed == "raise" {
        stock.insert(RAISES.to_owned(), Vec::new());
    }
    fixture::source(&stock)
}

#[test]
fn a_recorded_dry_run_has_its_shards_and_its_exit_code() {
    let mut full_runs = BTreeSet::new();
    for (number, recorded) in recorded()["runs"].as_array().unwrap().iter().enumerate() {
        let (input, expected) = (&recorded["input"], &recorded["expected"]);
        let failures = input["shard_failures"].as_object().unwrap().keys().cloned().collect();
        let ran = Arc::<Mutex<BTreeSet<String>>>::default();
        let meta = IntegrationMeta::new("items", "sharded").query::<ShelvesQuery>();
        let integration = Integration::staged(ShardedItems { meta, failures, ran: Arc::clone(&ran) });
        let head = bundle(&input["new"], &input["current_state"]);
        let mut request =
            RunRequest::new("run", Mode::DryRun, head, date(2026, 1, 1), ProtectedKinds::default());
        request.base = Some(bundle(&input["old"], &input["previous_state"]));
        request.validate_schemas = false;
        // The recorded runs trust the addresses of head.
        request.trust_head = true;
        request.only_affected = input["check_only_affected_shards"] == true;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let outcome = runtime.block_on(run(&integration, &request));
        assert_eq!(u64::from(outcome.exit_code()), expected["exit"].as_u64().unwrap(), "run {number}");
        let ran = ran.lock().unwrap().clone();
        let recorded_shards: Option<BTreeSet<String>> = serde_json::from_value(expected["ran"].clone())
            .ok()
            .map(|shards: Vec<Vec<String>>| shards.into_iter().flatten().collect());
        match (expected["mode"].as_str().unwrap(), recorded_shards) {
            ("sharded", Some(shards)) => assert_eq!(ran, shards, "run {number}"),
            ("full", None) => {
                let listed = FULL_RUNS_OF_PEER.iter().find(|(listed, ..)| *listed == number);
                let (_, shards, _) = listed.unwrap_or_else(|| panic!("run {number} is not listed"));
                assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), *shards, "run {number}");
                full_runs.insert(number);
            }
            (mode, shards) => panic!("run {number}: {mode} {shards:?}"),
        }
        let failed: Vec<String> = outcome
            .shards
            .iter()
            .filter(|(_, shard)| !shard.faults.is_empty())
            .map(|(key, _)| key.get("shelf").unwrap().to_owned())
            .collect();
        let failures: Vec<String> = input["shard_failures"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(failed, failures, "run {number}: a failed shard is named, and the others run");
    }
    assert_eq!(full_runs, FULL_RUNS_OF_PEER.iter().map(|(number, ..)| *number).collect());
}
