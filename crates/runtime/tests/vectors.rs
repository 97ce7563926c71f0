//! Early exit as in qontract-reconcile: 50 recorded comparisons of desired states.
//!
//! **Invariant:** where qontract-reconcile sees a change, so does the comparison of declared states. The cases
//! in which only the comparison here sees one are listed with the reason, as in `docs/compatibility.md`.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::{BTreeMap, BTreeSet};

use qontract_runtime::ShardKey;
use qontract_runtime::state::{Comparison, DeclaredState, Shard, compare};
use qontract_testkit::vectors;
use serde_json::{Value, json};

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

#[test]
fn a_change_that_the_peer_sees_is_seen() {
    let text = std::fs::read_to_string(vectors().join("check/early_exit.json")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
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
