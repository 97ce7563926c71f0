//! All metrics of the data server: the metrics of qontract-server, with unchanged names and labels, and additional
//! metrics.

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::data_validity::DataValidityGauges;

/// Labels of a request. Each label has a fixed set of values, so that clients cannot create label values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The status class, such as `2xx`.
    pub status_code: &'static str,
    /// The HTTP method, or `other` for uncommon methods.
    pub method: &'static str,
    /// The path, with placeholders for variable parts.
    pub path: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SchemaLabel {
    schema: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// The origin of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOrigin {
    /// The response was evaluated for this request.
    Evaluated,
    /// The response was evaluated for a concurrent request.
    Shared,
    /// The response was cached.
    Cached,
}

/// Histogram of request durations.
fn request_histogram() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

/// The metrics of a data server.
#[derive(Debug)]
pub struct ServerMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Histogram, fn() -> Histogram>,
    reloads: Counter,
    failed_reloads: Counter,
    datafiles: Family<SchemaLabel, Gauge>,
    bundles: Gauge,
    cached_bundles: Gauge,
    leases: Gauge,
    connections: Gauge,
    answer_bytes: Gauge,
    answers: Family<OutcomeLabel, Counter>,
    data_validity: DataValidityGauges,
    /// A lock that is held while gauges are set and metrics are encoded, so that concurrent requests do not mix their
    /// gauges.
    printing: Mutex<()>,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let requests = Family::new_with_constructor(request_histogram as fn() -> Histogram);
        registry.register("http_request_duration_seconds", "Duration of HTTP requests", requests.clone());
        let up: Gauge = Gauge::default();
        up.set(1);
        registry.register("up", "1 while the server runs", up);
        let own = registry.sub_registry_with_prefix("qontract_server");
        let (reloads, failed_reloads) = (Counter::default(), Counter::default());
        own.register("reloads", "Bundles loaded", reloads.clone());
        own.register("failed_reloads", "Bundles that could not be loaded", failed_reloads.clone());
        let datafiles = Family::default();
        own.register("datafiles", "Number of datafiles in the latest bundle", Family::clone(&datafiles));
        let gauge = |own: &mut Registry, name: &str, help: &str| {
            let gauge: Gauge = Gauge::default();
            own.register(name, help, gauge.clone());
            gauge
        };
        let bundles = gauge(own, "bundle_object_shas", "Loaded bundles");
        let cached_bundles = gauge(own, "bundle_cache_object_shas", "Loaded bundles with a TTL");
        let leases = gauge(own, "leases", "Leases on bundles");
        let connections = gauge(own, "connections", "Open connections");
        let answer_bytes = gauge(own, "remembered_answer_bytes", "Size of the response cache");
        let remembered = Family::default();
        own.register(
            "answers",
            "Responses, by their origin: evaluated (made), from an evaluation that another request started (shared), or from the cache (remembered)",
            Family::clone(&remembered),
        );
        let data_validity = DataValidityGauges::default();
        data_validity.register(own);
        own.register_collector(Box::new(ProcessUsage));
        Self {
            registry,
            requests,
            reloads,
            failed_reloads,
            datafiles,
            bundles,
            cached_bundles,
            leases,
            connections,
            answer_bytes,
            answers: remembered,
            data_validity,
            printing: Mutex::default(),
        }
    }
}

/// Current resource counts, for the gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceCounts {
    /// Number of loaded bundles.
    pub bundles: usize,
    /// Number of leases on bundles.
    pub leases: usize,
    /// Number of open connections.
    pub connections: usize,
    /// Size of the response cache, in bytes.
    pub answer_bytes: usize,
}

impl ServerMetrics {
    /// Observes the duration of a request.
    pub fn observe_request(&self, request: &RequestLabels, seconds: f64) {
        self.requests.get_or_create(request).observe(seconds);
    }

    /// Counts a response, by its origin.
    pub fn count_answer(&self, origin: AnswerOrigin) {
        let outcome = match origin {
            AnswerOrigin::Evaluated => "made",
            AnswerOrigin::Shared => "shared",
            AnswerOrigin::Cached => "remembered",
        };
        self.answers.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a loaded bundle.
    pub fn count_load(&self) {
        self.reloads.inc();
    }

    /// The gauges of invalid data.
    pub fn data_validity(&self) -> DataValidityGauges {
        self.data_validity.clone()
    }

    /// Counts a bundle that could not be loaded.
    pub fn count_failed_load(&self) {
        self.failed_reloads.inc();
    }

    /// All metrics in the Prometheus text format, with the current resource counts and the number of
    /// datafiles of the latest bundle by schema.
    pub fn encode<'s>(
        &self,
        held: ResourceCounts,
        datafiles: impl IntoIterator<Item = (&'s str, usize)>,
    ) -> String {
        let _one_at_a_time = self.printing.lock();
        let ResourceCounts { bundles, leases, connections, answer_bytes } = held;
        let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        set(&self.bundles, bundles);
        set(&self.cached_bundles, bundles);
        set(&self.leases, leases);
        set(&self.connections, connections);
        set(&self.answer_bytes, answer_bytes);
        // All values are cleared, so that schemas without datafiles are removed.
        self.datafiles.clear();
        for (schema, count) in datafiles {
            set(&self.datafiles.get_or_create(&SchemaLabel { schema: schema.to_owned() }), count);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

/// Resource usage of the process, read when metrics are encoded.
#[derive(Debug)]
struct ProcessUsage;

impl Collector for ProcessUsage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let help = "CPU time of the process";
            let metric = encoder.encode_descriptor(
                "process_cpu",
                help,
                Some(&Unit::Seconds),
                counter.metric_type(),
            )?;
            counter.encode(metric)?;
        }
        if let Some(bytes) = resident_bytes() {
            let gauge = ConstGauge::new(bytes);
            let help = "Resident memory of the process";
            let metric = encoder.encode_descriptor(
                "process_resident_memory",
                help,
                Some(&Unit::Bytes),
                gauge.metric_type(),
            )?;
            gauge.encode(metric)?;
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            let gauge = ConstGauge::new(i64::try_from(open.count()).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(
                "process_open_fds",
                "Open files of the process",
                None,
                gauge.metric_type(),
            )?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}

/// User and system CPU time. The kernel counts both in hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<i64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_dashboards_use() {
        let metrics = ServerMetrics::default();
        metrics.observe_request(
            &RequestLabels { status_code: "2xx", method: "POST", path: "/graphqlsha/#sha" },
            0.02,
        );
        metrics.count_load();
        metrics.count_load();
        metrics.encode(ResourceCounts::default(), [("/a.yml", 3), ("/b.yml", 1)]);
        let text =
            metrics.encode(ResourceCounts { bundles: 2, ..ResourceCounts::default() }, [("/a.yml", 4)]);
        for line in [
            "http_request_duration_seconds_bucket{le=\"0.025\",status_code=\"2xx\",method=\"POST\",path=\"/graphqlsha/#sha\"} 1",
            "http_request_duration_seconds_count{status_code=\"2xx\",method=\"POST\",path=\"/graphqlsha/#sha\"} 1",
            "up 1",
            "qontract_server_reloads_total 2",
            "qontract_server_datafiles{schema=\"/a.yml\"} 4",
            "qontract_server_bundle_object_shas 2",
            "qontract_server_bundle_cache_object_shas 2",
        ] {
            assert!(text.lines().any(|exported| exported == line), "{line} in\n{text}");
        }
        assert!(!text.contains("/b.yml"));
        for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"] {
            assert!(text.contains(&format!("\nqontract_server_{name} ")), "{name} in\n{text}");
        }
    }
}
