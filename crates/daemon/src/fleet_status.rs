//! What `fleet status` and `fleet explain` show: declared shards, the live objects that run them, and their last
//! successful runs.

use std::collections::{BTreeMap, BTreeSet};

use qontract_access::{Mode, ReadPermit};
use qontract_client_kubernetes::{Cluster, Kind, Kubernetes, Object};
use qontract_client_prometheus::Prometheus;
use qontract_diagnostics::{error_chain, sanitize_lines};
use qontract_inventory::{RolloutStatus, rollout_status};
use qontract_report::table;
use serde::Serialize;
use serde_json::Value;

/// A shard that the data declares.
#[derive(Clone, Debug)]
pub struct FleetShard {
    /// The cluster of its namespace.
    pub cluster: Cluster,
    /// The part that is shown.
    pub shown: FleetRow,
    /// The value of the label `shard_id` of its metrics.
    pub shard_id: String,
    /// Whether the number of shards of the integration follows run times. The data declares only the minimum.
    pub is_balanced: bool,
}

/// A row of `fleet status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FleetRow {
    /// The integration.
    pub integration: String,
    /// The kind of object that runs the shard.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The name of the cluster.
    pub cluster: String,
    /// The namespace.
    pub namespace: String,
    /// The strategy, as a clause.
    pub strategy: String,
    /// The arguments of the integration.
    pub arguments: String,
    /// Whether the data disables the shard.
    pub disabled: bool,
    /// Where the data declares the shard, as `file:line`.
    pub declared: String,
    /// The state of the object; `None` if it was not looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The time since which the object is in this state, or of the last scheduled run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The time of the last successful run, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<i64>,
    /// The commit of the data of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Remarks on the keys of a balanced shard.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// Adds the state of the live objects, and the live shards of balanced integrations. Each kind is listed once per
/// namespace.
pub async fn with_live_state(kubernetes: &dyn Kubernetes, mut shards: Vec<FleetShard>) -> Vec<FleetShard> {
    let permit = ReadPermit::for_targets(Mode::DryRun);
    let mut lists: BTreeMap<ListedKind, Result<Vec<Object>, String>> = BTreeMap::new();
    let kinds: BTreeSet<ListedKind> = shards.iter().map(ListedKind::of).collect();
    for listed in kinds {
        let objects =
            kubernetes.list(&permit, &listed.cluster, &listed.kind(), Some(&listed.namespace)).await;
        lists.insert(listed, objects.map_err(|error| error_chain(&error)));
    }
    let more: Vec<FleetShard> = shards
        .iter()
        .filter(|shard| shard.is_balanced && shard.shown.name.ends_with("-0"))
        .flat_map(|shard| {
            let objects = lists[&ListedKind::of(shard)].iter().flatten();
            objects.filter_map(|object| live_slot(shard, &object.address.name, &shards))
        })
        .collect();
    shards.extend(more);
    shards.sort_by(|a, b| {
        (&a.shown.cluster, &a.shown.namespace, &a.shown.name).cmp(&(
            &b.shown.cluster,
            &b.shown.namespace,
            &b.shown.name,
        ))
    });
    for shard in &mut shards {
        match &lists[&ListedKind::of(shard)] {
            Err(why) => shard.shown.state = Some(format!("unknown: {why}")),
            Ok(objects) => {
                let object = objects.iter().find(|object| object.address.name == shard.shown.name);
                add_object(&mut shard.shown, object.map(|object| &object.body));
            }
        }
    }
    shards
}

/// A live shard of a balanced integration that is not declared yet.
fn live_slot(first: &FleetShard, name: &str, shards: &[FleetShard]) -> Option<FleetShard> {
    let slot = name.strip_prefix(first.shown.name.strip_suffix('0')?)?;
    slot.parse::<u32>().ok()?;
    let is_declared = shards.iter().any(|shard| shard.shown.name == name);
    let shown = FleetRow { name: name.to_owned(), arguments: String::new(), ..first.shown.clone() };
    (!is_declared).then(|| FleetShard { shown, shard_id: format!("slot-{slot}"), ..first.clone() })
}

/// A kind that is listed in a namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ListedKind {
    cluster: Cluster,
    namespace: String,
    kind: String,
}

