//! Metrics: the names and labels that the established runtime has, and our own beside them. All of them are here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Which process of which integration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Process {
    /// The integration.
    pub integration: String,
    /// How many share the work.
    pub shards: String,
    /// Which of them this one is.
    pub shard_id: String,
}

/// An integration, and a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Phase {
    integration: String,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Planned {
    integration: String,
    change: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Skipped {
    integration: String,
    reason: String,
}

/// How long runs take, in seconds.
type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

/// How long a phase takes: from a hundredth of a second to ten minutes.
fn phases() -> Histogram {
    Histogram::new([0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0])
}

/// All metrics of a process.
pub struct Metrics {
    registry: Registry,
    last_run_seconds: Family<Process, Seconds>,
    last_run_status: Family<Process, Gauge>,
    executions: Family<Process, Counter>,
    stuck: Family<Process, Counter>,
    phase_seconds: Family<Phase, Histogram, fn() -> Histogram>,
    planned: Family<Planned, Gauge>,
    skipped: Family<Skipped, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("qontract_reconcile");
        let metrics = Self {
            last_run_seconds: Family::default(),
            last_run_status: Family::default(),
            executions: Family::default(),
            stuck: Family::default(),
            phase_seconds: Family::new_with_constructor(phases as fn() -> Histogram),
            planned: Family::default(),
            skipped: Family::default(),
            registry: Registry::default(),
        };
        registry.register("last_run_seconds", "How long the last run took", metrics.last_run_seconds.clone());
        registry.register("last_run_status", "Exit code of the last run", metrics.last_run_status.clone());
        registry.register("execution_counter", "Runs that were begun", metrics.executions.clone());
        registry.register("stuck", "Runs that were ended because nothing went on", metrics.stuck.clone());
        registry.register("phase_seconds", "How long the phases of runs take", metrics.phase_seconds.clone());
        registry.register("planned_changes", "Changes of the last plan", metrics.planned.clone());
        registry.register("skipped_shards", "Shards that were passed over", metrics.skipped.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// A run begins.
    pub fn began(&self, process: &Process) {
        self.executions.get_or_create(process).inc();
    }

    /// A run ended, after so many seconds, with this exit code.
    pub fn ended(&self, process: &Process, seconds: f64, code: i32) {
        self.last_run_seconds.get_or_create(process).set(seconds);
        self.last_run_status.get_or_create(process).set(code.into());
    }

    /// A run was ended because nothing went on.
    pub fn stuck(&self, process: &Process) {
        self.stuck.get_or_create(process).inc();
    }

    /// A phase of a run took so many seconds.
    pub fn phase(&self, integration: &str, phase: &str, seconds: f64) {
        let labels = Phase { integration: integration.to_owned(), phase: phase.to_owned() };
        self.phase_seconds.get_or_create(&labels).observe(seconds);
    }

    /// The last plan has so many changes of a kind.
    pub fn planned(&self, integration: &str, change: &str, count: usize) {
        let labels = Planned { integration: integration.to_owned(), change: change.to_owned() };
        self.planned.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Shards were passed over, for this reason.
    pub fn skipped(&self, integration: &str, reason: &str, count: u64) {
        let labels = Skipped { integration: integration.to_owned(), reason: reason.to_owned() };
        self.skipped.get_or_create(&labels).inc_by(count);
    }

    /// All of them, as Prometheus reads them.
    pub fn print(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a text can always grow");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Metrics, Process};

    #[test]
    fn names_and_labels_are_those_of_the_established_runtime() {
        let (metrics, process) = (
            Metrics::default(),
            Process { integration: "a".to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() },
        );
        metrics.began(&process);
        metrics.ended(&process, 1.5, 75);
        metrics.stuck(&process);
        let text = metrics.print();
        let labels = r#"{integration="a",shards="1",shard_id="0-1"}"#;
        for line in [
            format!("qontract_reconcile_last_run_seconds{labels} 1.5"),
            format!("qontract_reconcile_last_run_status{labels} 75"),
            format!("qontract_reconcile_execution_counter_total{labels} 1"),
            format!("qontract_reconcile_stuck_total{labels} 1"),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\nis not in\n{text}");
        }
    }
}
