//! The input of a run.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use qontract_access::{Mode, WriteBounds};
use tokio::sync::watch;

use crate::audit::{Audit, NoAudit};
use crate::data::BundleReader;
use crate::flag::Flag;
use crate::guard::{Budgets, Date, Ledger, MemoryLedger, ProtectedKinds};
use crate::key::ShardKey;
use crate::lease::{Leases, NoLeases};
use crate::meta::IntegrationLimits;
use crate::options::Options;
use crate::recording::InputRecorder;
use crate::shutdown::ShutdownSignal;
use crate::slot::Slot;

/// Timeout and concurrency limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Timeout of one phase of one shard or, in the function form, of the whole run.
    pub phase_timeout: Duration,
    /// Timeout of applying one step.
    pub step_timeout: Duration,
    /// Time that a step in progress gets to end after a shutdown request, if it is longer than the default.
    pub shutdown_timeout: Duration,
    /// Maximum number of shards that are processed concurrently.
    pub max_shards: usize,
    /// Maximum number of groups that are applied concurrently in one stage of one shard.
    pub max_groups: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        let timeout = Duration::from_mins(10);
        Self {
            phase_timeout: timeout,
            step_timeout: timeout,
            shutdown_timeout: Duration::ZERO,
            max_shards: 10,
            max_groups: 8,
        }
    }
}

/// Whether changes that create an object show all of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// Such changes do not show the fields.
    #[default]
    Hidden,
    /// Such changes show all fields.
    Shown,
}

/// Observes the shards that a run processes: called once per run, before the first shard is processed.
#[derive(Clone)]
pub struct SelectionObserver(Arc<ObserveShards>);

type ObserveShards = dyn Fn(&[&ShardKey]) + Send + Sync;

impl SelectionObserver {
    /// Creates an observer that calls this closure.
    pub fn new(observe: impl Fn(&[&ShardKey]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    /// Reports the selected shards.
    pub fn selected(&self, keys: &[&ShardKey]) {
        (self.0)(keys);
    }
}

impl fmt::Debug for SelectionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SelectionObserver").finish_non_exhaustive()
    }
}

/// The input of a run.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options that callers set by name")]
pub struct RunRequest {
    /// The name of the run.
    pub run: String,
    /// Whether the run may write to targets.
    pub mode: Mode,
    /// The bounds of the writes of a real run; without bounds, the run may write all objects.
    pub write_bounds: Option<Arc<WriteBounds>>,
    /// The data to reconcile.
    pub head: Arc<dyn BundleReader>,
    /// The data before a proposed change, if two bundles are compared.
    pub base: Option<Arc<dyn BundleReader>>,
    /// The values of the integration's flags.
    pub options: Options,
    /// The shard slot of this process.
    pub slot: Slot,
    /// The only shards to run, among those that flags and slot select. Other shards are not observed, so the run has
    /// no results for them. A key that the data does not declare is an error.
    pub only_shards: Option<BTreeSet<ShardKey>>,
    /// Whether to run only shards that the change affects.
    pub only_affected: bool,
    /// Whether to run the integration even if the change does not affect it.
    pub include_unaffected: bool,
    /// Whether a flag that selects a nonexistent shard is an error instead of a warning.
    pub strict_selectors: bool,
    /// Whether to enforce the allow-list of schemas.
    pub validate_schemas: bool,
    /// Whether to contact target addresses, and to read secrets, that are new or changed in head.
    pub trust_head: bool,
    /// Whether changes that create an object show all of its fields.
    pub bodies: Bodies,
    /// Kinds whose removal always needs an approval.
    pub protected: ProtectedKinds,
    /// The removal budgets.
    pub budgets: Budgets,
    /// The ledger in which removals are reserved.
    pub ledger: Arc<dyn Ledger>,
    /// The leases of the shards, which determine the process that applies the steps of each shard.
    pub leases: Arc<dyn Leases>,
    /// The start time of the run.
    pub now: Timestamp,
    /// The date of the run, for approvals and for declarations that expire.
    pub today: Date,
    /// Timeout and concurrency limits.
    pub limits: RunLimits,
    /// Maximum time to wait for rollouts; if it is not set, rollouts are only reported.
    pub await_rollouts: Option<Duration>,
    /// Receives a value when newer data is available. The run then stops waiting, and the next run continues with the
    /// newer data.
    pub newer_data: Option<watch::Receiver<u64>>,
    /// The shutdown signal. After a shutdown is requested, reads end immediately and no further step starts. Steps in
    /// progress are finished, or abandoned when the shutdown is forced.
    pub shutdown: ShutdownSignal,
    /// Receives every write as it happens.
    pub audit: Arc<dyn Audit>,
    /// Records the inputs of the plans, so that they can be replayed.
    pub inputs: Option<InputRecorder>,
    /// Observes which shards the run processes. The observer is not called if the run ends before the shards are
    /// selected.
    pub selection: Option<SelectionObserver>,
}

