//! Decides the number of slots, and whether keys move, from several windows of measurements.
//!
//! A single window never changes anything: all of the last windows have to agree, and the change must exceed a dead
//! band. The number of slots after a change is inside the band of the opposite change, so that noise around one of
//! the limits cannot make it oscillate.

use super::assignment::Assignment;
use super::cost::{CostEstimate, CostHistory, Evidence};
use super::explain::deviations;
use super::policy::BalancePolicy;
use super::rebalance::{RebalancePlan, place_only, rebalance};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The number of slots that an integration should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotDecision {
    /// The number of slots.
    pub slots: u32,
    /// The reason.
    pub reason: SlotReason,
}

/// The reason for a number of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotReason {
    /// Too few consecutive windows have enough measurements: nothing changes.
    Unmeasured {
        /// The number of consecutive windows with enough measurements, ending with the newest.
        windows: usize,
        /// The required number.
        needed: usize,
    },
    /// The windows do not agree on a change, or it would be within the dead band.
    Steady {
        /// The mean run time of a slot, in the newest window.
        load: Duration,
    },
    /// The slots took longer than the target in all windows.
    AboveTarget {
        /// The mean run time of a slot, in the window with the lowest one.
        load: Duration,
    },
    /// Fewer slots would have stayed below the target in all windows.
    BelowTarget {
        /// The mean run time of a slot, in the window with the highest one.
        load: Duration,
    },
    /// The slots took longer than the target in all windows, and there are as many slots as the policy or the number
    /// of keys allows.
    Limited {
        /// The mean run time of a slot, in the window with the lowest one.
        load: Duration,
    },
    /// The number of slots was outside the bounds of the policy, or exceeded the number of keys.
    Bounds,
}

impl std::fmt::Display for SlotReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = |load: &Duration| load.as_secs_f64();
        match self {
            Self::Unmeasured { windows, needed } => {
                write!(f, "{windows} of {needed} consecutive windows have measurements")
            }
            Self::Steady { load } => write!(f, "a slot takes {:.1} s, near the target", seconds(load)),
            Self::AboveTarget { load } => {
                write!(f, "a slot took at least {:.1} s in each window, more than the target", seconds(load))
            }
            Self::BelowTarget { load } => {
                write!(f, "a slot took at most {:.1} s in each window, less than the target", seconds(load))
            }
            Self::Limited { load } => {
                write!(
                    f,
                    "a slot took at least {:.1} s in each window, but no more slots are allowed",
                    seconds(load)
                )
            }
            Self::Bounds => {
                f.write_str("the number of slots is limited by the policy and by the number of keys")
            }
        }
    }
}

/// Decides the number of slots for these keys. `current` is the present number; 0 if nothing runs yet.
///
/// The work of a window is the sum of its costs, in which a key counts at most the target: more slots do not make
/// one key faster.
pub fn decide_slots(
    history: &CostHistory,
    keys: &BTreeSet<String>,
    current: u32,
    policy: &BalancePolicy,
) -> SlotDecision {
    decide(&history.evidence(keys, policy.windows()), current, policy)
}

/// Decides the number of slots by the evidence of several windows.
fn decide(evidence: &Evidence, current: u32, policy: &BalancePolicy) -> SlotDecision {
    let useful = u32::try_from(evidence.estimate.len()).unwrap_or(u32::MAX).min(policy.max_slots());
    let limit = |slots: u32| slots.min(useful).max(policy.min_slots());
    let within = limit(current);
    let windows = match &evidence.windows {
        Ok(windows) => windows,
        Err(_) if within != current => return SlotDecision { slots: within, reason: SlotReason::Bounds },
        Err(windows) => {
            let reason = SlotReason::Unmeasured { windows: *windows, needed: policy.windows() };
            return SlotDecision { slots: current, reason };
        }
    };
    let work: Vec<f64> = windows.iter().map(|window| work(window, policy.target())).collect();
    let (lowest, highest) =
        work.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(*one), high.max(*one)));
    let target = policy.target().as_secs_f64();
    let relaxed = target * (1.0 - policy.dead_band());
    let load = |work: f64| Duration::try_from_secs_f64(work / f64::from(within)).unwrap_or_default();
    let up = limit(slots_for(lowest, target));
    let down = limit(slots_for(highest, relaxed));
    let is_overloaded = lowest / f64::from(within) > target * (1.0 + policy.dead_band());
    let (slots, reason) = if is_overloaded && up > within {
        (up, SlotReason::AboveTarget { load: load(lowest) })
    } else if is_overloaded {
        (within, SlotReason::Limited { load: load(lowest) })
    } else if down < within {
        (down, SlotReason::BelowTarget { load: load(highest) })
    } else {
        (within, SlotReason::Steady { load: load(work.first().copied().unwrap_or_default()) })
    };
    let reason = if within != current && slots == within { SlotReason::Bounds } else { reason };
    SlotDecision { slots, reason }
}

