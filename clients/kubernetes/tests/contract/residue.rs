//! Tests that fields are removed together with the defaults that the API server added to them.

use qontract_client_kubernetes::{
    FieldOwnership, KubernetesError, MANAGER, ObjectAddress, ObjectDraft, Rehearsal, WritePrecondition,
};
use serde_json::{Value, json};

use crate::fixture::ContractFixture;

/// A Deployment whose container has these fields.
fn container(fields: &Value) -> Value {
    let mut container = fields.clone();
    (container["name"], container["image"]) = (json!("web"), json!("example.com/i:1"));
    deployment(&json!({"template": {"spec": {"containers": [container]}}}))
}

/// A Deployment with these fields of its spec.
fn deployment(fields: &Value) -> Value {
    let mut spec = fields.clone();
    (spec["replicas"], spec["selector"]) = (json!(0), json!({"matchLabels": {"app": "a"}}));
    spec["template"]["metadata"] = json!({"labels": {"app": "a"}});
    if spec["template"]["spec"]["containers"].is_null() {
        spec["template"]["spec"]["containers"] = json!([{"name": "web", "image": "example.com/i:1"}]);
    }
    json!({"metadata": {"annotations": {"written": spec.to_string()}}, "spec": spec})
}

fn web(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"][0]
}

/// Writes each body over the one before; the last result.
async fn write_all(fixture: &ContractFixture, bodies: &[Value]) -> Value {
    let address = fixture.address("Deployment", "a");
    fixture.put(&address, bodies[0].clone(), WritePrecondition::Absent).await.unwrap();
    let mut after = Value::Null;
    for body in &bodies[1..] {
        after = write(fixture, &address, body).await;
    }
    after
}

/// Writes a body as planned, checks that the result has the fields of the preview and that ours are owned by
/// server-side apply; returns the object.
async fn write(fixture: &ContractFixture, address: &ObjectAddress, body: &Value) -> Value {
    let mut declared = body.clone();
    (declared["apiVersion"], declared["kind"]) = (json!("apps/v1"), json!("Deployment"));
    let preview = loop {
        let live = fixture.get(address).await;
        let preview = live.managed_fields.preview(&live.body, MANAGER, live.field_ownership, &declared);
        let onto = preview.precondition(live.version, live.field_ownership);
        match fixture.put(address, body.clone(), onto).await {
            // The controllers of a real cluster write to it as well.
            Err(KubernetesError::Stale { .. }) => {}
            other => break other.map(|()| preview).unwrap(),
        }
    };
    let live = fixture.get(address).await;
    let (before, after) = (&preview.after["spec"], &live.body["spec"]);
    assert!(has_fields(after, before), "{address}: {after} lacks fields of {before}");
    assert_eq!(live.field_ownership, FieldOwnership::Ours, "{}", live.managed_fields.as_json());
    let managed: Value = serde_json::from_str(live.managed_fields.as_json()).unwrap();
    let is_ours = |entry: &&Value| entry["manager"] == MANAGER;
    let ours: Vec<&Value> = managed.as_array().unwrap().iter().filter(is_ours).collect();
    assert_eq!(ours.len(), 1, "{managed}");
    assert_eq!(ours[0]["operation"], "Apply");
    let again = live.managed_fields.preview(&live.body, MANAGER, live.field_ownership, &declared);
    assert_eq!(again.after["spec"], live.body["spec"], "a second write changes nothing");
    assert!(!again.needs_rewrite);
    live.body
}

/// Whether a value has all fields of another one; besides, it may have defaults of the server.
fn has_fields(value: &Value, fields: &Value) -> bool {
    match (value, fields) {
        (Value::Object(value), Value::Object(fields)) => fields.iter().all(|(key, field)| {
            value.get(key).map_or(field.is_null() || *field == json!({}), |value| has_fields(value, field))
        }),
        (Value::Array(items), Value::Array(fields)) => {
            items.len() == fields.len()
                && items.iter().zip(fields).all(|(item, field)| has_fields(item, field))
        }
        _ => value == fields,
    }
}

pub async fn a_removed_probe_leaves_no_defaults(fixture: &ContractFixture) {
    let probe = json!({"livenessProbe": {"httpGet": {"path": "/", "port": 80}}, "readinessProbe": {"exec": {"command": ["true"]}}});
    let after = write_all(fixture, &[container(&probe), container(&json!({}))]).await;
    assert_eq!(web(&after).get("livenessProbe"), None);
    assert_eq!(web(&after).get("readinessProbe"), None);
}

