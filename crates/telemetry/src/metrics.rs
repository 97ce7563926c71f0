//! Loop metrics: all metrics of runs and loops. They include the metrics of qontract-reconcile, with unchanged names
//! and labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::data_validity::DataValidityGauges;
use crate::journal_metrics::JournalMetrics;
use crate::measure::Measurement;

/// Metric labels of a process that runs an integration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProcessLabels {
    /// The integration that the process runs.
    pub integration: String,
    /// Number of processes that share the work of the integration.
    pub shards: String,
    /// The index of this process.
    pub shard_id: String,
}

/// Labels of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    #[prometheus(flatten)]
    process: ProcessLabels,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlannedLabels {
    #[prometheus(flatten)]
    process: ProcessLabels,
    change: String,
}

/// Labels of a successful run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SuccessLabels {
    #[prometheus(flatten)]
    process: ProcessLabels,
    commit: String,
    bundle: String,
}

/// Labels of faults.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    #[prometheus(flatten)]
    process: ProcessLabels,
    responsible: String,
}

/// Labels of the run time of a key of a balanced integration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    integration: String,
    key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SkippedLabels {
    #[prometheus(flatten)]
    process: ProcessLabels,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListLabels {
    integration: String,
    cluster: String,
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct ObjectLabels {
    integration: String,
    cluster: String,
    namespace: String,
    kind: String,
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IntegrationLabel {
    integration: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: String,
    commit: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    name: String,
    integration: String,
}

/// Histogram of the durations of list requests.
fn list_histogram() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0])
}

/// Histogram of the time from a commit to the writes that it causes.
fn delay_histogram() -> Histogram {
    Histogram::new([60.0, 150.0, 300.0, 600.0, 1200.0, 1800.0, 2400.0, 3000.0])
}

/// A gauge of seconds.
type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

/// Histogram of the durations of phases, from 10 ms to 10 minutes.
fn phase_histogram() -> Histogram {
    Histogram::new([0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0])
}

/// A successful run.
#[derive(Clone, Copy, Debug)]
pub struct SuccessfulRun<'r> {
    /// The time at which the run ended, in seconds since 1970.
    pub ended: i64,
    /// The commit of the run's data, if known.
    pub commit: Option<&'r str>,
    /// The time of that commit, in seconds since 1970.
    pub commit_time: Option<i64>,
    /// The bundle of the run.
    pub bundle: &'r str,
}

