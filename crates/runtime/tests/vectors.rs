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

/// The cases in which more shards are affected here than qontract-reconcile runs, with the reason.
const MORE_SHARDS_HERE: [(u64, &str); 3] = [
    (147, "something outside of the shards changed, too: all shards run"),
    (187, "something outside of the shards changed, too: all shards run"),
    (202, "something outside of the shards changed, too: all shards run"),
];

/// The cases in which qontract-reconcile runs all shards, because more of them are affected than its limit.
const OVER_THE_LIMIT_OF_PEER: [u64; 4] = [57, 97, 242, 247];

/// A step of the path of a shard selector.
#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Member(String),
    Items,
}

/// A shard selector, such as `roles[*].aws_groups[*].account.name`: the path to the lists or objects whose items
/// belong to shards, and the path from an item to the name of its shard.
struct Selector {
    text: String,
    lists: Vec<Segment>,
    name: Vec<Segment>,
}

impl Selector {
    fn parse(text: &str) -> Self {
        let mut lists = Vec::new();
        for part in text.split('.') {
            match (part, part.strip_suffix("[*]")) {
                ("*", _) => lists.push(Segment::Items),
                (_, Some(list)) => lists.extend([Segment::Member(list.to_owned()), Segment::Items]),
                (member, None) => lists.push(Segment::Member(member.to_owned())),
            }
        }
        let innermost = lists.iter().rposition(|segment| *segment == Segment::Items).unwrap();
        let name = lists.split_off(innermost + 1);
        lists.pop();
        Self { text: text.to_owned(), lists, name }
    }

    /// The shard of an item, if it names one.
    fn shard_of(&self, item: &Value) -> Option<String> {
        let find = |value: &'_ Value, segment: &Segment| match segment {
            Segment::Member(name) => value.get(name).cloned(),
            Segment::Items => None,
        };
        let name = self.name.iter().try_fold(item.clone(), |value, segment| find(&value, segment))?;
        name.as_str().map(str::to_owned)
    }

    /// Moves the items that name a shard out of `node`, which is at `path`. The order of a list counts within a
    /// shard.
    fn move_items(&self, node: &mut Value, lists: &[Segment], path: &str, shards: &mut Shards) {
        match (lists, node) {
            ([], Value::Array(items)) => {
                for item in std::mem::take(items) {
                    match self.shard_of(&item) {
                        Some(shard) => {
                            shards.entry(shard).or_default().push(json!([self.text, path, null, item]));
                        }
                        None => items.push(item),
                    }
                }
            }
            ([], Value::Object(items)) => {
                for (name, item) in std::mem::take(items) {
                    match self.shard_of(&item) {
                        Some(shard) => {
                            shards.entry(shard).or_default().push(json!([self.text, path, name, item]));
                        }
                        None => drop(items.insert(name, item)),
                    }
                }
            }
            ([Segment::Member(name), rest @ ..], node) => {
                if let Some(node) = node.get_mut(name) {
                    self.move_items(node, rest, &format!("{path}/{name}"), shards);
                }
            }
            ([Segment::Items, rest @ ..], Value::Array(items)) => {
                for (index, node) in items.iter_mut().enumerate() {
                    self.move_items(node, rest, &format!("{path}/{index}"), shards);
                }
            }
            ([Segment::Items, rest @ ..], Value::Object(items)) => {
                for (name, node) in items {
                    self.move_items(node, rest, &format!("{path}/{name}"), shards);
                }
            }
            _ => {}
        }
    }
}

type Shards = BTreeMap<String, Vec<Value>>;

/// The shards of a state: each item belongs to the shard that it names, and the rest to all shards. Without
/// selectors, the state is one shard.
fn declared(state: &Value, selectors: Option<&[Selector]>) -> DeclaredState<Value, (), Value> {
    let Some(selectors) = selectors else {
        let mut declared = DeclaredState::new(Value::Null);
        declared.add(ShardKey::default(), Shard::new((), state.clone(), None));
        return declared;
    };
    let (mut common, mut shards) = (state.clone(), Shards::new());
    for selector in selectors {
        selector.move_items(&mut common, &selector.lists, "", &mut shards);
    }
    let mut declared = DeclaredState::new(common);
    for (shard, items) in shards {
        declared.add(ShardKey::new([("shard", shard.as_str())]), Shard::new((), json!(items), None));
    }
    declared
}

