//! Small rebalances, each with its moves.

use super::{Assignment, Placement, PlacementReason, rebalance};
use crate::balance::{BalancePolicy, CostEstimate, PolicyInput};
use std::collections::BTreeMap;
use std::time::Duration;

/// Slots with their keys and costs: `a=10 b=20 | c=30`.
fn parse(slots: &str) -> (Assignment, BTreeMap<String, Duration>) {
    let (mut keys, mut costs) = (BTreeMap::new(), BTreeMap::new());
    let slots: Vec<&str> = slots.split('|').collect();
    for (slot, content) in (0..).zip(&slots) {
        for entry in content.split_whitespace() {
            let (key, cost) = entry.split_once('=').unwrap();
            keys.insert(key.to_owned(), Placement { slot, from: None, reason: PlacementReason::NewKey });
            costs.insert(key.to_owned(), Duration::from_secs(cost.parse().unwrap()));
        }
    }
    let slots = u32::try_from(slots.len()).unwrap();
    (Assignment::new(slots, keys).unwrap(), costs)
}

/// Rebalances these slots, with further keys, to a number of slots. Expects the resulting slots and the moves.
#[track_caller]
fn check(before: &str, new: &str, slots: u32, expect: &str) {
    check_within(&PolicyInput::default(), before, new, slots, expect);
}

#[track_caller]
fn check_within(input: &PolicyInput, before: &str, new: &str, slots: u32, expect: &str) {
    let policy = BalancePolicy::new(PolicyInput { target: 1e6, ..input.clone() }).unwrap();
    let (assignment, mut costs) = parse(before);
    costs.extend(parse(new).1);
    let plan = rebalance(&assignment, &CostEstimate::of(costs), slots, &policy);
    let by_slot = plan.assignment.keys_by_slot();
    let shown: Vec<String> =
        by_slot.values().map(|keys| keys.iter().copied().collect::<Vec<_>>().join(" ")).collect();
    let moves = plan.moves.iter().map(|one| match one.from {
        Some(from) => format!("{}:{from}→{} {:?}", one.key, one.to, one.reason),
        None => format!("{}:→{} {:?}", one.key, one.to, one.reason),
    });
    let heavy: Vec<&str> = plan.too_heavy.iter().map(|one| one.key.as_str()).collect();
    let shown = format!(
        "{} ; {} ; extra {} ; heavy {heavy:?}",
        shown.join(" | "),
        moves.collect::<Vec<_>>().join(", "),
        plan.extra_moves
    );
    assert_eq!(shown, expect);
}

#[test]
fn balanced_keys_stay() {
    check("a=10 b=20 | c=30", "", 2, "a b | c ;  ; extra 0 ; heavy []");
}

#[test]
fn new_keys_go_largest_first_to_the_slot_with_the_lowest_load() {
    check("a=50 | b=30", "c=10 d=30", 2, "a c | b d ; c:→0 NewKey, d:→1 NewKey ; extra 0 ; heavy []");
}

#[test]
fn the_keys_of_a_removed_slot_move_and_the_others_stay() {
    check(
        "a=30 b=10 | c=40 | d=20 e=20",
        "",
        2,
        "a b d | c e ; d:2→0 SlotRemoved, e:2→1 SlotRemoved ; extra 0 ; heavy []",
    );
}

#[test]
fn a_new_slot_gets_its_share_and_these_moves_are_forced() {
    check(
        "a=20 b=40 | c=20 d=40",
        "",
        3,
        "b | d | a c ; a:0→2 SlotAdded, c:1→2 SlotAdded ; extra 0 ; heavy []",
    );
}

#[test]
fn keys_are_swapped_if_a_single_move_does_not_balance() {
    check("a=40 b=30 | c=20 d=30", "", 2, "b d | a c ; a:0→1 Balance, d:1→0 Balance ; extra 2 ; heavy []");
}

#[test]
fn moves_end_with_the_budget() {
    let budget = |move_budget| PolicyInput { move_budget, ..PolicyInput::default() };
    let slots = "a=10 b=10 c=10 d=10 e=10 f=10 | ";
    check_within(&budget(0), slots, "", 2, "a b c d e f |  ;  ; extra 0 ; heavy []");
    let moves = "c d e f | a b ; a:0→1 Balance, b:0→1 Balance ; extra 2 ; heavy []";
    check_within(&budget(2), slots, "", 2, moves);
}

#[test]
fn a_spread_within_the_tolerance_moves_nothing() {
    let tolerance = |tolerance| PolicyInput { tolerance, dead_band: 0.5, ..PolicyInput::default() };
    let slots = "a=51 b=1 | c=50";
    check_within(&tolerance(0.04), slots, "", 2, "a b | c ;  ; extra 0 ; heavy []");
    let moves = "a | b c ; b:0→1 Balance ; extra 1 ; heavy []";
    check_within(&tolerance(0.03), slots, "", 2, moves);
}

#[test]
fn a_heavy_key_stays_and_the_keys_beside_it_leave() {
    check(
        "a=1000 b=10 | c=10 d=10 | e=20 f=10",
        "",
        3,
        "a | b c d | e f ; b:0→1 Balance ; extra 1 ; heavy [\"a\"]",
    );
    check("a=1000 | b=10 | c=10", "", 3, "a | b | c ;  ; extra 0 ; heavy []");
}

#[test]
fn two_heavy_keys_do_not_share_a_slot() {
    check(
        "a=1000 b=900 | c=5 d=5 | e=5 f=5",
        "",
        3,
        "a | c d e f | b ; b:0→2 Balance, e:2→1 Balance, f:2→1 Balance ; extra 3 ; heavy [\"a\", \"b\"]",
    );
}

#[test]
fn empty_inputs_have_empty_results() {
    check("|", "", 2, " |  ;  ; extra 0 ; heavy []");
    check("a=0 b=0 |", "", 2, "a b |  ;  ; extra 0 ; heavy []");
}

#[test]
fn a_new_slot_is_filled_although_no_slot_is_overloaded() {
    let slot = |slot: usize| (0..60).map(|key| format!("k{slot}-{key}=1")).collect::<Vec<_>>().join(" ");
    let slots = (0..50).map(slot).collect::<Vec<_>>().join(" | ");
    let (assignment, costs) = parse(&slots);
    let policy = BalancePolicy::new(PolicyInput::default()).unwrap();
    let plan = rebalance(&assignment, &CostEstimate::of(costs), 51, &policy);
    let counts: Vec<usize> =
        plan.assignment.keys_by_slot().values().map(std::collections::BTreeSet::len).collect();
    assert_eq!((counts[50], plan.moves.len(), plan.extra_moves), (58, 58, 0));
    assert!(counts[..50].iter().all(|count| (58..=60).contains(count)), "{counts:?}");
}

#[test]
fn many_slots_are_balanced_without_a_search_of_all_pairs() {
    let key = |slot: usize, key: usize| format!("k{slot}-{key}={}", 10 + (slot * 10 + key) * 7919 % 97);
    let slot = |slot: usize| (0..10).map(|index| key(slot, index)).collect::<Vec<_>>().join(" ");
    let (assignment, costs) = parse(&(0..100).map(slot).collect::<Vec<_>>().join(" | "));
    let input = PolicyInput { move_budget: 200, ..PolicyInput::default() };
    let plan = rebalance(&assignment, &CostEstimate::of(costs), 100, &BalancePolicy::new(input).unwrap());
    let result = (plan.before.ratio() > 0.3, plan.after.ratio() <= 0.025, plan.extra_moves <= 200);
    assert_eq!(result, (true, true, true), "{:?} {:?} {}", plan.before, plan.after, plan.extra_moves);
}
