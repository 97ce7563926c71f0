//! The client against Prometheus itself, which scrapes our metrics.

use super::ClientFixture;
use qontract_client_prometheus::{PrometheusError, PrometheusLogin, QueryRange};
use qontract_telemetry::metrics::{Metrics, ProcessLabels};
use qontract_testkit::prometheus::TestPrometheus;
use qontract_testkit::{Loopback, Reply};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The metrics of a process that runs a slot, as its health listener exposes them.
fn listener(slot: &str, seconds: f64) -> Loopback {
    let metrics = Metrics::default();
    let integration = "openshift-resources".to_owned();
    let process = ProcessLabels { integration, shards: "2".to_owned(), shard_id: slot.to_owned() };
    metrics.start(&process);
    metrics.observe_run(&process, seconds, 0);
    let text = metrics.encode();
    let content_type = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    Loopback::start(move |_| Reply::Full("200 OK", content_type.to_owned(), text.clone()))
}

/// The result of a call, once the server has scraped all targets.
async fn run_seconds(client: &ClientFixture, query: &str, count: usize) -> BTreeMap<String, f64> {
    for _ in 0..600 {
        let seconds = client.prometheus.run_seconds(&client.permits.read, query, "shard_id").await;
        let seconds = seconds.expect("a result");
        if seconds.len() == count {
            return seconds;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the targets were not scraped");
}

#[tokio::test]
#[ignore = "needs QONTRACT_PROMETHEUS; run by `cargo xtask test`"]
async fn run_times_of_our_metrics_are_queried_by_slot() {
    let listeners = [listener("0", 12.5), listener("1", 40.0)];
    let targets: Vec<String> = listeners.iter().map(|one| one.url().replace("http://", "")).collect();
    let server = TestPrometheus::start(&targets);
    let client = ClientFixture::of(&server.url(), &PrometheusLogin::None);
    let metric = "qontract_reconcile_last_run_seconds{integration=\"openshift-resources\"}";
    let query = format!("sum by (shard_id) ({metric})");
    let seconds = run_seconds(&client, &query, 2).await;
    assert_eq!(
        seconds,
        BTreeMap::from([("0".to_owned(), 12.5), ("1".to_owned(), 40.0)]),
        "{}",
        server.log_tail()
    );

    let permit = &client.permits.read;
    let samples = client.prometheus.query(permit, metric, None).await.expect("samples");
    assert_eq!(samples[0].labels.get("shards"), Some("2"));

    let missing = client.prometheus.run_seconds(permit, &format!("sum({metric})"), "shard_id").await;
    assert!(matches!(missing, Err(PrometheusError::MissingLabel { .. })), "{missing:?}");
    let ambiguous = client.prometheus.run_seconds(permit, metric, "shards").await;
    assert!(matches!(ambiguous, Err(PrometheusError::DuplicateLabel { .. })), "{ambiguous:?}");
    let quotient = client.prometheus.query(permit, &format!("{metric} * 0 / 0"), None).await;
    assert!(matches!(quotient, Err(PrometheusError::NotFinite { .. })), "{quotient:?}");
    let filtered = client.prometheus.query(permit, &format!("{metric} * 0 / 0 >= 0"), None).await;
    assert_eq!(filtered.expect("no samples"), []);
    let invalid = client.prometheus.query(permit, "sum by (", None).await;
    assert!(
        matches!(invalid, Err(PrometheusError::Rejected { ref kind, .. }) if kind == "bad_data"),
        "{invalid:?}"
    );
    let scalar = client.prometheus.query(permit, "scalar(vector(7))", None).await.expect("a scalar");
    assert!((scalar[0].value - 7.0).abs() < 1e-9);

    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_secs();
    // Prometheus was not running at the first step.
    let range = QueryRange { start: now - 7_199, steps: 3, step: Duration::from_hours(1) };
    let windows = client.prometheus.run_seconds_by_window(permit, &query, "shard_id", range).await;
    let windows = windows.expect("windows");
    assert_eq!((windows.len(), windows[0].len()), (3, 0));
    assert_eq!(windows[2], seconds);
}
