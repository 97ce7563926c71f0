//! The contract of the staged form: the five phases that an integration implements. The runner is responsible for all
//! other concerns: order, deadlines, concurrency, dry runs, early exit, shards, guards, waits and reports.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use qontract_access::{ReadPermit, WritePermit};
use serde::Serialize;

use crate::data::Data;
use crate::fault::Fault;
use crate::fingerprint::Fingerprints;
use crate::guard::Date;
use crate::key::{Scope, ShardKey};
use crate::meta::IntegrationMeta;
use crate::options::Options;
use crate::plan::{Change, ObjectKey, Plan};
use crate::round_cache::RoundCache;
use crate::secrets::{SecretLookup, ShardSecrets};
use crate::source_location::SourceLocation;
use crate::state::{DeclaredState, Shard};
use crate::trust::{AddressTrust, TargetAddress};
use crate::unplanned::ReleasedPart;

/// One item of desired state: an object that must exist, or that must not exist.
#[derive(Clone, Debug)]
pub struct DesiredItem<T> {
    /// The object that must exist or must not exist.
    pub object: ObjectKey,
    /// Provenance: the location in the data that declares it.
    pub place: Option<SourceLocation>,
    /// The desired state of the object.
    pub state: DesiredState<T>,
}

/// The desired state of one object.
#[derive(Clone, Debug)]
pub enum DesiredState<T> {
    /// The object must exist in this state.
    Present(T),
    /// The object must not exist: the data has an explicit `delete: true`, which approves the removal.
    Delete,
    /// The desired state could not be resolved. Nothing in the object's scope is removed.
    Unresolved(Fault),
}

/// An object whose removal is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedObject {
    /// The object whose removal is approved.
    pub object: ObjectKey,
    /// Provenance: the location that approves it.
    pub place: Option<SourceLocation>,
}

/// The result of reading one scope.
///
/// ```
/// use qontract_runtime::{CurrentState, Fault, Observed, Scope};
///
/// let mut current = CurrentState::<String>::new();
/// for (team, read) in [("core", Ok(vec!["dev".to_owned()])), ("ops", Err("timed out"))] {
///     let observed = match read {
///         Ok(groups) => Observed::Known(groups),
///         Err(why) => Observed::Unknown(Fault::remote(format!("cannot list groups: {why}"))),
///     };
///     current.insert(Scope::new([("team", team)]), observed);
/// }
///
/// // A plan contains no steps for scopes that were not read.
/// let known = |team| matches!(current[&Scope::new([("team", team)])], Observed::Known(_));
/// assert_eq!((known("core"), known("ops")), (true, false));
/// ```
#[derive(Clone, Debug)]
pub enum Observed<T> {
    /// All objects in the scope that are relevant to the integration.
    Known(Vec<T>),
    /// The read failed. Nothing in the scope is removed; the fault is reported.
    Unknown(Fault),
}

/// The current state of the target, by scope.
pub type CurrentState<T> = BTreeMap<Scope, Observed<T>>;

/// The inputs of one plan of a staged integration.
#[derive(Debug)]
pub struct PlanInputs<D, C> {
    /// The desired state.
    pub desired: Vec<DesiredItem<D>>,
    /// The current state.
    pub current: CurrentState<C>,
}

/// The result of applying a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyResult {
    /// The step was applied.
    Done,
    /// The target changed since the step was planned; the runner plans again.
    Stale,
}

/// The result of rehearsing a step. A dry run rehearses steps if the target supports it; the target does not
/// change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RehearsalResult {
    /// The target would apply the step.
    Accepted,
    /// The target would refuse the step, for this reason.
    Refused(Fault),
    /// The target could not validate the step, for this reason: for example, because a dependency does not exist yet.
    NotValidated(String),
    /// The step was not rehearsed.
    Skipped,
}

