//! Integration metadata: name, declared queries, flags, and the properties on which incremental comparison
//! relies.

use std::time::Duration;

use qontract_graphql::Operation;
use serde::{Deserialize, Serialize};

use crate::flag::{ArgumentKind, Flag, FlagKind, Switch};
use crate::key::{CALLER_DIMENSION, ShardKey};

/// A GraphQL query that an integration declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredQuery {
    /// The name of the query's operation.
    pub name: String,
    /// The GraphQL document.
    pub text: String,
    /// The behaviour if the GraphQL types of the data lack a field of the query.
    pub presence: QueryPresence,
}

/// The behaviour if the GraphQL types of the data lack a field of a declared query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryPresence {
    /// The run fails.
    #[default]
    Required,
    /// The query is not executed, and has no result.
    IfKnown,
}

impl DeclaredQuery {
    /// Returns the query from which `cargo xtask generate` generated `Q`.
    pub fn of<Q: Operation>() -> Self {
        Self { name: Q::SOURCE.name().to_owned(), text: Q::SOURCE.text(), presence: QueryPresence::Required }
    }
}

/// The metadata of an integration.
///
/// ```
/// use qontract_runtime::{AdHocReads, IntegrationMeta, MAX_ROUNDS};
///
/// let meta = IntegrationMeta::new("groups", "Creates a group for each team")
///     .selects("cluster-name", "cluster")
///     .rounds(99)
///     .reads_ad_hoc_during_declare();
/// assert_eq!((meta.flags[0].name, meta.rounds), ("cluster-name", MAX_ROUNDS));
/// assert_eq!(meta.ad_hoc_reads, AdHocReads::DuringDeclare);
/// ```
#[derive(Clone, Debug)]
pub struct IntegrationMeta {
    /// The name in the data, on the command line and in metrics.
    pub name: String,
    /// A one-sentence description.
    pub description: String,
    /// The declared queries.
    pub queries: Vec<DeclaredQuery>,
    /// The flags that the integration adds to the command line.
    pub flags: Vec<Flag>,
    /// Number of rounds of a real run, 1 to [`MAX_ROUNDS`].
    pub rounds: u32,
    /// The time for which a real run waits for operations in progress in the target.
    pub patience: Patience,
    /// The rounds in which `resolve` is called.
    pub resolution: Resolution,
    /// The limits of the integration's runs; limits that are not set have defaults.
    pub limits: IntegrationLimits,
    /// The phases in which the integration makes ad-hoc reads: queries that it does not declare, and resources by
    /// path.
    pub ad_hoc_reads: AdHocReads,
    /// Whether other integrations depend on the objects that this integration creates. If many integrations run
    /// concurrently, the others start after its first run.
    pub runs_first: bool,
    /// The list in the integration's query results whose elements it declares independently of each other, if any.
    pub independent_list: Option<IndependentList>,
    /// The predicate for resources that may cause further ad-hoc reads for an element of the independent list that
    /// names such a resource.
    pub ad_hoc_trigger: AdHocTrigger,
    /// The dimensions whose values decide in which slot a shard runs.
    pub slot_dimensions: SlotDimensions,
    /// The permissions that the integration needs on Kubernetes clusters; `None` if it does not work on clusters.
    pub permissions: Option<ClusterPermissions>,
}

/// The dimensions of a shard key whose values decide in which slot the shard runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SlotDimensions {
    /// The values of all dimensions.
    #[default]
    All,
    /// Only the value of this dimension. For a shard without this dimension, the values of all dimensions decide.
    Only(String),
    /// All dimensions except the [caller](crate::CALLER_DIMENSION), so that the callers of a target share a
    /// process.
    WithoutCaller,
}

/// The permissions that an integration needs on Kubernetes clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterPermissions {
    /// The kinds of objects that the integration manages.
    pub kinds: ManagedKinds,
    /// The verbs that the integration needs for these kinds.
    pub verbs: &'static [&'static str],
}

/// The kinds of Kubernetes objects that an integration manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedKinds {
    /// A fixed kind, with its API group: `NetworkPolicy.networking.k8s.io`.
    Fixed(&'static str),
    /// Fixed kinds, each with its API group.
    Several(&'static [&'static str]),
    /// The kinds that the data lists for each namespace.
    OfNamespaces,
    /// The kinds that a program declares for each shard.
    Declared,
}

