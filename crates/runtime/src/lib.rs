//! The integration contract, and the runner that enforces it.
//!
//! An integration implements five phases (see [`Staged`]): declare, resolve, observe, plan, apply. The runner
//! owns everything else: it runs the phases in order and concurrently over all shards, enforces permits,
//! deadlines and guards, and records every decision with its reason.

mod about;
pub mod affected;
pub mod allowed;
pub mod audit;
mod contract;
mod data;
mod declarations;
mod erased;
mod fault;
mod field_diff;
mod function;
pub mod guard;
mod key;
pub mod listing;
pub mod looping;
mod memo;
mod options;
mod outcome;
mod place;
mod plan;
pub mod process;
pub mod record;
mod room;
mod run;
mod run_state;
mod secrets;
mod shorten;
pub mod slot;
pub mod state;

pub use about::{About, Flag, FlagKind, LooksUp, MOST_ROUNDS, OneByOne, Query, Switch};
pub use contract::{
    Applied, DeclaredOf, Observed, Read, Rehearsed, Staged, View, Want, Wanted, World, Write,
};
pub use data::{Answer, Answered, Ask, Asked, Data, DataError, Loaded, ResourceBatch, Source, Terms};
pub use declarations::Declaration;
pub use erased::{AnyDeclared, Dynamic, Fact, Found, Kind, Opaque, Wants, texts};
pub use fault::{Fault, Whose};
pub use field_diff::{DiffEntry, FieldChange, FieldDiff};
pub use qontract_graphql::{Operation, QuerySource};

pub use function::{Cx, Function, FunctionState};
pub use key::{Scope, ShardKey};
pub use memo::Memo;
pub use options::{Options, UnmatchedSelector};
pub use outcome::{Decision, Ended, Outcome, Pinned, ShardOutcome, ShardState, Skip};
pub use place::{Place, Places};
pub use plan::{Change, ChangeKind, Group, Held, Hold, Plan, PlanStage, Step, StepResult, Thing, Wait};
pub use record::{Clock, PlaceLines, Record};
pub use room::Room;
pub use run::{Bodies, Limits, Request, run};
pub use run_state::RunState;
pub use secrets::{SecretLookup, ShardSecrets};