/// The work of a window, in seconds.
fn work(window: &CostEstimate, target: Duration) -> f64 {
    window.iter().map(|(_, cost)| cost.cost.min(target).as_secs_f64()).sum()
}

/// The lowest number of slots that do this work in this time each.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn slots_for(work: f64, time: f64) -> u32 {
    (work / time).ceil() as u32
}

/// The result of [`balance`].
#[derive(Clone, Debug, PartialEq)]
pub struct BalanceDecision {
    /// The number of slots.
    pub slots: SlotDecision,
    /// Why keys moved to improve the balance.
    pub trigger: Trigger,
    /// The new assignment, and the moves to it.
    pub plan: RebalancePlan,
}

/// Why keys may move to improve the balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The number of slots changes.
    Slots,
    /// These slots were above or below the mean load by more than the dead band, each in all of the last windows.
    Imbalance(BTreeSet<u32>),
    /// These slots were out of balance, but no permitted moves would have improved the balance by the dead band in
    /// all of the last windows, so no keys move.
    Unimprovable(BTreeSet<u32>),
    /// No keys move, except those without a slot.
    Nothing,
}

/// Decides the number of slots, and assigns all declared keys to them.
///
/// New keys, and keys whose slot is gone, are always assigned. Other keys move only if the number of slots changes,
/// or if a slot was out of balance in all of the last windows. Callers store the assignment, and give it as
/// `previous` the next time.
pub fn balance(
    previous: &Assignment,
    keys: &BTreeSet<String>,
    history: &CostHistory,
    policy: &BalancePolicy,
) -> BalanceDecision {
    let evidence = history.evidence(keys, policy.windows());
    let slots = decide(&evidence, previous.slots(), policy);
    let costs = &evidence.estimate;
    if slots.slots != previous.slots() {
        let rebalanced = rebalance(previous, costs, slots.slots, policy);
        return BalanceDecision { slots, trigger: Trigger::Slots, plan: rebalanced };
    }
    let placed = place_only(previous, costs, policy);
    let nothing =
        |rebalanced| BalanceDecision { slots: slots.clone(), trigger: Trigger::Nothing, plan: rebalanced };
    let Ok(windows) = &evidence.windows else { return nothing(placed) };
    let imbalanced = imbalanced_slots(&placed.assignment, costs, windows, policy.dead_band());
    if imbalanced.is_empty() {
        return nothing(placed);
    }
    let rebalanced = rebalance(previous, costs, slots.slots, policy);
    let is_better = |window: &CostEstimate| {
        let imbalance = |of: &RebalancePlan| total_deviation(&of.assignment, window);
        imbalance(&placed) - imbalance(&rebalanced) >= policy.dead_band()
    };
    if windows.iter().all(is_better) {
        BalanceDecision { slots, trigger: Trigger::Imbalance(imbalanced), plan: rebalanced }
    } else {
        BalanceDecision { slots, trigger: Trigger::Unimprovable(imbalanced), plan: placed }
    }
}

/// The slots that are above the mean load by more than the dead band in all of these windows and in the estimate, or
/// below it in all of them. Noise puts different slots at the top in different windows; imbalance does not. An assumed
/// cost is not evidence: a slot is not above the mean because of a key that was never measured.
fn imbalanced_slots(
    assignment: &Assignment,
    estimate: &CostEstimate,
    windows: &[CostEstimate],
    dead_band: f64,
) -> BTreeSet<u32> {
    let all = |views: &[BTreeMap<u32, f64>], is_off: &dyn Fn(f64) -> bool| -> BTreeSet<u32> {
        let is_off = |slot: &u32| views.iter().all(|view| view.get(slot).is_some_and(|one| is_off(*one)));
        (0..assignment.slots()).filter(is_off).collect()
    };
    let views = |of: &dyn Fn(&CostEstimate) -> CostEstimate| -> Vec<BTreeMap<u32, f64>> {
        windows.iter().chain([estimate]).map(|view| deviations(assignment, &of(view))).collect()
    };
    let mut slots = all(&views(&CostEstimate::measured), &|deviation| deviation > dead_band);
    slots.extend(all(&views(&Clone::clone), &|deviation| deviation < -dead_band));
    slots
}

