//! Decides how to handle Kubernetes objects: ownership, comparison, diff and apply order. Pure: all functions
//! take and return values.
//!
//! [`canonical`] computes the form that is hashed; [`Owner`], [`OwnerMark`] and [`stamp`] are the ownership
//! annotations (marks); [`compare`] finds differences; [`decide`] decides about one object; [`ApplyPhase`]
//! and [`ApplyOrder`] order the steps; [`uses`] finds the workloads to restart. Marks and hashes are the same
//! as in qontract-reconcile, so qontract takes over a live cluster without writes. The README lists every
//! rule in a table.

mod canonical;
mod compare;
mod decide;
mod difference;
mod immutable;
mod items;
mod mark;
mod names;
mod normalize;
mod object;
mod object_diff;
mod order;
mod ownership;
mod path;
mod quantity;
mod recycle;
mod refusal;
mod restart;
mod rollout;
mod values;

pub use canonical::{CanonicalForm, NotAnObject, canonical};
pub use compare::{ObjectComparison, compare, is_written};
pub use decide::{ObjectIntent, PresentIntent, PreviousOwner, Verdict, decide};
pub use difference::{DifferenceSide, Disclosure, FieldDifference};
pub use immutable::Replacement;
pub use mark::{
    CALLER, INTEGRATION, InvalidVersion, Owner, OwnerMark, RECYCLE_PENDING, SENSITIVE, SHA256SUM, UPDATE,
    VERSION, stamp,
};
pub use names::marks_of;
pub use object::{Controller, DesiredBody, InvalidObject, LiveBody};
pub use object_diff::{KeyLoss, LiveWriter, ObjectDiff, ObjectWrite, body_differences, diff};
pub use order::{ApplyOrder, ApplyPhase};
pub use ownership::Callers;
pub use quantity::is_quantity;
pub use recycle::{uses, wants_recycle};
pub use restart::{marked_body, preserve_restarts, to_write};
pub use rollout::{RolloutStatus, rollout_status};
pub use values::{InvalidValue, invalid_values};
