//! Assigns shard keys to a given number of slots, and moves as few of them as possible.

use super::assignment::{Assignment, Placement, PlacementReason};
use super::cost::CostEstimate;
use super::exchange::{Price, best_exchange};
use super::packing::{FairShare, Item, Packing};
use super::policy::BalancePolicy;
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bound of the exchanges of one rebalance. Each exchange improves the balance, so this bounds the time, not
/// the correctness.
const MAX_EXCHANGES: usize = 1_000;

/// A paid move must transfer at least this fraction of the tolerated spread.
const MIN_TRANSFER: f64 = 0.25;

/// The result of a rebalance.
#[derive(Clone, Debug, PartialEq)]
pub struct RebalancePlan {
    /// The new assignment.
    pub assignment: Assignment,
    /// The keys that change their slot, in the order of keys. Keys that are new are included.
    pub moves: Vec<Move>,
    /// How many moves were necessary: keys whose slot is gone, new keys, and the share of new slots.
    pub forced_moves: usize,
    /// How many moves only improve the balance. **Invariant:** at most the move budget of the policy.
    pub extra_moves: usize,
    /// The loads before the rebalance, of the keys that have a slot.
    pub before: Spread,
    /// The loads after the rebalance.
    pub after: Spread,
    /// Keys that cannot be balanced, because one key takes longer than a slot should.
    pub too_heavy: Vec<HeavyKey>,
}

/// A key that changes its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The shard key.
    pub key: String,
    /// The previous slot; `None` for a new key.
    pub from: Option<u32>,
    /// The new slot.
    pub to: u32,
    /// Why the key moves.
    pub reason: PlacementReason,
}

/// A key whose run time exceeds what a slot should run. More slots and moves do not help: the key has to be split
/// (`subSharding`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeavyKey {
    /// The shard key.
    pub key: String,
    /// Its slot.
    pub slot: u32,
    /// Its run time.
    pub cost: Duration,
    /// The run time that its slot should have: the mean of the other slots, or the target of the policy.
    pub limit: Duration,
}