/// The context of the read phases: `resolve`, `observe` and `rehearse`.
#[derive(Clone, Debug)]
pub struct ReadContext {
    /// The permit that every read needs.
    pub permit: ReadPermit,
    /// The data, for ad-hoc queries and resources.
    pub data: Data,
    /// The data before a proposed change, if the run compares two bundles.
    pub base: Option<Data>,
    /// The cache of reads in this round, which all shards share.
    pub cache: RoundCache,
    /// The time of this round. Integrations use it instead of a clock, so that a run can be replayed.
    pub now: Timestamp,
    /// The secrets that this shard may read. Values that the shard reads are recorded in it for redaction.
    pub secrets: ShardSecrets,
    /// The addresses that this shard may contact. An integration checks each of its
    /// [addresses](StagedIntegration::addresses) before it contacts it.
    pub trust: AddressTrust,
}

impl ReadContext {
    /// The date of this round, in UTC.
    pub fn today(&self) -> Date {
        self.now.to_zoned(TimeZone::UTC).date()
    }
}

/// The context of the write phase. It exists only in a real run.
#[derive(Debug)]
pub struct WriteContext<'r> {
    /// The permit that every write needs.
    pub permit: &'r WritePermit,
    /// The read permit, for checking preconditions.
    pub read: &'r ReadPermit,
    /// The name of the run, for annotations on target objects.
    pub run: &'r str,
    /// The time of this round, as in [`ReadContext::now`].
    pub now: Timestamp,
}

/// One shard of a declared state, as passed to `resolve` and `observe`.
#[derive(Debug)]
pub struct DeclaredShardView<'d, C, T, S> {
    /// The key of the shard.
    pub key: &'d ShardKey,
    /// The state that all shards share.
    pub common: &'d C,
    /// The declared state of the shard.
    pub shard: &'d Shard<T, S>,
}

// Implemented by hand, because a view is `Copy` even if its type parameters are not.
impl<C, T, S> Clone for DeclaredShardView<'_, C, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, T, S> Copy for DeclaredShardView<'_, C, T, S> {}

/// The declared state of an integration.
pub type DeclaredStateOf<I> = DeclaredState<
    <I as StagedIntegration>::Common,
    <I as StagedIntegration>::Target,
    <I as StagedIntegration>::State,
>;

