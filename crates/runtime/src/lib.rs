//! The integration contract, and the runner that enforces it.
//!
//! An integration implements five phases (see [`StagedIntegration`]): declare, resolve, observe, plan and apply. The
//! runner runs the phases in order and the shards concurrently, enforces permits, deadlines and guards, and records
//! every decision with its reason.

pub mod affected;
pub mod allow_list;
pub mod audit;
mod comparison_query;
mod contract;
mod data;
mod deadline;
mod declared_cache;
pub mod definition;
mod fault;
mod field_diff;
mod fingerprint;
mod flag;
pub mod foreign;
mod function;
pub mod guard;
mod integration;
mod key;
mod lazy_lease;
pub mod lease;
mod meta;
mod options;
mod outcome;
mod plan;
pub mod process;
pub mod reconcile_loop;
pub mod record;
mod recording;
mod redaction;
pub mod replay;
mod reservation;
mod round_cache;
mod run;
mod run_request;
mod run_state;
mod secrets;
mod shutdown;
pub mod slot;
mod source_location;
pub mod state;
mod step_effect;
mod termination;
mod truncation;
mod trust;
mod type_erasure;
mod unknown_fields;
mod unplanned;
mod wire_dimensions;

pub use contract::{
    ApplyResult, ApprovedObject, CurrentState, DeclaredShardView, DeclaredStateOf, DesiredItem, DesiredState,
    Observed, ReadContext, RehearsalResult, StagedIntegration, WriteContext,
};
pub use data::{
    BundleReader, Data, DataError, DeclaredAnswer, LoadedBundle, QueryLog, QueryPolicy, QueryRequest,
    ResourceBatch, UntypedAnswer,
};
pub use declared_cache::SharedDeclaredState;
pub use fault::{Fault, Responsible};
pub use field_diff::{DiffEntry, FieldChange, FieldDiff};
pub use flag::{ArgumentKind, Flag, FlagKind, Switch, flags_error, is_reserved_short};
pub use meta::{
    AdHocReads, AdHocTrigger, ClusterPermissions, DeclaredQuery, IndependentList, IntegrationLimits,
    IntegrationMeta, MAX_ROUNDS, ManagedKinds, Patience, QueryPresence, Resolution, SlotDimensions,
};
pub use qontract_graphql::{Operation, QuerySource, normalize_key};
pub use type_erasure::{
    AnyCurrentState, AnyDeclaredState, AnyDesiredState, DesiredFact, DesiredKind, DynIntegration,
    OpaqueValue, PrintedShard, texts,
};

pub use function::{Function, FunctionContext, FunctionState};
pub use integration::{Integration, count_declared};
pub use key::{CALLER_DIMENSION, InvalidShardKey, Scope, ShardKey};
pub use options::{InvalidVariable, Options, UnmatchedSelector};
pub use outcome::{
    ApprovalForm, Decision, NextRun, PinnedBundle, PlanKnowledge, RunEnd, RunOutcome, ShardOutcome,
    ShardState, SkipKind, SkipReason,
};
pub use plan::{
    Change, ChangeKind, Degradation, FieldLoss, HeldPlanChange, Hold, ObjectKey, Plan, PlanDigest, PlanHint,
    PlanStage, Rollout, RolloutProgress, Step, StepGroup, StepResult, Wait,
};
pub use record::{LineResolvers, RunRecord, RunTiming};
pub use round_cache::RoundCache;
pub use run::{NOT_VALIDATED, run};
pub use run_request::{Bodies, RunLimits, RunRequest, SelectionObserver};
pub use run_state::RunState;
pub use secrets::{SecretLookup, ShardSecrets};
pub use source_location::{SourceLocation, SourceLocations};
pub use trust::{AddressTrust, TargetAddress};
pub use unknown_fields::unknown_fields;
pub use unplanned::{
    DeclaredCount, DeclaredDifference, ObjectFate, ReleasedObjects, ReleasedPart, UnplannedItem,
};
