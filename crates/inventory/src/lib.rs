//! Kubernetes objects as the inventory knows them: whose they are, what differs, and what therefore happens. Pure: values in,
//! values out.
//!
//! [`canonical`] gives the form that is hashed; [`Owner`], [`Mark`] and [`stamp`] are the marks on objects; [`compare`] tells
//! what differs; [`decide`] tells what happens to one object; [`Stage`] and [`Turn`] tell when; [`uses`] tells which workloads
//! are restarted. Marks and hashes are those of the established runtime, so a live cluster is taken over without applying
//! anything again. The README states every rule in a table.

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
mod python;
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
pub use object::{Desired, InvalidObject, Live};
pub use object_diff::{KeyLoss, LiveWriter, ObjectDiff, ObjectWrite, body, diff};
pub use order::{Stage, Turn};
pub use recycle::{uses, wants_recycle};
pub use restart::{keep_restarts, to_write};
pub use standing::Callers;