pub async fn the_source_of_a_variable_changes_and_reverts(fixture: &ContractFixture) {
    let env = |source: Value| {
        let mut variable = source;
        variable["name"] = json!("B");
        container(&json!({"env": [{"name": "A", "value": "1"}, variable]}))
    };
    let value = env(json!({"value": "2"}));
    let field = env(json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}));
    let key = env(json!({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}));
    let after = write_all(fixture, &[value.clone(), field.clone(), value.clone()]).await;
    assert_eq!(web(&after)["env"][1], json!({"name": "B", "value": "2"}));
    let address = fixture.address("Deployment", "a");
    for body in [&key, &field, &key, &value] {
        write(fixture, &address, body).await;
    }
    let after = write(fixture, &address, &container(&json!({}))).await;
    assert_eq!(web(&after).get("env"), None);
}

pub async fn a_probe_changes_its_handler(fixture: &ContractFixture) {
    let http =
        container(&json!({"livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5}}));
    let exec = container(&json!({"livenessProbe": {"exec": {"command": ["true"]}}}));
    let after = write_all(fixture, &[http.clone(), exec.clone()]).await;
    assert_eq!(web(&after)["livenessProbe"].get("httpGet"), None);
    assert_eq!(web(&after)["livenessProbe"]["exec"], json!({"command": ["true"]}));
    let after = write(fixture, &fixture.address("Deployment", "a"), &http).await;
    assert_eq!(web(&after)["livenessProbe"].get("exec"), None);
}

pub async fn a_volume_changes_its_source(fixture: &ContractFixture) {
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        deployment(&json!({"template": {"spec": {"volumes": [volume]}}}))
    };
    let secret = volume(json!({"secret": {"secretName": "s"}}));
    let empty = volume(json!({"emptyDir": {}}));
    let after = write_all(fixture, &[secret.clone(), empty.clone(), secret, empty]).await;
    assert_eq!(after["spec"]["template"]["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
}

pub async fn a_strategy_changes_without_its_parameters(fixture: &ContractFixture) {
    let strategy = |strategy: Value| deployment(&json!({ "strategy": strategy }));
    let surge = strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
    let recreate = strategy(json!({"type": "Recreate"}));
    let after =
        write_all(fixture, &[deployment(&json!({})), recreate.clone(), surge.clone(), recreate.clone()])
            .await;
    assert_eq!(after["spec"]["strategy"], json!({"type": "Recreate"}));
    let address = fixture.address("Deployment", "a");
    write(fixture, &address, &surge).await;
    write(fixture, &address, &deployment(&json!({}))).await;
    let after = write(fixture, &address, &recreate).await;
    assert_eq!(after["spec"]["strategy"], json!({"type": "Recreate"}));
}

/// A Deployment that `kubectl apply` created, after our first write.
async fn adopt(fixture: &ContractFixture, before: &Value, after: &Value) -> Value {
    let mut applied = before.clone();
    applied.as_object_mut().unwrap().remove("metadata");
    fixture.kubectl_apply_kind("apps/v1", "Deployment", "a", &applied);
    let address = fixture.address("Deployment", "a");
    assert_eq!(fixture.get(&address).await.field_ownership, FieldOwnership::ClientSideApplied);
    write(fixture, &address, after).await
}

pub async fn a_source_of_client_side_apply_changes(fixture: &ContractFixture) {
    let env = |source: Value| container(&json!({ "env": [source] }));
    let key = env(json!({"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}));
    let after = adopt(fixture, &key, &env(json!({"name": "B", "value": "2"}))).await;
    assert_eq!(web(&after)["env"], json!([{"name": "B", "value": "2"}]));
}

pub async fn a_probe_of_client_side_apply_is_removed(fixture: &ContractFixture) {
    let probe = container(&json!({"livenessProbe": {"httpGet": {"path": "/", "port": 80}}}));
    let after = adopt(fixture, &probe, &container(&json!({}))).await;
    assert_eq!(web(&after).get("livenessProbe"), None);
}

pub async fn fields_of_others_in_a_removed_field_stay(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "a");
    let security =
        json!({"securityContext": {"seLinuxOptions": {"level": "s0", "role": "r"}, "runAsUser": 5}});
    fixture.put(&address, container(&security), WritePrecondition::Absent).await.unwrap();
    let shared = json!({"spec": {"template": {"spec": {"containers": [{"name": "web",
        "securityContext": {"seLinuxOptions": {"user": "u"}}}]}}}});
    fixture.apply_as("helm", &address, shared).await;
    let after = write(fixture, &address, &container(&json!({}))).await;
    assert_eq!(web(&after)["securityContext"], json!({"seLinuxOptions": {"user": "u"}}));
}

pub async fn a_conflict_prevents_a_rewrite(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "a");
    let probe = |image: &str, probe: Value| {
        let mut body = container(&json!({ "livenessProbe": probe }));
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        body
    };
    let http = json!({"httpGet": {"path": "/", "port": 80}});
    let first = probe("example.com/i:1", http);
    fixture.put(&address, first, WritePrecondition::Absent).await.unwrap();
    let shared = json!({"spec": {"template": {"spec": {"containers": [{"name": "web",
        "image": "example.com/i:1"}]}}}});
    fixture.apply_as("helm", &address, shared).await;
    let second = probe("example.com/i:2", json!({"exec": {"command": ["true"]}}));
    let conflicts = loop {
        let live = fixture.get(&address).await;
        let onto = WritePrecondition::Rewrite(live.version, live.field_ownership);
        match fixture.put(&address, second.clone(), onto).await.unwrap_err() {
            // The controllers of a real cluster write to it as well.
            KubernetesError::Stale { .. } => {}
            KubernetesError::Conflict { conflicts, .. } => break conflicts,
            error => panic!("{error}"),
        }
    };
    assert_eq!(conflicts[0].manager, "helm");
    let after = fixture.get(&address).await.body;
    assert_eq!(web(&after)["livenessProbe"]["httpGet"]["port"], json!(80), "nothing is written");
}

/// Two Deployments, each with the fields that exclude those of the other.
fn exclusive_deployments() -> [Value; 2] {
    let pod = |fields: Value, more: Value| {
        let mut body = container(&fields);
        body["spec"]["strategy"] = more["strategy"].clone();
        body["spec"]["template"]["spec"]["volumes"] = json!([more["volume"]]);
        body
    };
    let env = |mut variable: Value| {
        variable["name"] = json!("B");
        json!([variable])
    };
    let exec = json!({"exec": {"command": ["true"]}});
    let http = json!({"httpGet": {"path": "/", "port": 80}});
    let key = json!({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}});
    let fields = |variable: Value, probe: Value, hook: Value| json!({"env": env(variable), "livenessProbe": probe, "lifecycle": {"preStop": hook}});
    [
        pod(
            fields(key, http.clone(), exec.clone()),
            json!({"strategy": {"type": "Recreate"}, "volume": {"name": "v", "configMap": {"name": "c"}}}),
        ),
        pod(
            fields(json!({"value": "1"}), exec, http),
            json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}, "volume": {"name": "v", "emptyDir": {}}}),
        ),
    ]
}

pub async fn fields_that_exclude_declared_ones_are_removed(fixture: &ContractFixture) {
    let [one, other] = exclusive_deployments();
    for (number, (manager, before, after)) in
        [("kubectl", &one, &other), ("kubectl-edit", &other, &one)].into_iter().enumerate()
    {
        let address = fixture.address("Deployment", &format!("a{number}"));
        fixture.put_as(manager, &address, before.clone(), WritePrecondition::Absent).await.unwrap();
        let written = write(fixture, &address, after).await;
        let spec = &written["spec"];
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&web(&written)["env"][0]), names(&web(after)["env"][0]));
        assert_eq!(names(&web(&written)["lifecycle"]["preStop"]), names(&web(after)["lifecycle"]["preStop"]));
        let volume = |spec: &Value| names(&spec["template"]["spec"]["volumes"][0]);
        assert_eq!(volume(spec), volume(&after["spec"]));
        let handler = |object: &Value| {
            let probe = names(&web(object)["livenessProbe"]);
            probe.into_iter().filter(|name| name == "exec" || name == "httpGet").collect::<Vec<_>>()
        };
        assert_eq!(handler(&written), handler(after));
        let is_recreate = after["spec"]["strategy"]["type"] == "Recreate";
        assert_eq!(spec["strategy"].get("rollingUpdate").is_none(), is_recreate);
        assert_eq!(spec["strategy"]["type"] == "Recreate", is_recreate);
    }
}

