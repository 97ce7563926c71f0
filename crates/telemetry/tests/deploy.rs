//! The dashboard and the alert rules in `deploy/` use only metrics and labels that loops and servers export.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use qontract_telemetry::journal_metrics::{JournalOperation, LeaseEvent};
use qontract_telemetry::measure::{Measurement, ObjectState};
use qontract_telemetry::metrics::{Metrics, ProcessLabels, SuccessfulRun};
use qontract_telemetry::server_metrics::{AnswerOrigin, RequestLabels, ResourceCounts, ServerMetrics};
use serde_json::Value;

/// Labels that Prometheus adds, and that histograms have.
const OTHER_LABELS: [&str; 3] = ["instance", "le", "integration"];

/// The metrics of a loop, each of which has a value.
fn loop_metrics() -> String {
    let text = str::to_owned;
    let process = ProcessLabels { integration: text("a"), shards: text("1"), shard_id: text("0-1") };
    let metrics = Metrics::default();
    metrics.set_build("1.2.3", "abc");
    metrics.balance_by("cluster");
    metrics.start(&process);
    metrics.count_start(&process);
    metrics.observe_run(&process, 1.5, 0);
    metrics.set_faults(&process, "author", 1);
    metrics.observe_phase(&process, "plan", 1.0);
    metrics.set_planned(&process, "add", 1);
    metrics.count_skipped(&process, "disabled", 1);
    metrics.observe_write("a", "b", 1.0);
    metrics.set_success(
        &process,
        &SuccessfulRun { ended: 2, commit: Some("abc"), commit_time: Some(1), bundle: "def" },
    );
    metrics.journal().count_error(JournalOperation::Read);
    metrics.journal().count_lease(LeaseEvent::Acquired);
    metrics.record(
        "a",
        &[
            Measurement::Listed { cluster: text("c"), kind: text("Secret"), took: Duration::from_secs(1) },
            Measurement::Objects {
                cluster: text("c"),
                namespace: text("n"),
                kind: text("Secret"),
                shard: text("n=1"),
                state: ObjectState::Current,
                count: 1,
            },
            Measurement::Shard {
                dimensions: [(text("cluster"), text("c"))].into(),
                took: Duration::from_secs(1),
            },
            Measurement::Redacted,
        ],
    );
    metrics.encode()
}

/// The metrics of a server, each of which has a value.
fn server_metrics() -> String {
    let metrics = ServerMetrics::default();
    metrics.observe_request(&RequestLabels { status_code: "2xx", method: "GET", path: "/graphql" }, 1.0);
    metrics.count_answer(AnswerOrigin::Evaluated);
    metrics.count_load();
    metrics.count_failed_load();
    metrics.encode(ResourceCounts::default(), [("/a.yml", 1)])
}

/// The exported series: their names and the names of their labels.
fn exported() -> (BTreeSet<String>, BTreeSet<String>) {
    let text = loop_metrics() + &server_metrics();
    let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::from(OTHER_LABELS.map(str::to_owned)));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, list) = series.split_once('{').unwrap_or((series, ""));
        names.insert(name.to_owned());
        let parts = list.trim_end_matches('}').split(',').filter_map(|part| part.split_once('='));
        labels.extend(parts.map(|(label, _)| label.to_owned()));
    }
    (names, labels)
}

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The names of metrics in an expression.
fn used_metrics(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let is_metric = |word: &&str| word.starts_with("qontract_") || word.starts_with("http_request_");
    words.filter(is_metric).map(str::to_owned).collect()
}

/// The labels in the templates of a legend or an annotation: `{{integration}}`, `{{ $labels.integration }}`.
fn used_labels(text: &str) -> BTreeSet<String> {
    let templates = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap().trim());
    let names = templates.map(|template| template.trim_start_matches("$labels."));
    names.filter(|name| *name != "$value").map(str::to_owned).collect()
}

#[track_caller]
fn check(of: &str, expressions: &[String], texts: &[String], min_metrics: usize) {
    let (names, labels) = exported();
    let used: BTreeSet<String> = expressions.iter().flat_map(|text| used_metrics(text)).collect();
    assert!(used.len() >= min_metrics, "{of}: only {used:?}");
    let unknown: Vec<&String> = used.difference(&names).collect();
    assert!(unknown.is_empty(), "{of}: no process exports {unknown:?}\n{names:?}");
    let used: BTreeSet<String> = texts.iter().flat_map(|text| used_labels(text)).collect();
    let unknown: Vec<&String> = used.difference(&labels).collect();
    assert!(unknown.is_empty(), "{of}: no metric has the labels {unknown:?}\n{labels:?}");
}

fn strings(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == key => found.push(text.clone()),
                    _ => strings(field, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_uses_existing_metrics() {
    let dashboard: Value = serde_json::from_str(&file("dashboard/qontract.json")).unwrap();
    let (mut expressions, mut legends) = (Vec::new(), Vec::new());
    strings(&dashboard, "expr", &mut expressions);
    strings(&dashboard["templating"], "query", &mut expressions);
    strings(&dashboard, "legendFormat", &mut legends);
    check("the dashboard", &expressions, &legends, 30);
}

#[test]
fn panels_of_the_dashboard_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&file("dashboard/qontract.json")).unwrap();
    let (mut cells, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + w <= 24, "{panel}");
        for cell in (x..x + w).flat_map(|column| (y..y + h).map(move |line| (column, line))) {
            assert!(cells.insert(cell), "{panel}");
        }
    }
}

#[test]
fn the_alert_rules_use_existing_metrics() {
    let rules = file("alerts/qontract.yaml");
    let lines = rules.lines().map(str::to_owned).collect::<Vec<_>>();
    let (summaries, expressions): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| line.trim_start().starts_with("summary:"));
    check("the alert rules", &expressions, &summaries, 10);
}

/// Each alert has a description for the person on call, and each description has an alert.
#[test]
fn every_alert_is_described() {
    let rules = file("alerts/qontract.yaml");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let page = file("../docs/operations.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `Qontract")?.split('`').next());
    let described: Vec<String> = rows.map(|rest| format!("Qontract{rest}")).collect();
    assert_eq!(alerts, described);
}