/// The sum of the deviations of all slots from the mean load.
fn total_deviation(assignment: &Assignment, window: &CostEstimate) -> f64 {
    deviations(assignment, window).values().map(|deviation| deviation.abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::{SlotReason, Trigger, balance, decide_slots};
    use crate::balance::{Assignment, BalancePolicy, CostHistory, CostWindow, PolicyInput};
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn policy() -> BalancePolicy {
        let input =
            PolicyInput { target: 100.0, min_slots: 2, max_slots: 20, windows: 3, ..PolicyInput::default() };
        BalancePolicy::new(input).unwrap()
    }

    fn keys(count: usize) -> BTreeSet<String> {
        (0..count).map(|index| format!("k{index:03}")).collect()
    }

    /// A window in which each of these keys takes this many seconds.
    fn window(keys: &BTreeSet<String>, seconds: f64) -> CostWindow {
        CostWindow::from_seconds(&keys.iter().map(|key| (key.clone(), seconds)).collect()).unwrap()
    }

    /// Windows in which 100 keys together take these times, in seconds.
    #[track_caller]
    fn check(work: &[f64], current: u32, expect: u32) {
        let keys = keys(100);
        let history = CostHistory::new(work.iter().map(|work| window(&keys, work / 100.0)).collect());
        let decision = decide_slots(&history, &keys, current, &policy());
        assert_eq!(decision.slots, expect, "{work:?} on {current} slots: {:?}", decision.reason);
        let again = decide_slots(&history, &keys, expect, &policy());
        assert_eq!(again.slots, expect, "the decision for {work:?} is not stable: {:?}", again.reason);
    }

    #[test]
    fn slots_follow_the_run_time_toward_the_target() {
        check(&[1000.0; 3], 10, 10);
        check(&[1500.0; 3], 10, 15);
        check(&[1501.0; 3], 10, 16);
        check(&[500.0; 3], 10, 6);
        check(&[1000.0; 3], 0, 10);
    }

    #[test]
    fn the_dead_band_decides_nothing() {
        check(&[1149.0; 3], 10, 10);
        check(&[1151.0; 3], 10, 12);
        check(&[766.0; 3], 10, 10);
        check(&[764.0; 3], 10, 9);
    }

    #[test]
    fn one_window_that_disagrees_decides_nothing() {
        check(&[1500.0, 1100.0, 1500.0], 10, 10);
        check(&[1500.0, 1500.0, 500.0], 10, 10);
        check(&[500.0, 500.0, 1000.0], 10, 10);
        // The smallest change on which all windows agree.
        check(&[1500.0, 1300.0, 1900.0], 10, 13);
        check(&[300.0, 600.0, 100.0], 10, 8);
        // Older windows do not count.
        check(&[1000.0, 1500.0, 1500.0, 1500.0], 10, 15);
    }

    #[test]
    fn bounds_limit_the_slots() {
        check(&[9000.0; 3], 10, 20);
        check(&[1.0; 3], 10, 2);
        check(&[1000.0; 3], 30, 12);
        check(&[1000.0; 3], 1, 10);
        let decision = decide_slots(&CostHistory::default(), &keys(100), 30, &policy());
        assert_eq!((decision.slots, decision.reason), (20, SlotReason::Bounds));
        check(&[9000.0; 3], 20, 20);
        let limited = CostHistory::new(vec![window(&keys(100), 90.0); 3]);
        let decision = decide_slots(&limited, &keys(100), 20, &policy());
        assert_eq!(
            decision.reason.to_string(),
            "a slot took at least 450.0 s in each window, but no more slots are allowed"
        );
        let decision = decide_slots(&limited, &BTreeSet::new(), 2, &policy());
        assert_eq!(decision.reason, SlotReason::Unmeasured { windows: 0, needed: 3 });
        // More slots than keys would have nothing to do.
        let decision = decide_slots(&CostHistory::default(), &keys(4), 10, &policy());
        assert_eq!((decision.slots, decision.reason), (4, SlotReason::Bounds));
    }

    #[test]
    fn a_window_without_data_decides_nothing() {
        let keys = keys(100);
        let (slow, empty) = (window(&keys, 50.0), CostWindow::default());
        let decide = |windows: &[&CostWindow]| {
            let history = CostHistory::new(windows.iter().map(|one| (*one).clone()).collect());
            decide_slots(&history, &keys, 10, &policy())
        };
        for windows in
            [vec![], vec![&slow, &slow], vec![&slow, &slow, &empty], vec![&slow, &slow, &empty, &slow]]
        {
            let decision = decide(&windows);
            assert_eq!(decision.slots, 10);
            assert!(matches!(decision.reason, SlotReason::Unmeasured { needed: 3, .. }), "{decision:?}");
        }
        assert_eq!(decide(&[&empty, &slow, &slow, &slow]).slots, 20);
    }

    #[test]
    fn a_key_that_exceeds_the_target_does_not_add_slots() {
        let keys = keys(100);
        let mut seconds =
            keys.iter().map(|key| (key.clone(), 9.0)).collect::<std::collections::BTreeMap<_, _>>();
        seconds.insert("k000".to_owned(), 9000.0);
        let slow = CostWindow::from_seconds(&seconds).unwrap();
        let history = CostHistory::new(vec![slow; 3]);
        let decision = decide_slots(&history, &keys, 10, &policy());
        assert_eq!((decision.slots, matches!(decision.reason, SlotReason::Steady { .. })), (10, true));
        let balanced = balance(&Assignment::default(), &keys, &history, &policy());
        let heavy = &balanced.plan.too_heavy[0];
        assert_eq!((heavy.key.as_str(), balanced.plan.too_heavy.len()), ("k000", 1));
        assert_eq!(
            heavy.to_string(),
            "`k000` takes 9000.0 s, and a slot should take 99.0 s: no assignment can balance it; split it with `subSharding`"
        );
        assert_eq!(balanced.plan.assignment.keys_by_slot()[&heavy.slot].len(), 1);
    }

    #[test]
    fn keys_move_only_if_the_same_slot_is_out_of_balance_in_all_windows() {
        let keys = keys(40);
        let even = window(&keys, 25.0);
        let history = CostHistory::new(vec![even.clone(); 3]);
        let start = balance(&Assignment::default(), &keys, &history, &policy());
        assert_eq!((start.slots.slots, start.trigger), (10, Trigger::Slots));
        let assignment = start.plan.assignment;
        let slow_slot = |slot: u32| {
            let cost = |key| Duration::from_secs(if assignment.slot_of(key) == Some(slot) { 35 } else { 25 });
            CostWindow::new(keys.iter().map(|key| (key.clone(), cost(key))).collect())
        };
        let trigger = |slots: [u32; 3]| {
            let history = CostHistory::new(slots.map(slow_slot).into());
            let balanced = balance(&assignment, &keys, &history, &policy());
            (balanced.trigger, !balanced.plan.moves.is_empty())
        };
        assert_eq!(trigger([1, 2, 3]), (Trigger::Nothing, false));
        assert_eq!(trigger([1, 1, 3]), (Trigger::Nothing, false));
        // All keys cost the same but those of one slot, so only exchanges help.
        assert_eq!(trigger([1, 1, 1]), (Trigger::Imbalance([1].into()), true));
        // The estimate follows more windows.
        let mut windows = vec![even; 4];
        windows.extend(vec![slow_slot(1); 3]);
        let balanced = balance(&assignment, &keys, &CostHistory::new(windows), &policy());
        assert_eq!((balanced.trigger, balanced.plan.moves), (Trigger::Nothing, vec![]));
    }

    #[test]
    fn an_imbalance_that_no_move_can_improve_moves_nothing() {
        let keys = keys(21);
        let costs = window(&keys, 70.0);
        let history = CostHistory::new(vec![costs; 3]);
        let input =
            PolicyInput { max_slots: 10, min_slots: 10, windows: 3, target: 150.0, ..PolicyInput::default() };
        let policy = BalancePolicy::new(input).unwrap();
        let assignment = balance(&Assignment::default(), &keys, &history, &policy).plan.assignment;
        let balanced = balance(&assignment, &keys, &history, &policy);
        // One of ten slots has three of the 21 keys.
        assert_eq!((balanced.trigger, balanced.plan.moves), (Trigger::Unimprovable([0].into()), vec![]));
    }

    #[test]
    fn a_new_key_is_placed_without_a_measurement_and_moves_nothing_else() {
        let (before, after) = (keys(40), keys(41));
        let history = CostHistory::new(vec![window(&before, 25.0); 3]);
        let assignment = balance(&Assignment::default(), &before, &history, &policy()).plan.assignment;
        let balanced = balance(&assignment, &after, &history, &policy());
        assert_eq!(balanced.trigger, Trigger::Nothing);
        let moves: Vec<&str> = balanced.plan.moves.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(moves, ["k040"]);
    }
}