pub async fn the_other_limit_of_a_disruption_budget_is_removed(fixture: &ContractFixture) {
    let address = fixture.address("PodDisruptionBudget", "a");
    let resource = fixture.kubernetes.api_resource(&fixture.permits.read, &fixture.cluster, &address.kind);
    let api_version = resource.await.unwrap().api_version;
    let body = |limit: &str| {
        json!({"apiVersion": api_version, "kind": "PodDisruptionBudget",
            "spec": {limit: 1, "selector": {"matchLabels": {"app": "a"}}}})
    };
    let declared = body("maxUnavailable");
    fixture.put_as("kubectl-edit", &address, body("minAvailable"), WritePrecondition::Absent).await.unwrap();
    loop {
        let live = fixture.get(&address).await;
        let preview = live.managed_fields.preview(&live.body, MANAGER, live.field_ownership, &declared);
        assert!(preview.needs_rewrite);
        let onto = preview.precondition(live.version, live.field_ownership);
        match fixture.put(&address, declared.clone(), onto).await {
            // The controllers of a real cluster write to it as well.
            Err(KubernetesError::Stale { .. }) => {}
            other => break other.unwrap(),
        }
    }
    let spec = fixture.get(&address).await.body["spec"].clone();
    assert_eq!((&spec["maxUnavailable"], spec.get("minAvailable")), (&json!(1), None));
}