impl ManagedKinds {
    /// Returns the permissions to create, change and remove objects of these kinds. Single objects are read before
    /// their fields are migrated, and while they are replaced.
    pub const fn permissions(self) -> ClusterPermissions {
        ClusterPermissions { kinds: self, verbs: &["list", "get", "create", "patch", "delete"] }
    }
}

/// The time that a run waits for operations that are in progress in the target, such as rollouts.
///
/// ```
/// use std::time::Duration;
///
/// use qontract_runtime::{IntegrationMeta, Patience};
///
/// let meta = IntegrationMeta::new("deploy", "Deploys applications");
/// assert_eq!(meta.patience, Patience::NONE);
/// let meta = meta.patience(Duration::from_secs(5), Duration::from_mins(10));
/// assert_eq!(meta.patience.total, Duration::from_mins(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The interval between two observations of the target.
    pub every: Duration,
    /// Maximum time for which one run waits. If this time is zero, the run does not wait.
    pub total: Duration,
}

impl Patience {
    /// No waiting: a run whose plan has waits ends immediately as waiting.
    pub const NONE: Self = Self { every: Duration::from_secs(5), total: Duration::ZERO };
}

/// The rounds in which the desired state of a shard is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Once per run: its inputs do not depend on the steps of the run.
    #[default]
    Once,
    /// In each round, because the steps of a round change the inputs of the desired state, such as the outputs of
    /// Terraform or the records of deployments.
    EachRound,
}

/// Limits that an integration sets for its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrationLimits {
    /// Timeout of one phase of one shard or, in the function form, of the whole run.
    pub phase_timeout: Option<Duration>,
    /// Timeout of applying one step.
    pub step_timeout: Option<Duration>,
    /// Maximum number of shards that are processed concurrently. A flag can lower this number but not raise it.
    pub max_shards: Option<usize>,
    /// Time that a step in progress gets to end after a shutdown request, before it is abandoned.
    pub shutdown_timeout: Option<Duration>,
}

/// A list whose elements are declared independently: the declared state of an element depends on other elements only
/// if they conflict with it. After a change to some elements, a comparison declares only these elements and the
/// elements that they can conflict with.
#[derive(Clone, Copy, Debug)]
pub struct IndependentList {
    /// The key of the list in the query result.
    pub list: &'static str,
    /// Two elements can conflict only if their datafiles have the same value for one of these keys. Values are
    /// compared after [`normalize_key`](crate::normalize_key); integrations that detect conflicts must also normalize
    /// them.
    pub conflict_keys: &'static [&'static str],
    /// Other lists in the query result. An element of such a list affects an independent element only if its part of
    /// the result is read, through references, from the datafile of the independent element or of an element that can
    /// conflict with it.
    pub joined_lists: &'static [&'static str],
}

/// A predicate for the contents of resources that may cause further ad-hoc reads. A server finds the predicate by its
/// name and assumes [any](Self::ANY) if it does not know the name. Therefore, a predicate that is changed to
/// match more resources must get a new name.
#[derive(Clone, Copy, Debug)]
pub struct AdHocTrigger {
    /// The name of the predicate.
    pub name: &'static str,
    /// The predicate, called with the content of a resource.
    pub matches: fn(&str) -> bool,
}

impl AdHocTrigger {
    /// A predicate that matches any resource.
    pub const ANY: Self = Self { name: "any", matches: |_| true };
    /// A predicate that matches no resource.
    pub const NONE: Self = Self { name: "none", matches: |_| false };
}

/// When an integration makes ad-hoc reads: queries that it does not declare, and resources by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdHocReads {
    /// The integration makes no ad-hoc reads.
    Never,
    /// During `declare`; later phases repeat only those reads. All results are part of the declared state. If the
    /// integration declares the elements of a list independently, it reads for each element the resources that the
    /// element names. It makes further reads only if [a resource triggers them](IntegrationMeta::ad_hoc_trigger).
    DuringDeclare,
    /// In any phase: the declared state does not determine the outcome.
    Anytime,
}

/// Maximum number of rounds of one run.
pub const MAX_ROUNDS: u32 = 3;