impl ListedKind {
    fn of(shard: &FleetShard) -> Self {
        let FleetRow { namespace, kind, .. } = &shard.shown;
        Self { cluster: shard.cluster.clone(), namespace: namespace.clone(), kind: kind.clone() }
    }

    fn kind(&self) -> Kind {
        let group = if self.kind == "CronJob" { "batch" } else { "apps" };
        Kind { name: self.kind.clone(), group: Some(group.to_owned()) }
    }
}

fn add_object(row: &mut FleetRow, body: Option<&Value>) {
    let Some(body) = body else {
        row.state = Some("missing".to_owned());
        return;
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let template = body.pointer("/spec/jobTemplate/spec/template").unwrap_or(&body["spec"]["template"]);
    let container = &template["spec"]["containers"][0];
    row.image = text(&container["image"]);
    let variables = container["env"].as_array();
    let arguments = variables.into_iter().flatten().find(|one| one["name"] == "INTEGRATION_EXTRA_ARGS");
    row.arguments = arguments.and_then(|one| text(&one["value"])).unwrap_or_default();
    let is_off = body["spec"]["replicas"] == 0 || body["spec"]["suspend"] == true;
    let conditions = body["status"]["conditions"].as_array();
    let available = conditions.into_iter().flatten().find(|one| one["type"] == "Available");
    row.since = text(&body["status"]["lastScheduleTime"])
        .or_else(|| available.and_then(|one| text(&one["lastTransitionTime"])))
        .or_else(|| text(&body["metadata"]["creationTimestamp"]));
    row.state = Some(match rollout_status(body) {
        _ if is_off => "disabled".to_owned(),
        None => "scheduled".to_owned(),
        Some(RolloutStatus::Complete) => "ready".to_owned(),
        Some(RolloutStatus::InProgress(text)) => text,
        Some(RolloutStatus::Failed(text)) => format!("failed: {text}"),
    });
    row.keys = key_remarks(&body["metadata"]["annotations"]["qontract.shard-assignment"]);
}

/// Why each key of a balanced shard is in this shard.
fn key_remarks(annotation: &Value) -> Vec<String> {
    let text = annotation.as_str().unwrap_or_default();
    let Ok(assignment) = qontract_fleet::balance::Assignment::from_json(text) else { return Vec::new() };
    let remark = |(key, placement): (&String, &qontract_fleet::balance::Placement)| {
        let from = placement.from.map_or(String::new(), |slot| format!("; it was in shard {slot} before"));
        format!("`{key}` is in this shard, because {}{from}", placement.reason.as_str())
    };
    assignment.placements().iter().map(remark).collect()
}

/// Adds the last successful run of each shard, from the metrics of the loops.
pub async fn add_last_runs(prometheus: &Prometheus, shards: &mut [FleetShard]) -> Result<(), String> {
    let permit = ReadPermit::for_targets(Mode::DryRun);
    let query = |name: &str| format!("qontract_reconcile_{name}");
    let times = prometheus.query(&permit, &query("last_success_timestamp_seconds"), None).await;
    let times = times.map_err(|error| error_chain(&error))?;
    let commits = prometheus.query(&permit, &query("last_success"), None).await;
    let commits = commits.map_err(|error| error_chain(&error))?;
    for shard in shards {
        let (integration, id) = (shard.shown.integration.as_str(), shard.shard_id.as_str());
        let is_it = |labels: &qontract_client_prometheus::Labels| {
            labels.get("integration") == Some(integration) && labels.get("shard_id") == Some(id)
        };
        #[expect(clippy::cast_possible_truncation, reason = "a time in seconds")]
        let time = times.iter().filter(|one| is_it(&one.labels)).map(|one| one.value as i64).max();
        shard.shown.last_success = time;
        let commit = commits.iter().find(|one| is_it(&one.labels)).and_then(|one| one.labels.get("commit"));
        shard.shown.commit = commit.filter(|commit| !commit.is_empty()).map(str::to_owned);
    }
    Ok(())
}

/// The rows as a table.
pub fn table_text(rows: &[&FleetRow]) -> qontract_diagnostics::StyledText {
    let has = |of: fn(&FleetRow) -> bool| rows.iter().any(|row| of(row));
    let mut header = vec!["INTEGRATION", "OBJECT", "NAMESPACE", "STATE"];
    let (has_since, has_runs) = (has(|row| row.since.is_some()), has(|row| row.last_success.is_some()));
    header.extend(has_since.then_some("SINCE"));
    header.extend(has_runs.then_some("LAST SUCCESS"));
    header.extend(has_runs.then_some("COMMIT"));
    header.push("DECLARED");
    let header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let cells = |row: &&FleetRow| {
        let declared_state = || if row.disabled { "disabled" } else { "declared" }.to_owned();
        let mut cells = vec![
            row.integration.clone(),
            format!("{}/{}", row.kind, row.name),
            format!("{}/{}", row.cluster, row.namespace),
            row.state.clone().unwrap_or_else(declared_state),
        ];
        cells.extend(has_since.then(|| row.since.clone().unwrap_or_default()));
        let time = row.last_success.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        cells.extend(has_runs.then(|| time.map(|time| time.to_string()).unwrap_or_default()));
        let commit = row.commit.as_deref().map(|commit| commit.chars().take(12).collect::<String>());
        cells.extend(has_runs.then(|| commit.unwrap_or_default()));
        cells.push(row.declared.clone());
        cells
    };
    table::styled(&header, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// The explanation of a shard. Unsafe characters of the data and of the cluster are escaped.
pub fn explanation(row: &FleetRow) -> String {
    sanitize_lines(&explanation_text(row)).into_owned()
}

fn explanation_text(row: &FleetRow) -> String {
    let FleetRow { integration, kind, name, cluster, namespace, strategy, arguments, declared, .. } = row;
    let mut text = format!("{kind} `{name}` in namespace `{namespace}` of cluster `{cluster}`\n");
    text.push_str(&format!("  runs `{integration}`{}\n", arguments_clause(arguments)));
    text.push_str(&format!("  because {strategy}\n    --> {declared}\n"));
    if row.disabled {
        text.push_str("  does not run: the data disables it, or no key is assigned to it\n");
    }
    if let Some(state) = &row.state {
        let since = row.since.as_deref().map(|since| format!(" since {since}")).unwrap_or_default();
        text.push_str(&format!("  state: {state}{since}\n"));
    }
    if let Some(image) = &row.image {
        text.push_str(&format!("  image: {image}\n"));
    }
    for remark in &row.keys {
        text.push_str(&format!("  {remark}\n"));
    }
    text
}

fn arguments_clause(arguments: &str) -> String {
    match arguments.trim() {
        "" => String::new(),
        arguments => format!(" with `{arguments}`"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FleetRow, add_object, explanation, table_text};

    fn row() -> FleetRow {
        FleetRow {
            integration: "quotas".to_owned(),
            kind: "Deployment".to_owned(),
            name: "qontract-reconcile-quotas-0".to_owned(),
            cluster: "c1".to_owned(),
            namespace: "qontract".to_owned(),
            strategy: "`auto` assigns keys to shards by their run times".to_owned(),
            declared: "data/quotas.yml:3".to_owned(),
            ..FleetRow::default()
        }
    }

    #[test]
    fn the_state_of_an_object_is_shown() {
        let mut missing = row();
        add_object(&mut missing, None);
        assert_eq!(missing.state.as_deref(), Some("missing"));
        let assignment = r#"{"version":1,"slots":2,"keys":{"c1":{"slot":0,"from":1,"reason":"balance"}}}"#;
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "qontract-reconcile-quotas-0", "generation": 1,
                "annotations": {"qontract.shard-assignment": assignment},
            },
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "q:1"}]}}},
            "status": {
                "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        });
        let mut ready = row();
        add_object(&mut ready, Some(&body));
        assert_eq!((ready.state.as_deref(), ready.image.as_deref()), (Some("ready"), Some("q:1")));
        let text = explanation(&ready);
        let why = "`c1` is in this shard, because the move improved the balance; it was in shard 1 before";
        assert!(text.contains(why) && text.contains("--> data/quotas.yml:3"), "{text}");
        let text = table_text(&[&ready, &missing]).plain();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("INTEGRATION  OBJECT") && lines[1].contains("ready"), "{text}");
        let mut off = row();
        let body = json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"suspend": true}});
        add_object(&mut off, Some(&body));
        assert_eq!(off.state.as_deref(), Some("disabled"));
    }
}
