//! Decides what happens to Kubernetes objects: ownership, comparison, diff and apply order. Pure: values in,
//! values out.
//!
//! [`canonical`] computes the form that is hashed; [`Owner`], [`Mark`] and [`stamp`] are the ownership
//! annotations (marks); [`compare`] finds differences; [`decide`] decides about one object; [`Stage`] and
//! [`Turn`] order the steps; [`uses`] finds the workloads to restart. Marks and hashes are those of the
//! established runtime, so a live cluster is taken over without another write. The README states every rule
//! in a table.

mod canonical;
mod compare;
mod decide;
mod difference;
mod immutable;
mod mark;
mod names;
mod normal;
mod object;
mod object_diff;
mod order;
mod path;
mod quantity;
mod recycle;
mod refusal;
mod restart;
mod standing;

pub use canonical::{Canonical, NotAnObject, canonical};
pub use compare::{Comparison, compare};
pub use decide::{Former, Verdict, Wanted, decide};
pub use difference::{Difference, Disclosure, Side};
pub use mark::{
    BadVersion, CALLER, INTEGRATION, Mark, Owner, RECYCLE_PENDING, SENSITIVE, SHA256SUM, UPDATE, VERSION,
    stamp,
};
pub use names::marks_of;
pub use object::{Controller, Desired, InvalidObject, Live};
pub use object_diff::{KeyLoss, LiveWriter, ObjectDiff, ObjectWrite, body, diff};
pub use order::{Stage, Turn};
pub use recycle::{uses, wants_recycle};
pub use restart::{keep_restarts, to_write};
pub use standing::Callers;
