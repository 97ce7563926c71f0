//! Shards that scale themselves: the number of slots of an integration, and the slot of each shard key, follow
//! the measured run times toward a target duration per slot.
//!
//! The steps, all of them pure:
//!
//! 1. [`CostHistory`] holds the run time per shard key of the last windows, and estimates the cost of each
//!    declared key, including keys without a measurement.
//! 2. [`decide_slots`] decides the number of slots, with bounds, a dead band, and agreement of several windows.
//! 3. [`rebalance`] assigns keys to slots. The previous [`Assignment`] is an input: a key stays where it is,
//!    unless its slot is gone, or one of a limited number of moves improves the balance.
//! 4. [`balance`] combines 1 to 3, and moves keys only if a slot is out of balance in several windows.
//! 5. [`Handover`] carries out the moves: drain, acknowledged, start.
//!
//! [`explain_key`] and [`explain_slot`] explain the result.
//!
//! **Invariant:** the same input gives the same result, and the result does not depend on the order of keys.

mod assignment;
mod cost;
mod decision;
mod error;
mod exchange;
mod explain;
mod handover;
mod packing;
mod policy;
mod rebalance;

pub use assignment::{Assignment, Placement, PlacementReason};
pub use cost::{CostEstimate, CostHistory, CostSource, CostWindow, KeyCost};
pub use decision::{BalanceDecision, SlotDecision, SlotReason, Trigger, balance, decide_slots};
pub use error::BalanceError;
pub use explain::{Alternative, KeyExplanation, SlotExplanation, SlotKey, explain_key, explain_slot};
pub use handover::{Handover, HandoverStep, SlotConfiguration};
pub use policy::{BalancePolicy, PolicyInput};
pub use rebalance::{HeavyKey, Move, RebalancePlan, Spread, rebalance};