impl IntegrationMeta {
    /// Creates metadata without queries and flags.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self {
            name,
            description,
            queries: Vec::new(),
            flags: Vec::new(),
            rounds: 1,
            patience: Patience::NONE,
            resolution: Resolution::default(),
            limits: IntegrationLimits::default(),
            ad_hoc_reads: AdHocReads::Never,
            runs_first: false,
            independent_list: None,
            ad_hoc_trigger: AdHocTrigger::ANY,
            slot_dimensions: SlotDimensions::All,
            permissions: None,
        }
    }

    /// Adds a declared query.
    #[must_use]
    pub fn query<Q: Operation>(mut self) -> Self {
        self.queries.push(DeclaredQuery::of::<Q>());
        self
    }

    /// Adds a query that is executed only if the GraphQL types of the data have all of its fields; see
    /// [`Data::query_if_known`](crate::Data::query_if_known). Such queries read fields that the schemas of other data
    /// repos may lack.
    #[must_use]
    pub fn query_if_known<Q: Operation>(mut self) -> Self {
        self.queries.push(DeclaredQuery { presence: QueryPresence::IfKnown, ..DeclaredQuery::of::<Q>() });
        self
    }

    /// Assigns shards to slots by the value of one dimension, so that all shards with that value run in the same
    /// process.
    ///
    /// ```
    /// use qontract_runtime::{IntegrationMeta, ShardKey};
    ///
    /// let meta = IntegrationMeta::new("deploy", "Deploys applications").slots_by("saas-file");
    /// let key = ShardKey::new([("saas-file", "shop"), ("cluster", "c1"), ("namespace", "n1")]);
    /// assert_eq!(meta.slot_value(&key), "shop");
    /// ```
    #[must_use]
    pub fn slots_by(mut self, dimension: impl Into<String>) -> Self {
        self.slot_dimensions = SlotDimensions::Only(dimension.into());
        self
    }

    /// Assigns all callers of a target to the same slot. Otherwise the process of one caller could remove an object
    /// that the process of another caller declares, because a process compares only the shards of its own slot.
    ///
    /// ```
    /// use qontract_runtime::{IntegrationMeta, ShardKey};
    ///
    /// let meta = IntegrationMeta::new("settings", "Declares settings").slots_without_caller();
    /// let key = ShardKey::new([("cluster", "c1"), ("namespace", "n1"), ("caller", "shop")]);
    /// assert_eq!(meta.slot_value(&key), "c1/n1");
    /// ```
    #[must_use]
    pub fn slots_without_caller(mut self) -> Self {
        self.slot_dimensions = SlotDimensions::WithoutCaller;
        self
    }

    /// The string that is hashed to choose the slot of a shard.
    pub fn slot_value(&self, key: &ShardKey) -> String {
        match &self.slot_dimensions {
            SlotDimensions::All => key.slot_value(),
            SlotDimensions::Only(dimension) => {
                key.get(dimension).map_or_else(|| key.slot_value(), str::to_owned)
            }
            SlotDimensions::WithoutCaller => {
                ShardKey::new(key.parts().filter(|(name, _)| *name != CALLER_DIMENSION)).slot_value()
            }
        }
    }

    /// Adds a flag that selects shards by a dimension.
    #[must_use]
    pub fn selects(self, flag: &'static str, dimension: &'static str) -> Self {
        let help = "Select only shards with this value; can be repeated";
        self.flag(flag, help, FlagKind::Selects(dimension))
    }

    /// Adds a flag that excludes shards by a dimension.
    #[must_use]
    pub fn excludes(self, flag: &'static str, dimension: &'static str) -> Self {
        let help = "Exclude shards with this value; can be repeated";
        self.flag(flag, help, FlagKind::Excludes(dimension))
    }

    /// Adds a flag of this kind.
    #[must_use]
    pub fn flag(mut self, name: &'static str, help: &'static str, kind: FlagKind) -> Self {
        self.flags.push(Flag::new(name, help, kind));
        self
    }

    /// Adds a positional argument. Required arguments come first, then optional ones; an argument that can be
    /// repeated must be the last.
    #[must_use]
    pub fn argument(self, name: &'static str, help: &'static str, kind: ArgumentKind) -> Self {
        self.flag(name, help, FlagKind::Argument(kind))
    }

    /// Adds a switch that prints the desired state of the selected shards instead of reconciling them; see
    /// [`StagedIntegration::print`](crate::StagedIntegration::print).
    #[must_use]
    pub fn prints(self, flag: &'static str, help: &'static str) -> Self {
        self.flag(flag, help, FlagKind::Print)
    }

    /// Adds a short option to the flag that was added last, such as `-r` for `r`.
    ///
    /// # Panics
    ///
    /// If no flag was added before this call.
    #[must_use]
    pub fn short(mut self, short: char) -> Self {
        self.flags.last_mut().expect("the flag is added first").short = Some(short);
        self
    }

    /// Lets the flag that was added last take its value from an environment variable if the flag is not given.
    ///
    /// # Panics
    ///
    /// If no flag was added before this call.
    #[must_use]
    pub fn variable(mut self, variable: &'static str) -> Self {
        self.flags.last_mut().expect("the flag is added first").variable = Some(variable);
        self
    }

    /// States that the integration declares only a part of its shards if the flag that was added last is given. A run
    /// with such a flag does not take the other shards for removed ones.
    ///
    /// # Panics
    ///
    /// If no flag was added before this call.
    #[must_use]
    pub fn restricts_shards(mut self) -> Self {
        self.flags.last_mut().expect("the flag is added first").restricts = true;
        self
    }

    /// Adds two switches that turn each other off.
    #[must_use]
    pub fn switches(mut self, one: Switch, other: Switch) -> Self {
        let flag = |switch: Switch, opposite: &'static str| {
            let Switch { name, help, kind } = switch;
            Flag { opposite: Some(opposite), ..Flag::new(name, help, kind) }
        };
        self.flags.extend([flag(one, other.name), flag(other, one.name)]);
        self
    }

    /// Sets the permissions that the integration needs on Kubernetes clusters.
    #[must_use]
    pub fn permissions(mut self, permissions: ClusterPermissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// Declares that other integrations depend on the objects that this integration creates.
    #[must_use]
    pub fn runs_first(mut self) -> Self {
        self.runs_first = true;
        self
    }

    /// Declares that the elements of a list are declared independently; see [`IndependentList`].
    #[must_use]
    pub fn independent_list(mut self, list: &'static str, conflict_keys: &'static [&'static str]) -> Self {
        self.independent_list = Some(IndependentList { list, conflict_keys, joined_lists: &[] });
        self
    }

    /// Adds lists whose elements affect elements of the [independent list](Self::independent_list), which
    /// must be set before.
    #[must_use]
    pub fn joined_lists(mut self, joined: &'static [&'static str]) -> Self {
        let independent = self.independent_list.as_mut().expect("the independent list is set first");
        independent.joined_lists = joined;
        self
    }

    /// Sets the predicate for resources that trigger further ad-hoc reads.
    #[must_use]
    pub fn triggers_ad_hoc_reads(mut self, trigger: AdHocTrigger) -> Self {
        self.ad_hoc_trigger = trigger;
        self
    }

    /// Sets the number of rounds.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds.clamp(1, MAX_ROUNDS);
        self
    }

    /// Sets the time that a real run waits for operations in progress, and the interval at which it observes
    /// them.
    #[must_use]
    pub fn patience(mut self, every: Duration, total: Duration) -> Self {
        self.patience = Patience { every, total };
        self
    }

    /// Requests that `resolve` is called in each round, not only once per run.
    #[must_use]
    pub fn resolves_each_round(mut self) -> Self {
        self.resolution = Resolution::EachRound;
        self
    }

    /// Sets the limits of the integration's runs.
    #[must_use]
    pub fn limits(mut self, limits: IntegrationLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows ad-hoc queries and reads of resources by path in any phase.
    #[must_use]
    pub fn reads_ad_hoc(mut self) -> Self {
        self.ad_hoc_reads = AdHocReads::Anytime;
        self
    }

    /// Allows ad-hoc queries and reads of resources by path during `declare`. All results must be part of the
    /// declared state.
    #[must_use]
    pub fn reads_ad_hoc_during_declare(mut self) -> Self {
        self.ad_hoc_reads = AdHocReads::DuringDeclare;
        self
    }
}