/// The comparison of the states of a case, and its affected shards if it has shard selectors.
fn compared(case: &Value) -> (Comparison, Option<BTreeSet<String>>) {
    let selectors: Option<Vec<String>> = serde_json::from_value(case["selectors"].clone()).unwrap();
    let selectors: Option<Vec<Selector>> =
        selectors.map(|all| all.iter().map(|text| Selector::parse(text)).collect());
    let [old, new] = ["old", "new"].map(|side| declared(&case[side], selectors.as_deref()));
    let comparison = compare(&old, &new);
    let affected = selectors.is_some().then(|| {
        let keys = old.shards.keys().chain(new.shards.keys());
        let affected = keys.filter(|key| comparison.affects(key) || comparison.gone.contains(key));
        affected.map(|key| key.get("shard").unwrap().to_owned()).collect()
    });
    (comparison, affected)
}

fn recorded() -> Value {
    let text = std::fs::read_to_string(vectors().join("check/early_exit.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_change_that_the_peer_sees_is_seen() {
    let recorded = recorded();
    let (mut unseen, mut more, mut over_limit) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut sharded = 0;
    for case in recorded["cases"].as_array().unwrap() {
        let (id, expected) = (case["id"].as_u64().unwrap(), &case["expected"]);
        let (comparison, affected) = compared(case);
        match expected["diff_found"].as_bool() {
            Some(true) => assert!(!comparison.is_empty(), "case {id}: the change is not seen"),
            Some(false) if !comparison.is_empty() => {
                unseen.insert(id);
            }
            // The peer fails with an exception.
            Some(false) | None => {}
        }
        let names = |field: &str| -> BTreeSet<String> {
            serde_json::from_value(expected[field].clone()).unwrap_or_default()
        };
        let there = names("affected_shards");
        if there.is_empty() {
            over_limit.extend((!names("proposed").is_empty()).then_some(id));
            continue;
        }
        sharded += 1;
        let here = affected.unwrap_or_default();
        assert!(here.is_superset(&there), "case {id}: {there:?} are affected, not only {here:?}");
        more.extend((here != there).then_some(id));
    }
    let listed = |cases: &[(u64, &str)]| -> BTreeSet<u64> { cases.iter().map(|(id, _)| *id).collect() };
    assert_eq!((unseen, sharded), (listed(&UNSEEN_BY_PEER), 17));
    assert_eq!(more, listed(&MORE_SHARDS_HERE));
    assert_eq!(over_limit, OVER_THE_LIMIT_OF_PEER.into());
}

#[test]
fn every_difference_is_named_in_the_list_of_differences() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md"));
    let page = page.unwrap();
    let named: BTreeSet<u64> = page
        .lines()
        .flat_map(|line| line.split("recorded case").skip(1))
        .flat_map(|text| text.split(')').next().unwrap().split(|one: char| !one.is_ascii_digit()))
        .filter_map(|number| number.parse().ok())
        .collect();
    let mut expected: BTreeSet<u64> = OVER_THE_LIMIT_OF_PEER.into();
    expected.extend(UNSEEN_BY_PEER.iter().chain(&MORE_SHARDS_HERE).map(|(id, _)| *id));
    // The case in which the peer fails with an exception.
    expected.insert(82);
    assert_eq!(named, expected);
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

/// A recorded value, and the one slot that accepts it for each number of slots.
#[derive(serde::Deserialize)]
struct RecordedSlots {
    value: String,
    shard_id_by_shards: BTreeMap<String, u32>,
}

#[derive(serde::Deserialize)]
struct SlotVectors {
    vectors: Vec<RecordedSlots>,
}

#[test]
fn slots_equal_the_recorded_ones() {
    let Some(file) = qontract_testkit::vector_file("fleet/is_in_shard.json") else { return };
    let SlotVectors { vectors } = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(!vectors.is_empty());
    let mut different = Vec::new();
    for (index, RecordedSlots { value, shard_id_by_shards }) in vectors.into_iter().enumerate() {
        for (count, expected) in shard_id_by_shards {
            let actual = qontract_runtime::slot::slot_of(&value, count.parse().unwrap());
            if actual != expected {
                different
                    .push(format!("#{index} {value:?} of {count}: expected {expected}, actual {actual}"));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