impl RunLimits {
    /// Limits the number of concurrent shards, and also the number of concurrent groups of one shard, to `shards`.
    #[must_use]
    pub fn with_concurrency(self, shards: usize) -> Self {
        let shards = shards.max(1);
        Self { max_shards: shards, max_groups: self.max_groups.min(shards), ..self }
    }
}

impl RunLimits {
    /// Adjusts these limits by the limits that the integration sets. The number of concurrent shards can only be
    /// lowered.
    #[must_use]
    pub fn for_integration(self, own: &IntegrationLimits) -> Self {
        let IntegrationLimits { phase_timeout, step_timeout, max_shards, shutdown_timeout } = *own;
        let limits = Self {
            phase_timeout: phase_timeout.unwrap_or(self.phase_timeout),
            step_timeout: step_timeout.unwrap_or(self.step_timeout),
            shutdown_timeout: shutdown_timeout.unwrap_or(self.shutdown_timeout),
            ..self
        };
        match max_shards {
            Some(width) if width < limits.max_shards => limits.with_concurrency(width),
            Some(_) | None => limits,
        }
    }
}

impl RunRequest {
    /// Sets the integration's options, and the shard concurrency if an option names it.
    pub fn set_options(&mut self, options: Options, flags: &[Flag]) {
        if let Some(concurrency) = options.concurrency(flags) {
            self.limits = self.limits.with_concurrency(concurrency);
        }
        self.options = options;
    }

    /// Creates the request for a run on `head`, with defaults for all other fields. Protected kinds have no default,
    /// so that each caller must pass them.
    pub fn new(
        run: impl Into<String>,
        mode: Mode,
        head: Arc<dyn BundleReader>,
        today: Date,
        protected: ProtectedKinds,
    ) -> Self {
        Self {
            run: run.into(),
            mode,
            write_bounds: None,
            head,
            base: None,
            options: Options::default(),
            slot: Slot::default(),
            only_shards: None,
            only_affected: true,
            include_unaffected: false,
            strict_selectors: false,
            validate_schemas: true,
            trust_head: false,
            bodies: Bodies::default(),
            protected,
            budgets: Budgets::default(),
            ledger: Arc::new(MemoryLedger::default()),
            leases: Arc::new(NoLeases),
            now: today.to_zoned(TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |start| start.timestamp()),
            today,
            limits: RunLimits::default(),
            await_rollouts: None,
            newer_data: None,
            shutdown: ShutdownSignal::never(),
            audit: Arc::new(NoAudit),
            inputs: None,
            selection: None,
        }
    }

    /// The time at which `elapsed` has passed since the start of the run. It is computed with the monotonic clock, so
    /// that a run is not affected if the system clock jumps.
    pub(crate) fn time_after(&self, elapsed: Duration) -> Timestamp {
        self.now.checked_add(elapsed).unwrap_or(self.now)
    }

    /// Waits until newer data is available.
    pub(crate) async fn newer_data_available(&self) {
        match self.newer_data.clone() {
            // An error means that no newer data can arrive.
            Some(mut data) => {
                if data.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            None => std::future::pending().await,
        }
    }

    /// Whether the run includes the shard.
    pub(crate) fn selects(&self, key: &ShardKey) -> bool {
        let Some(only) = &self.only_shards else { return true };
        only.contains(key) || only.iter().any(|one| one.has_same_parts(key))
    }

    /// Whether this is a dry run of a proposed change, in which addresses and secrets that only head names
    /// are not used.
    pub(crate) fn distrusts_head(&self) -> bool {
        self.mode == Mode::DryRun && self.base.is_some() && !self.trust_head
    }
}