impl std::fmt::Display for HeavyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` takes {:.1} s, and a slot should take {:.1} s: no assignment can balance it; split it with `subSharding`",
            self.key,
            self.cost.as_secs_f64(),
            self.limit.as_secs_f64()
        )
    }
}

/// The spread of the loads of all slots. A key that is heavier than the mean counts as a full slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The highest load.
    pub max: Duration,
    /// The lowest load.
    pub min: Duration,
    /// The mean load.
    pub mean: Duration,
}

impl Spread {
    /// The difference of the highest and the lowest load, relative to the mean; 0 without any load.
    pub fn ratio(&self) -> f64 {
        let difference = self.max.saturating_sub(self.min);
        if self.mean.is_zero() { 0.0 } else { difference.as_secs_f64() / self.mean.as_secs_f64() }
    }

    fn of(packing: &Packing) -> Self {
        let loads = packing.loads();
        let total: u128 = loads.iter().map(|load| u128::from(*load)).sum();
        let mean = total / (loads.len().max(1) as u128);
        Self {
            max: Duration::from_micros(loads.iter().copied().max().unwrap_or_default()),
            min: Duration::from_micros(loads.iter().copied().min().unwrap_or_default()),
            mean: Duration::from_micros(u64::try_from(mean).unwrap_or(u64::MAX)),
        }
    }
}

/// Assigns every key of the estimate to one of `slots` slots (at least one).
///
/// A key stays in its slot, unless the slot is gone or a move improves the balance. Keys without a slot are placed
/// largest first, each into the slot with the lowest load. The policy limits the number of other moves. Nothing else
/// moves once the spread is within its tolerance.
pub fn rebalance(
    previous: &Assignment,
    costs: &CostEstimate,
    slots: u32,
    policy: &BalancePolicy,
) -> RebalancePlan {
    let effort = Effort { move_budget: policy.move_budget(), tolerance: policy.tolerance() };
    Problem::new(previous, costs, slots).solve(policy, effort)
}

/// Places only the keys that have no slot.
pub(super) fn place_only(
    previous: &Assignment,
    costs: &CostEstimate,
    policy: &BalancePolicy,
) -> RebalancePlan {
    let effort = Effort { move_budget: 0, tolerance: policy.tolerance() };
    Problem::new(previous, costs, previous.slots()).solve(policy, effort)
}

/// How much a rebalance may change.
#[derive(Clone, Copy, Debug)]
struct Effort {
    move_budget: usize,
    tolerance: f64,
}

/// The input of a rebalance.
struct Problem<'i> {
    previous: &'i Assignment,
    costs: Vec<ItemCost<'i>>,
    slots: u32,
    share: FairShare,
    packing: Packing,
}

/// A key with its cost in microseconds.
struct ItemCost<'i> {
    key: &'i str,
    micros: u64,
}

impl<'i> Problem<'i> {
    fn new(previous: &'i Assignment, costs: &'i CostEstimate, slots: u32) -> Self {
        let slots = slots.max(1);
        // Sums of costs must fit into 64 bits.
        let limit = u64::MAX / (costs.len() as u64 + 1);
        let costs: Vec<ItemCost<'i>> = costs
            .iter()
            .map(|(key, cost)| ItemCost {
                key,
                micros: u64::try_from(cost.cost.as_micros()).unwrap_or(limit).min(limit),
            })
            .collect();
        let micros: Vec<u64> = costs.iter().map(|one| one.micros).collect();
        let share = FairShare::of(&micros, slots as usize);
        let item = |one: &ItemCost<'_>| {
            let home = previous.slot_of(one.key).filter(|slot| *slot < slots).map(|slot| slot as usize);
            Item { cost: share.effective(one.micros), home, slot: home, is_fixed: false }
        };
        let mut items: Vec<Item> = costs.iter().map(item).collect();
        fix_heavy(&mut items, share);
        let packing = Packing::new(items, slots as usize);
        Self { previous, costs, slots, share, packing }
    }

    fn solve(mut self, policy: &BalancePolicy, effort: Effort) -> RebalancePlan {
        let before = Spread::of(&self.packing);
        let share_of_new_slots =
            if self.slots > self.previous.slots() { self.release_for_new_slots(effort.tolerance) } else { 0 };
        self.packing.place_orphans();
        self.improve(effort, share_of_new_slots + effort.move_budget);
        let displaced = self.packing.displaced();
        let placed = self.packing.items().iter().filter(|item| item.home.is_none()).count();
        let forced = share_of_new_slots.min(displaced);
        let (assignment, moves) = self.assignment();
        RebalancePlan {
            too_heavy: self.too_heavy(&assignment, policy),
            assignment,
            moves,
            forced_moves: placed + forced,
            extra_moves: displaced - forced,
            before,
            after: Spread::of(&self.packing),
        }
    }

    /// Takes keys out of slots, for slots that are new: from each overloaded slot as few keys as possible, then further
    /// large keys, until the new slots have their share. Returns how many keys these are.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "compares loads with fractions of the mean"
    )]
    fn release_for_new_slots(&mut self, tolerance: f64) -> usize {
        let before = self.placed();
        // Items without a slot are part of the mean, but not of any load.
        let total: u128 = self.packing.items().iter().map(|item| u128::from(item.cost)).sum();
        let mean = u64::try_from(total / u128::from(self.slots)).unwrap_or(u64::MAX);
        let tolerated = tolerance * mean as f64;
        for slot in 0..self.packing.loads().len() {
            let surplus = self.packing.loads()[slot].saturating_sub(mean);
            if surplus as f64 > tolerated {
                self.release_surplus(slot, surplus, tolerated);
            }
        }
        // Slots that exceed the mean only slightly are together too full if the new slots get nothing.
        let share = f64::from(self.slots - self.previous.slots()) * (mean as f64 - tolerated);
        let released = before - self.placed();
        let mut rest = self.keys_to_fill(share).saturating_sub(released);
        for part in [0.5, 1.0] {
            let floor = mean.saturating_sub((tolerated * part) as u64);
            while rest > 0 && (self.unplaced() as f64) < share {
                let Some(index) = self.largest_above(floor) else { break };
                self.packing.remove(index);
                rest -= 1;
            }
        }
        before - self.placed()
    }

    /// The number of keys with a slot.
    fn placed(&self) -> usize {
        self.packing.items().iter().filter(|item| item.slot.is_some()).count()
    }

    /// The lowest number of keys that have this load.
    #[expect(clippy::cast_precision_loss, reason = "compares a sum with a fraction")]
    fn keys_to_fill(&self, load: f64) -> usize {
        let mut costs: Vec<u64> = self.packing.items().iter().map(|item| item.cost).collect();
        costs.sort_unstable_by(|left, right| right.cmp(left));
        let mut sum = 0;
        costs
            .iter()
            .take_while(|cost| {
                let is_short = (sum as f64) < load;
                sum += **cost;
                is_short
            })
            .count()
    }

    /// Takes keys out of a slot whose costs are together near its surplus.
    #[expect(clippy::cast_precision_loss, reason = "compares a load with a fraction of the mean")]
    fn release_surplus(&mut self, slot: usize, surplus: u64, tolerated: f64) {
        let largest =
            self.movable(slot).map(|index| self.packing.items()[index].cost).max().unwrap_or_default();
        let needed = self.keys_to_release(slot, surplus as f64 - tolerated.min(largest as f64 / 2.0));
        let mut rest = surplus;
        for position in 0..needed {
            let wanted = rest / (needed - position) as u64;
            let Some(index) = self.nearest_key(slot, wanted) else { break };
            rest = rest.saturating_sub(self.packing.items()[index].cost);
            self.packing.remove(index);
        }
    }

    /// The costs of all keys without a slot.
    fn unplaced(&self) -> u64 {
        self.packing.items().iter().filter(|item| item.slot.is_none()).map(|item| item.cost).sum()
    }

    /// The largest key of the fullest slot that can leave without a load below `floor`.
    fn largest_above(&self, floor: u64) -> Option<usize> {
        let highest = self.packing.extremes()?.highest;
        let limit = self.packing.loads()[highest].checked_sub(floor)?;
        let cost = |index: &usize| self.packing.items()[*index].cost;
        let fitting = self.movable(highest).filter(|index| (1..=limit).contains(&cost(index)));
        fitting.max_by_key(|index| (cost(index), std::cmp::Reverse(*index)))
    }

    /// The lowest number of keys of a slot whose costs exceed a surplus.
    #[expect(clippy::cast_precision_loss, reason = "compares a sum with a fraction")]
    fn keys_to_release(&self, slot: usize, surplus: f64) -> usize {
        let mut costs: Vec<u64> = self.movable(slot).map(|index| self.packing.items()[index].cost).collect();
        costs.sort_unstable_by(|left, right| right.cmp(left));
        let mut sum = 0;
        let enough = costs.iter().position(|cost| {
            sum += cost;
            sum as f64 >= surplus
        });
        enough.map_or(costs.len(), |position| position + 1)
    }

    /// The key of a slot whose cost is nearest to this one.
    fn nearest_key(&self, slot: usize, cost: u64) -> Option<usize> {
        self.movable(slot).min_by_key(|index| (self.packing.items()[*index].cost.abs_diff(cost), *index))
    }

    fn movable(&self, slot: usize) -> impl Iterator<Item = usize> {
        self.packing.members(slot).iter().copied().filter(|index| !self.packing.items()[*index].is_fixed)
    }

    /// Exchanges keys until the spread is within the tolerance, or nothing improves it.
    fn improve(&mut self, effort: Effort, max_displaced: usize) {
        let transfer = MIN_TRANSFER * effort.tolerance * self.packing.mean();
        for _ in 0..MAX_EXCHANGES {
            if self.packing.spread() <= effort.tolerance {
                return;
            }
            let price = max_displaced.saturating_sub(self.packing.displaced());
            // If all keys are at home, no exchange is free.
            let is_any_away = self.packing.items().iter().any(|item| item.home != item.slot);
            let free = is_any_away.then(|| best_exchange(&self.packing, Price::Free)).flatten();
            let is_any_paid = free.is_none() && price > 0;
            let found = if is_any_paid {
                best_exchange(&self.packing, Price::AtMost { price, transfer })
            } else {
                free
            };
            let Some(exchange) = found else { return };
            exchange.apply(&mut self.packing);
        }
    }

    fn assignment(&self) -> (Assignment, Vec<Move>) {
        let (mut keys, mut moves) = (BTreeMap::new(), Vec::new());
        for (one, item) in self.costs.iter().zip(self.packing.items()) {
            let slot = u32::try_from(item.slot.unwrap_or_default()).unwrap_or_default();
            let before = self.previous.placements().get(one.key).copied();
            let placement = match before {
                Some(before) if before.slot == slot => before,
                Some(before) => {
                    let reason = if before.slot >= self.slots {
                        PlacementReason::SlotRemoved
                    } else if slot >= self.previous.slots() {
                        PlacementReason::SlotAdded
                    } else {
                        PlacementReason::Balance
                    };
                    Placement { slot, from: Some(before.slot), reason }
                }
                None => Placement { slot, from: None, reason: PlacementReason::NewKey },
            };
            if before != Some(placement) {
                let Placement { slot: to, from, reason } = placement;
                moves.push(Move { key: one.key.to_owned(), from, to, reason });
            }
            keys.insert(one.key.to_owned(), placement);
        }
        let assignment = Assignment::new(self.slots, keys).expect("every item is in one of the slots");
        (assignment, moves)
    }

    fn too_heavy(&self, assignment: &Assignment, policy: &BalancePolicy) -> Vec<HeavyKey> {
        let share = Duration::from_micros(self.share.load);
        // If each key has a slot of its own, no other slot could be relieved.
        let share = (self.costs.len() > self.slots as usize).then(|| share.mul_f64(1.0 + policy.tolerance()));
        let target = policy.target().mul_f64(1.0 + policy.dead_band());
        let heavy = |one: &ItemCost<'_>| {
            let cost = Duration::from_micros(one.micros);
            let limit = if share.is_some_and(|share| cost > share) {
                Duration::from_micros(self.share.load)
            } else if cost > target {
                policy.target()
            } else {
                return None;
            };
            Some(HeavyKey { key: one.key.to_owned(), slot: assignment.slot_of(one.key)?, cost, limit })
        };
        self.costs.iter().filter_map(heavy).collect()
    }
}

/// A key that fills a slot stays in its slot, so that it is never moved from one slot to the next. Of several in one
/// slot, the first one stays.
fn fix_heavy(items: &mut [Item], share: FairShare) {
    let mut full_slots = std::collections::BTreeSet::new();
    for item in items.iter_mut().filter(|item| item.cost > 0 && item.cost >= share.load) {
        item.is_fixed = item.slot.is_some_and(|slot| full_slots.insert(slot));
    }
}

#[cfg(test)]
mod tests;