/// All metrics of a process.
pub struct Metrics {
    registry: Registry,
    last_run_seconds: Family<ProcessLabels, Seconds>,
    last_run_status: Family<ProcessLabels, Gauge>,
    executions: Family<ProcessLabels, Counter>,
    stuck: Family<ProcessLabels, Counter>,
    held: Family<ProcessLabels, Gauge>,
    waits: Family<ProcessLabels, Gauge>,
    degraded: Family<ProcessLabels, Gauge>,
    build: Family<BuildLabels, Gauge>,
    phase_seconds: Family<PhaseLabels, Histogram, fn() -> Histogram>,
    planned: Family<PlannedLabels, Gauge>,
    skipped: Family<SkippedLabels, Counter>,
    lists: Family<ListLabels, Histogram, fn() -> Histogram>,
    objects: Family<ObjectLabels, Gauge>,
    /// The label sets of the last run, by integration. Label sets that the next run does not report are
    /// removed.
    last_labels: Mutex<BTreeMap<String, Vec<ObjectLabels>>>,
    delays: Family<WriteLabels, Histogram, fn() -> Histogram>,
    redactions: Family<IntegrationLabel, Counter>,
    last_success: Family<ProcessLabels, Gauge>,
    success_commit_time: Family<ProcessLabels, Gauge>,
    success: Family<SuccessLabels, Gauge>,
    /// The labels of `success`, by process. A later successful run replaces the labels of its process.
    success_labels: Mutex<HashMap<ProcessLabels, SuccessLabels>>,
    paused: Family<ProcessLabels, Gauge>,
    /// The dimension of shard keys by which the shards of this process are balanced.
    balanced_dimension: OnceLock<String>,
    key_seconds: Family<KeyLabels, Seconds>,
    /// The keys of the last run.
    last_keys: Mutex<BTreeSet<String>>,
    faults: Family<FaultLabels, Gauge>,
    journal: JournalMetrics,
    data_validity: DataValidityGauges,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Registry::with_prefix("qontract");
        let metrics = Self {
            last_run_seconds: Family::default(),
            last_run_status: Family::default(),
            executions: Family::default(),
            stuck: Family::default(),
            held: Family::default(),
            waits: Family::default(),
            degraded: Family::default(),
            build: Family::default(),
            phase_seconds: Family::new_with_constructor(phase_histogram as fn() -> Histogram),
            planned: Family::default(),
            skipped: Family::default(),
            lists: Family::new_with_constructor(list_histogram as fn() -> Histogram),
            objects: Family::default(),
            last_labels: Mutex::default(),
            delays: Family::new_with_constructor(delay_histogram as fn() -> Histogram),
            redactions: Family::default(),
            last_success: Family::default(),
            success_commit_time: Family::default(),
            success: Family::default(),
            success_labels: Mutex::default(),
            paused: Family::default(),
            balanced_dimension: OnceLock::new(),
            key_seconds: Family::default(),
            last_keys: Mutex::default(),
            faults: Family::default(),
            journal: JournalMetrics::default(),
            data_validity: DataValidityGauges::default(),
            registry: Registry::default(),
        };
        all.register("build_info", "Version and commit of this binary", metrics.build.clone());
        let registry = all.sub_registry_with_prefix("reconcile");
        registry.register("last_run_seconds", "Duration of the last run", metrics.last_run_seconds.clone());
        registry.register("last_run_status", "Exit code of the last run", metrics.last_run_status.clone());
        registry.register("execution_counter", "Runs started", metrics.executions.clone());
        registry.register(
            "stuck",
            "Runs that were aborted because they made no progress",
            metrics.stuck.clone(),
        );
        registry.register("held", "Changes held by a guard in the last run", metrics.held.clone());
        registry.register(
            "waits",
            "Operations in the target that were still in progress after the last run",
            metrics.waits.clone(),
        );
        registry.register(
            "degraded",
            "Objects that did not work as declared in the last run",
            metrics.degraded.clone(),
        );
        registry.register("phase_seconds", "Duration of each phase of a run", metrics.phase_seconds.clone());
        registry.register("planned_changes", "Changes in the last plan", metrics.planned.clone());
        registry.register("skipped_shards", "Shards skipped", metrics.skipped.clone());
        registry.register("oc_get_items_seconds", "Duration of list requests", metrics.lists.clone());
        registry.register(
            "openshift_resource_inventory",
            "Number of current and desired objects",
            metrics.objects.clone(),
        );
        registry.register(
            "function_elapsed_seconds_since_bundle_commit",
            "Time from a commit to the writes that it causes",
            metrics.delays.clone(),
        );
        registry.register(
            "redactions",
            "Report fields that contained a secret and were redacted",
            metrics.redactions.clone(),
        );
        registry.register(
            "last_success_timestamp_seconds",
            "When the last successful run ended",
            metrics.last_success.clone(),
        );
        registry.register(
            "last_success_commit_timestamp_seconds",
            "The time of the commit of the data of the last successful run",
            metrics.success_commit_time.clone(),
        );
        registry.register(
            "last_success",
            "The commit and the bundle of the last successful run",
            metrics.success.clone(),
        );
        registry.register("paused", "Whether the loop is paused", metrics.paused.clone());
        registry.register(
            "key_seconds",
            "Time that the last run spent on a key of an integration whose shards are balanced",
            metrics.key_seconds.clone(),
        );
        registry.register(
            "faults",
            "Faults of the last run, by the party that has to act",
            metrics.faults.clone(),
        );
        metrics.journal.register(registry);
        metrics.data_validity.register(registry);
        Self { registry: all, ..metrics }
    }
}

impl Metrics {
    /// Sets the version and the commit of this binary; the commit may be empty.
    pub fn set_build(&self, version: &str, commit: &str) {
        let labels = BuildLabels { version: version.to_owned(), commit: commit.to_owned() };
        self.build.get_or_create(&labels).set(1);
    }