/// An integration of the staged form.
///
/// A complete example: a group for each team in the data. The dry run only plans, the real run applies the plan, and
/// the next plan is empty.
///
/// ```
/// # use std::collections::{BTreeMap, BTreeSet};
/// # use std::sync::Arc;
/// # use parking_lot::Mutex;
/// # use qontract_access::Mode;
/// # use qontract_runtime::guard::ProtectedKinds;
/// # use qontract_runtime::state::{DeclaredState, Shard};
/// # use qontract_runtime::*;
/// # #[derive(serde::Deserialize)]
/// # struct Teams { teams: Vec<Team> }
/// # #[derive(serde::Deserialize)]
/// # struct Team { name: String }
/// # impl Operation for Teams {
/// #     const SOURCE: QuerySource = QuerySource::new("Teams", "query Teams { teams { name } }", &[]);
/// # }
/// # struct Groups { meta: IntegrationMeta, live: Mutex<BTreeSet<String>> }
/// type View<'a> = DeclaredShardView<'a, (), (), String>;
///
/// impl StagedIntegration for Groups {
/// #   type Common = ();
/// #   type Target = ();
/// #   type State = String;
/// #   type Desired = ();
/// #   type Current = String;
/// #   type Action = String;
/// #   fn meta(&self) -> &IntegrationMeta { &self.meta }
///     fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
///         let mut declared = DeclaredState::new(());
///         for Team { name } in data.query::<Teams>()?.data.teams {
///             declared.add(ShardKey::new([("team", &*name)]), Shard::new((), name, None));
///         }
///         Ok(declared)
///     }
///     async fn resolve(&self, _: &ReadContext, view: View<'_>) -> Result<Vec<DesiredItem<()>>, Fault> {
///         let (scope, name) = (Scope::new(view.key.parts()), view.shard.state.clone());
///         let object = ObjectKey { scope, kind: "Group".to_owned(), name };
///         Ok(vec![DesiredItem { object, place: None, state: DesiredState::Present(()) }])
///     }
///     async fn observe(
///         &self, _: &ReadContext, view: View<'_>, _: &[DesiredItem<()>],
///     ) -> Result<CurrentState<String>, Fault> {
///         let live = self.live.lock().iter().cloned().collect();
///         Ok(BTreeMap::from([(Scope::new(view.key.parts()), Observed::Known(live))]))
///     }
///     fn plan(&self, desired: &[DesiredItem<()>], current: &CurrentState<String>) -> Plan<String> {
///         let mut plan = Plan::default();
///         for DesiredItem { object, .. } in desired {
///             let Some(Observed::Known(live)) = current.get(&object.scope) else { continue };
///             if !live.contains(&object.name) {
///                 let change = Change::new(ChangeKind::Add, object.clone(), "create group");
///                 plan.add_step(change, object.name.clone());
///             }
///         }
///         plan
///     }
///     async fn apply(&self, _: &WriteContext<'_>, name: &String) -> Result<ApplyResult, Fault> {
///         self.live.lock().insert(name.clone());
///         Ok(ApplyResult::Done)
///     }
/// }
///
/// # let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
/// #     "graphql": [
/// #         {"name": "Query", "fields": [
/// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
/// #         {"name": "Team", "fields": [{"name": "name", "type": "string"}]}],
/// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "core"}}}"#;
/// # let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default())?;
/// # let engine = qontract_graphql::Engine::new(Arc::new(bundle))?;
/// # let bundle: Arc<dyn BundleReader> = Arc::new(LoadedBundle::new(Arc::new(engine)));
/// # let request = |mode| {
/// #     let today = jiff::civil::date(2026, 1, 1);
/// #     let request = RunRequest::new("run", mode, Arc::clone(&bundle), today, ProtectedKinds::default());
/// #     RunRequest { validate_schemas: false, ..request }
/// # };
/// # let meta = IntegrationMeta::new("groups", "Creates a group for each team").query::<Teams>();
/// let groups = Integration::staged(Groups { meta, live: Mutex::default() });
/// let planned = async |mode| {
///     let outcome = run(&groups, &request(mode)).await;
///     let changes = outcome.shards.values().flat_map(|shard| &shard.changes);
///     changes.map(ToString::to_string).collect::<Vec<_>>()
/// };
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// assert_eq!(planned(Mode::DryRun).await, ["+ create group `core` (team=core)"]);
/// assert_eq!(planned(Mode::Real).await, ["+ create group `core` (team=core)"]);
/// assert_eq!(planned(Mode::Real).await, [""; 0]);
/// # });
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait StagedIntegration: Send + Sync + 'static {
    /// The state that all shards share.
    type Common: Serialize + Send + Sync + 'static;
    /// The address of a shard's target.
    type Target: Serialize + Clone + Send + Sync + 'static;
    /// The declared state of a shard.
    type State: Serialize + Send + Sync + 'static;
    /// The desired state of an object.
    type Desired: Send + Sync + 'static;
    /// The current state of an object.
    type Current: Send + Sync + 'static;
    /// The integration's own description of the effect of a step.
    type Action: Send + Sync + 'static;

    /// The integration's metadata.
    fn meta(&self) -> &IntegrationMeta;

    /// Declares the state that follows from the data alone. Pure: it depends only on `data` and `options`.
    fn declare(&self, data: &Data, options: &Options) -> Result<DeclaredStateOf<Self>, Fault>
    where
        Self: Sized;

    /// The secrets that the data names for a shard. In a dry run with a base, `resolve` reads only the
    /// secrets that base also names.
    fn secret_lookups(
        &self,
        _: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
    ) -> BTreeSet<SecretLookup> {
        BTreeSet::new()
    }

    /// The addresses that a shard contacts: by default only its target. In a dry run with a base, a shard runs if
    /// base names at least one of them, anywhere in the integration; see [`ReadContext::trust`].
    fn addresses(
        &self,
        view: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
    ) -> Vec<TargetAddress> {
        vec![TargetAddress::of(view.key.to_string(), &view.shard.target)]
    }

    /// The objects that base manages in a shard and that head no longer manages, although head does not remove them.
    /// `head` is the shard with the same key in head, or `None` if head disables the integration for the shard. By
    /// default, only the objects of a disabled shard are released, and their number is unknown.
    fn released(
        &self,
        _: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
        head: Option<DeclaredShardView<'_, Self::Common, Self::Target, Self::State>>,
    ) -> Vec<ReleasedPart> {
        if head.is_some() { Vec::new() } else { vec![ReleasedPart::whole()] }
    }

    /// Strings that follow from the data of a shard alone and are not in the shard's serialised state. They are shown
    /// even if they equal a secret.
    fn public_texts(&self, _: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>) -> Vec<String> {
        Vec::new()
    }

    /// Computes the desired state from external inputs (templates, secrets, references). An item that cannot
    /// be resolved is `Unresolved`; an error means that no item can be resolved.
    fn resolve(
        &self,
        read: &ReadContext,
        view: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
    ) -> impl Future<Output = Result<Vec<DesiredItem<Self::Desired>>, Fault>> + Send;

    /// The desired state of a shard as text, for a run with a [print switch](IntegrationMeta::prints): such a
    /// run ends after `resolve`, and its output is the concatenated text of the shards, in order of their
    /// keys. Pure. The text must contain no secrets and no control characters; otherwise the text of the
    /// shard is not printed.
    fn print(&self, _: &ShardKey, _: &[DesiredItem<Self::Desired>]) -> Option<String> {
        None
    }

    /// Reads the current state: all objects of the shard that the integration owns. For a shard that exists
    /// only in base, `view` is base's declared state and `desired` is empty.
    fn observe(
        &self,
        read: &ReadContext,
        view: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
        desired: &[DesiredItem<Self::Desired>],
    ) -> impl Future<Output = Result<CurrentState<Self::Current>, Fault>> + Send;

    /// The objects whose removal is approved by an observation of the integration, such as its own earlier plan.
    /// Pure. The approval must not follow from anything that a third party can write. It also covers protected kinds,
    /// because it names the object; nothing is removed from a scope that was not read.
    fn approved_removals(&self, _: &CurrentState<Self::Current>) -> Vec<ApprovedObject> {
        Vec::new()
    }

    /// The [incarnations](crate::Change::incarnation) of the observed objects that the shard manages; empty if the
    /// integration does not set the incarnations of the objects that it removes. Pure. If an object is managed by a
    /// shard of head, a shard that exists only in base does not remove it, because the target was renamed.
    fn incarnations(&self, _: &CurrentState<Self::Current>) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Instructions for approving the changes that guards hold, if they are not approved with a datafile of removal
    /// approvals. By default, a report has such a datafile. `held` contains no secrets.
    fn approval_text(&self, _held: &[&Change], _today: Date) -> Option<String> {
        None
    }

    /// Plans the steps from current to desired state. Pure.
    fn plan(
        &self,
        desired: &[DesiredItem<Self::Desired>],
        current: &CurrentState<Self::Current>,
    ) -> Plan<Self::Action>;

    /// The inputs of `plan` as JSON, for [replays](crate::replay); `None`, the default, if the integration does not
    /// record its inputs. Values of sensitive objects are replaced by fingerprints; the runner replaces all other
    /// strings that contain a secret that the shard has read.
    fn record_inputs(
        &self,
        _: &[DesiredItem<Self::Desired>],
        _: &CurrentState<Self::Current>,
        _: &Fingerprints,
    ) -> Option<serde_json::Value> {
        None
    }

    /// The inputs that [`record_inputs`](Self::record_inputs) recorded; `None` if the inputs cannot be parsed.
    fn restore_inputs(&self, _: &serde_json::Value) -> Option<PlanInputs<Self::Desired, Self::Current>> {
        None
    }

    /// Requests that the target validates a step without applying it. Called only in dry runs.
    fn rehearse(
        &self,
        _: &ReadContext,
        _: &Self::Action,
    ) -> impl Future<Output = Result<RehearsalResult, Fault>> + Send {
        std::future::ready(Ok(RehearsalResult::Skipped))
    }

    /// Applies one step. Must be idempotent, because a step may be applied twice.
    fn apply(
        &self,
        write: &WriteContext<'_>,
        action: &Self::Action,
    ) -> impl Future<Output = Result<ApplyResult, Fault>> + Send;
}
