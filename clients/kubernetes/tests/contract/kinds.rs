//! Tests which kinds a cluster serves.

use qontract_client_kubernetes::{Kind, KubernetesError, ObjectAddress, WritePrecondition};
use serde_json::{Value, json};

use crate::fixture::{ContractFixture, unique};

pub async fn an_unserved_kind_or_version_is_an_error(fixture: &ContractFixture) {
    for kind in ["Nonsense", "Nonsense.example.com", "Deployment.example.com"] {
        let result = fixture
            .kubernetes
            .api_resource(&fixture.permits.read, &fixture.cluster, &kind.parse().unwrap())
            .await;
        let error = result.unwrap_err();
        assert!(matches!(error, KubernetesError::Unserved { .. }) && !error.is_transient(), "{error}");
    }
    let body = json!({"apiVersion": "apps/v1beta1", "kind": "Deployment"});
    let error =
        fixture.put(&fixture.address("Deployment", "a"), body, WritePrecondition::Absent).await.unwrap_err();
    assert!(
        error.to_string().ends_with("does not serve `Deployment` of `apps/v1beta1`, only of `apps/v1`"),
        "{error}"
    );
    let deployment = Kind::named("Deployment");
    let served =
        fixture.kubernetes.api_resource(&fixture.permits.read, &fixture.cluster, &deployment).await.unwrap();
    assert_eq!((served.api_version.as_str(), served.plural.as_str()), ("apps/v1", "deployments"));
    assert!(served.is_namespaced);
}

fn definition(group: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
}

async fn define(fixture: &ContractFixture, group: &str) -> ObjectAddress {
    put_definition(fixture, group, definition(group)).await
}

async fn put_definition(fixture: &ContractFixture, group: &str, definition: Value) -> ObjectAddress {
    let kind = "CustomResourceDefinition".parse().unwrap();
    let address = ObjectAddress::cluster_scoped(kind, format!("widgets.{group}"));
    fixture.put(&address, definition, WritePrecondition::Absent).await.unwrap();
    address
}

/// Defines the kind `Widget` in a group of its own. A spec has these properties.
pub async fn define_widget(fixture: &ContractFixture, properties: &Value) -> [ObjectAddress; 2] {
    let group = format!("{}.example.com", unique("w"));
    let mut body = definition(&group);
    let spec = json!({"type": "object", "properties": properties});
    body["spec"]["versions"][0]["schema"] =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = put_definition(fixture, &group, body).await;
    let kind = format!("Widget.{group}");
    fixture.wait_until_served(&kind).await;
    [definition, fixture.address(&kind, "a")]
}

pub async fn custom_kinds_are_served_after_their_definition(fixture: &ContractFixture) {
    let group = format!("{}.example.com", unique("g"));
    let kind = format!("Widget.{group}");
    let address = fixture.address(&kind, "a");
    let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "spec": {"a": 1, "b": 2}});
    let error = fixture.put(&address, body.clone(), WritePrecondition::Absent).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Unserved { .. }), "{error}");
    let definition = define(fixture, &group).await;
    fixture.wait_until_served(&kind).await;
    fixture.put(&address, body.clone(), WritePrecondition::Absent).await.unwrap();
    fixture.apply(&address, json!({"spec": {"a": 1}})).await.unwrap();
    assert_eq!(fixture.get(&address).await.body["spec"], json!({"a": 1}));
    assert_eq!(fixture.list(&kind, &fixture.namespace).await.len(), 1);
    fixture.remove(&fixture.get(&definition).await).await.unwrap();
}

pub async fn an_ambiguous_kind_is_an_error(fixture: &ContractFixture) {
    let groups = [unique("h"), unique("i")].map(|name| format!("{name}.example.com"));
    let mut definitions = Vec::new();
    for group in &groups {
        definitions.push(define(fixture, group).await);
        fixture.wait_until_served(&format!("Widget.{group}")).await;
    }
    let widget = Kind::named("Widget");
    let error =
        fixture.kubernetes.api_resource(&fixture.permits.read, &fixture.cluster, &widget).await.unwrap_err();
    let KubernetesError::Ambiguous { groups: listed, .. } = &error else { panic!("{error}") };
    assert!(groups.iter().all(|group| listed.contains(group)), "{error}");
    for definition in &definitions {
        fixture.remove(&fixture.get(definition).await).await.unwrap();
    }
}