    /// Registers a process and initializes its counters with 0.
    pub fn start(&self, process: &ProcessLabels) {
        drop(self.stuck.get_or_create(process));
        for gauge in [&self.held, &self.waits, &self.degraded, &self.paused] {
            drop(gauge.get_or_create(process));
        }
    }

    /// Sets the number of changes that the last run held.
    pub fn set_held(&self, process: &ProcessLabels, count: usize) {
        self.held.get_or_create(process).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the number of operations in progress after the last run.
    pub fn set_waits(&self, process: &ProcessLabels, count: usize) {
        self.waits.get_or_create(process).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the number of objects that did not work as declared in the last run.
    pub fn set_degraded(&self, process: &ProcessLabels, count: usize) {
        self.degraded.get_or_create(process).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the metrics about the last successful run: its end, and the commit and the bundle of its data.
    pub fn set_success(&self, process: &ProcessLabels, run: &SuccessfulRun<'_>) {
        self.last_success.get_or_create(process).set(run.ended);
        if let Some(time) = run.commit_time {
            self.success_commit_time.get_or_create(process).set(time);
        }
        let labels = SuccessLabels {
            process: process.clone(),
            commit: run.commit.unwrap_or_default().to_owned(),
            bundle: run.bundle.to_owned(),
        };
        if let Some(old) = self.success_labels.lock().insert(process.clone(), labels.clone())
            && old != labels
        {
            self.success.remove(&old);
        }
        self.success.get_or_create(&labels).set(1);
    }

    /// Sets whether the loop is paused.
    pub fn set_paused(&self, process: &ProcessLabels, is_paused: bool) {
        self.paused.get_or_create(process).set(is_paused.into());
    }

    /// Sets the number of faults of the last run for which the party `responsible` is responsible.
    pub fn set_faults(&self, process: &ProcessLabels, responsible: &str, count: usize) {
        let labels = FaultLabels { process: process.clone(), responsible: responsible.to_owned() };
        self.faults.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// The metrics about the use of the journal.
    pub fn journal(&self) -> JournalMetrics {
        self.journal.clone()
    }

    /// The gauges of invalid data.
    pub fn data_validity(&self) -> DataValidityGauges {
        self.data_validity.clone()
    }

    /// Counts a run that begins.
    pub fn count_start(&self, process: &ProcessLabels) {
        self.executions.get_or_create(process).inc();
    }

    /// Sets the duration and the exit code of the last run.
    pub fn observe_run(&self, process: &ProcessLabels, seconds: f64, code: i32) {
        self.last_run_seconds.get_or_create(process).set(seconds);
        self.last_run_status.get_or_create(process).set(code.into());
    }

    /// Counts a run that was cancelled because it made no progress.
    pub fn count_stalled(&self, process: &ProcessLabels) {
        self.stuck.get_or_create(process).inc();
    }

    /// Observes the duration of a phase.
    pub fn observe_phase(&self, process: &ProcessLabels, phase: &str, seconds: f64) {
        let labels = PhaseLabels { process: process.clone(), phase: phase.to_owned() };
        self.phase_seconds.get_or_create(&labels).observe(seconds);
    }

    /// Sets the number of changes of a kind in the last plan.
    pub fn set_planned(&self, process: &ProcessLabels, change: &str, count: usize) {
        let labels = PlannedLabels { process: process.clone(), change: change.to_owned() };
        self.planned.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts shards that were skipped for this reason.
    pub fn count_skipped(&self, process: &ProcessLabels, reason: &str, count: u64) {
        let labels = SkippedLabels { process: process.clone(), reason: reason.to_owned() };
        self.skipped.get_or_create(&labels).inc_by(count);
    }

    /// Updates the metrics from the measurements of a run.
    pub fn record(&self, integration: &str, measures: &[Measurement]) {
        // For one shard, the count of a later round replaces the count of an earlier round. The counts of different
        // shards are added up.
        let mut counts: BTreeMap<(ObjectLabels, &str), usize> = BTreeMap::new();
        let mut keys: BTreeMap<&str, f64> = BTreeMap::new();
        for measure in measures {
            match measure {
                Measurement::Listed { cluster, kind, took } => {
                    let labels = ListLabels {
                        integration: integration.to_owned(),
                        cluster: cluster.clone(),
                        kind: kind.clone(),
                    };
                    self.lists.get_or_create(&labels).observe(took.as_secs_f64());
                }
                Measurement::Objects { cluster, namespace, kind, shard, state, count } => {
                    let labels = ObjectLabels {
                        integration: integration.to_owned(),
                        cluster: cluster.clone(),
                        namespace: namespace.clone(),
                        kind: kind.clone(),
                        state: state.as_str().to_owned(),
                    };
                    counts.insert((labels, shard), *count);
                }
                Measurement::Shard { dimensions, took } => {
                    let key = self.balanced_dimension.get().and_then(|name| dimensions.get(name));
                    if let Some(key) = key {
                        *keys.entry(key).or_default() += took.as_secs_f64();
                    }
                }
                Measurement::Redacted => {
                    let labels = IntegrationLabel { integration: integration.to_owned() };
                    self.redactions.get_or_create(&labels).inc();
                }
            }
        }
        self.set_key_seconds(integration, &keys);
        let mut sums: BTreeMap<ObjectLabels, usize> = BTreeMap::new();
        for ((labels, _), count) in counts {
            *sums.entry(labels).or_default() += count;
        }
        for (labels, count) in &sums {
            self.objects.get_or_create(labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        let mut last = self.last_labels.lock();
        for gone in last.remove(integration).unwrap_or_default() {
            if !sums.contains_key(&gone) {
                self.objects.remove(&gone);
            }
        }
        last.insert(integration.to_owned(), sums.into_keys().collect());
    }

    /// Sets the dimension of shard keys by which the shards of this process are balanced. Runs then measure the time
    /// for each of its values.
    pub fn balance_by(&self, dimension: impl Into<String>) {
        let _ = self.balanced_dimension.set(dimension.into());
    }

    /// Sets the run time of each key, and removes keys that this process no longer runs.
    fn set_key_seconds(&self, integration: &str, keys: &BTreeMap<&str, f64>) {
        let labels = |key: &str| KeyLabels { integration: integration.to_owned(), key: key.to_owned() };
        let mut last = self.last_keys.lock();
        for gone in last.iter().filter(|key| !keys.contains_key(key.as_str())) {
            self.key_seconds.remove(&labels(gone));
        }
        for (key, seconds) in keys {
            self.key_seconds.get_or_create(&labels(key)).set(*seconds);
        }
        *last = keys.keys().map(|key| (*key).to_owned()).collect();
    }

    /// Observes the time from a commit to a write that it caused.
    pub fn observe_write(&self, integration: &str, name: &str, seconds: f64) {
        let labels = WriteLabels { name: name.to_owned(), integration: integration.to_owned() };
        self.delays.get_or_create(&labels).observe(seconds);
    }

    /// All metrics in the Prometheus text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::{Metrics, ProcessLabels};
    use crate::measure::{Measurement, ObjectState};

    #[test]
    fn names_and_labels_are_those_of_qontract_reconcile() {
        let (metrics, process) = (
            Metrics::default(),
            ProcessLabels { integration: "a".to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() },
        );
        let labels = r#"{integration="a",shards="1",shard_id="0-1"}"#;
        metrics.start(&process);
        for name in ["stuck_total", "held", "waits", "degraded"] {
            let line = format!("qontract_reconcile_{name}{labels} 0\n");
            assert!(metrics.encode().contains(&line), "{line} is exported from the start");
        }
        metrics.set_build("1.2.3", "abc");
        metrics.count_start(&process);
        metrics.observe_run(&process, 1.5, 75);
        metrics.count_stalled(&process);
        metrics.set_held(&process, 3);
        metrics.set_waits(&process, 4);
        metrics.set_degraded(&process, 5);
        let text = metrics.encode();
        for line in [
            format!("qontract_reconcile_last_run_seconds{labels} 1.5"),
            format!("qontract_reconcile_last_run_status{labels} 75"),
            format!("qontract_reconcile_execution_counter_total{labels} 1"),
            format!("qontract_reconcile_stuck_total{labels} 1"),
            format!("qontract_reconcile_held{labels} 3"),
            format!("qontract_reconcile_waits{labels} 4"),
            format!("qontract_reconcile_degraded{labels} 5"),
            r#"qontract_build_info{version="1.2.3",commit="abc"} 1"#.to_owned(),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn invalid_data_is_measured_with_its_time_until_it_is_valid() {
        let metrics = Metrics::default();
        let check = |expect: [&str; 2]| {
            let text = metrics.encode();
            let lines: Vec<&str> =
                text.lines().filter(|line| line.starts_with("qontract_reconcile_data_invalid")).collect();
            assert_eq!(lines, expect);
        };
        let valid = [
            "qontract_reconcile_data_invalid 0",
            "qontract_reconcile_data_invalid_since_timestamp_seconds 0",
        ];
        check(valid);
        metrics.data_validity().set(Some(1_800_000_000));
        check([
            "qontract_reconcile_data_invalid 1",
            "qontract_reconcile_data_invalid_since_timestamp_seconds 1800000000",
        ]);
        metrics.data_validity().set(None);
        check(valid);
    }

    #[test]
    fn redactions_are_counted_over_all_runs() {
        let metrics = Metrics::default();
        assert!(!metrics.encode().contains("redactions_total{"));
        metrics.record("a", &[Measurement::Redacted, Measurement::Redacted]);
        metrics.record("a", &[Measurement::Redacted]);
        metrics.record("b", &[]);
        let text = metrics.encode();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("redactions_total{")).collect();
        assert_eq!(lines, [r#"qontract_reconcile_redactions_total{integration="a"} 3"#]);
    }

    #[test]
    fn objects_are_summed_over_shards_and_counted_once_for_each() {
        let metrics = Metrics::default();
        let objects = |shard: &str, count| Measurement::Objects {
            cluster: "c".to_owned(),
            namespace: String::new(),
            kind: "Namespace".to_owned(),
            shard: shard.to_owned(),
            state: ObjectState::Desired,
            count,
        };
        metrics.record("a", &[objects("n=1", 1), objects("n=2", 2), objects("n=1", 3)]);
        let text = metrics.encode();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("_inventory{")).collect();
        let labels = r#"{integration="a",cluster="c",namespace="",kind="Namespace",state="desired"}"#;
        assert_eq!(lines, [format!("qontract_reconcile_openshift_resource_inventory{labels} 5")]);
    }

    #[test]
    fn the_time_of_each_balanced_key_is_measured() {
        let metrics = Metrics::default();
        let shard = |cluster: &str, seconds| Measurement::Shard {
            dimensions: [("cluster", cluster), ("namespace", "n")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            took: Duration::from_secs(seconds),
        };
        metrics.record("a", &[shard("c1", 1)]);
        assert!(!metrics.encode().contains("key_seconds{"), "only balanced integrations have keys");
        metrics.balance_by("cluster");
        metrics.record("a", &[shard("c1", 1), shard("c2", 3), shard("c1", 2)]);
        let keys = || {
            let text = metrics.encode();
            let lines = text.lines().filter(|line| line.contains("key_seconds{"));
            lines.map(|line| line.split_once("key=").unwrap().1.to_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(keys(), ["\"c1\"} 3.0", "\"c2\"} 3.0"].map(str::to_owned).into());
        metrics.record("a", &[shard("c2", 4)]);
        assert_eq!(keys(), ["\"c2\"} 4.0".to_owned()].into());
    }

    #[test]
    fn label_sets_that_a_run_no_longer_has_are_removed() {
        let metrics = Metrics::default();
        let objects = |namespace: &str, count| Measurement::Objects {
            cluster: "c".to_owned(),
            namespace: namespace.to_owned(),
            kind: "Secret".to_owned(),
            shard: String::new(),
            state: ObjectState::Current,
            count,
        };
        let listed = Measurement::Listed {
            cluster: "c".to_owned(),
            kind: "Secret".to_owned(),
            took: Duration::from_secs(1),
        };
        metrics.record("a", &[objects("one", 1), objects("two", 2), listed]);
        metrics.record("a", &[objects("two", 3)]);
        let text = metrics.encode();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("_inventory{")).collect();
        let labels = r#"{integration="a",cluster="c",namespace="two",kind="Secret",state="current"}"#;
        assert_eq!(lines, [format!("qontract_reconcile_openshift_resource_inventory{labels} 3")]);
        assert!(text.contains("qontract_reconcile_oc_get_items_seconds_bucket{le=\"1.0\",integration=\"a\""));
    }
}