pub async fn a_field_of_a_program_that_excludes_a_declared_one_is_a_conflict(fixture: &ContractFixture) {
    let [one, other] = exclusive_deployments();
    let address = fixture.address("Deployment", "a");
    fixture.put_as("helm", &address, one, WritePrecondition::Absent).await.unwrap();
    let live = fixture.get(&address).await;
    let mut declared = other.clone();
    (declared["apiVersion"], declared["kind"]) = (json!("apps/v1"), json!("Deployment"));
    declared["metadata"]["namespace"] = fixture.namespace.as_str().into();
    // The strategy and the annotation are conflicts of their own.
    for field in ["metadata", "spec"] {
        declared[field].as_object_mut().unwrap().retain(|key, _| key != "annotations" && key != "strategy");
    }
    let preview = live.managed_fields.preview(&live.body, MANAGER, live.field_ownership, &declared);
    assert!(preview.needs_rewrite && preview.conflicts.refused.is_empty());
    let conflicts = loop {
        let live = fixture.get(&address).await;
        let onto = preview.precondition(live.version, live.field_ownership);
        match fixture.put(&address, declared.clone(), onto).await.unwrap_err() {
            // The controllers of a real cluster write to it as well.
            KubernetesError::Stale { .. } => {}
            KubernetesError::Conflict { conflicts, .. } => break conflicts,
            error => panic!("{error}"),
        }
    };
    assert_eq!(conflicts, preview.conflicts.excluding);
    let container = "spec.template.spec.containers[web]";
    let expect = format!(
        "`helm` owns `{container}.env[B].valueFrom`, `{container}.lifecycle.preStop.exec`, \
         `{container}.livenessProbe.httpGet`, `spec.template.spec.volumes[v].configMap`, \
         which exclude the declared `value`, `httpGet`, `exec`, `emptyDir`"
    );
    assert_eq!(conflicts[0].to_string(), expect);
    let after = fixture.get(&address).await.body;
    assert_eq!(after["spec"], live.body["spec"], "nothing is written");
}

pub async fn a_rewrite_has_a_precondition_and_a_rehearsal(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "a");
    let probe = |handler: Value| container(&json!({ "livenessProbe": handler }));
    let http = probe(json!({"httpGet": {"path": "/", "port": 80}}));
    let exec = probe(json!({"exec": {"command": ["true"]}}));
    fixture.put(&address, http, WritePrecondition::Absent).await.unwrap();
    let old = fixture.get(&address).await;
    let rehearse = |body: Value, precondition: WritePrecondition| {
        let draft = ObjectDraft { address: address.clone(), body, precondition, is_sensitive: false };
        async move { fixture.kubernetes.rehearse(&fixture.permits.read, &fixture.cluster, MANAGER, &draft).await }
    };
    let onto = WritePrecondition::Rewrite(old.version.clone(), FieldOwnership::Ours);
    let rehearsed = loop {
        let live = fixture.get(&address).await;
        let onto = WritePrecondition::Rewrite(live.version, FieldOwnership::Ours);
        match rehearse(exec.clone(), onto).await {
            // The controllers of a real cluster write to it as well.
            Err(KubernetesError::Stale { .. }) => {}
            other => break other.unwrap(),
        }
    };
    assert_eq!(rehearsed, Rehearsal::Accepted);
    assert_eq!(fixture.get(&address).await.body["spec"], old.body["spec"], "a rehearsal writes nothing");
    write(fixture, &address, &exec).await;
    let error = fixture.put(&address, exec, onto).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Stale { .. }), "{error}");
}
