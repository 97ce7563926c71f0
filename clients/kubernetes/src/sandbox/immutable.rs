//! Immutable fields, from the same table that the planner uses. Pure.

use qontract_kinds::{ImmutableField, SEALED_FIELDS, can_be_sealed, dotted_path, group_of, immutable_fields};
use serde_json::Value;

/// The first immutable field that differs.
pub(super) fn immutable_change(kind: &str, before: &Value, after: &Value) -> Option<String> {
    let version = before["apiVersion"].as_str().or(after["apiVersion"].as_str()).unwrap_or_default();
    let group = group_of(version);
    let mut fields = immutable_fields(kind, group).iter();
    let found = fields.find_map(|field| violation(*field, before, after));
    let is_sealed = can_be_sealed(kind, group) && before["immutable"] == true;
    found.or_else(|| {
        let mut fields = SEALED_FIELDS.into_iter().filter(|_| is_sealed);
        fields.find(|field| before.get(field) != after.get(field)).map(str::to_owned)
    })
}

fn violation(field: ImmutableField, before: &Value, after: &Value) -> Option<String> {
    let differs = |pointer: &str| value(before, pointer) != value(after, pointer);
    match field {
        ImmutableField::Fixed(pointer) | ImmutableField::FixedWhole(pointer) => {
            differs(pointer).then(|| dotted_path(pointer))
        }
        ImmutableField::FixedOnceSet(pointer) => {
            let is_set = value(before, pointer).is_some_and(|value| value != "");
            (is_set && differs(pointer)).then(|| dotted_path(pointer))
        }
        ImmutableField::SpecExcept(free) => {
            let names = [before, after].into_iter().filter_map(|body| body["spec"].as_object());
            let mut names =
                names.flat_map(serde_json::Map::keys).filter(|name| !free.contains(&name.as_str()));
            names
                .find(|name| before["spec"].get(*name) != after["spec"].get(*name))
                .map(|name| format!("spec.{name}"))
        }
    }
}

/// The value of a field after server defaulting: an empty list equals an absent field, and a Secret without a
/// type is opaque.
fn value(body: &Value, pointer: &str) -> Option<Value> {
    match body.pointer(pointer) {
        None | Some(Value::Null) if pointer == "/type" => Some("Opaque".into()),
        None | Some(Value::Null) => None,
        Some(Value::Array(items)) if items.is_empty() => None,
        Some(value) => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::immutable_change;

    #[track_caller]
    fn check(kind: &str, before: &Value, after: &Value, expect: Option<&str>) {
        let version = match kind {
            "StatefulSet" | "Deployment" => "apps/v1",
            "RoleBinding" => "rbac.authorization.k8s.io/v1",
            "Job" => "batch/v1",
            "Route" => "route.openshift.io/v1",
            _ => "v1",
        };
        let of_version = |body: &Value| {
            let mut body = body.clone();
            body["apiVersion"] = version.into();
            body
        };
        let (before, after) = (of_version(before), of_version(after));
        assert_eq!(immutable_change(kind, &before, &after).as_deref(), expect);
        assert_eq!(immutable_change(kind, &before, &before), None);
    }

    #[test]
    fn changes_of_immutable_fields_are_found() {
        check("Secret", &json!({}), &json!({"type": "Opaque"}), None);
        check("Secret", &json!({"data": {"a": "b"}}), &json!({"type": "x"}), Some("type"));
        check(
            "ConfigMap",
            &json!({"immutable": true, "data": {"a": "b"}}),
            &json!({"immutable": true}),
            Some("data"),
        );
        check("ConfigMap", &json!({"immutable": true}), &json!({}), Some("immutable"));
        check("ConfigMap", &json!({"data": {"a": "b"}}), &json!({"immutable": true}), None);
        check(
            "RoleBinding",
            &json!({"roleRef": {"name": "a"}}),
            &json!({"roleRef": {"name": "b"}}),
            Some("roleRef"),
        );
        check("Service", &json!({"spec": {}}), &json!({"spec": {"clusterIP": "None"}}), None);
        check(
            "Service",
            &json!({"spec": {"clusterIP": "None"}}),
            &json!({"spec": {}}),
            Some("spec.clusterIP"),
        );
        check(
            "Job",
            &json!({"spec": {"template": 1}}),
            &json!({"spec": {"template": 2}}),
            Some("spec.template"),
        );
        check("StatefulSet", &json!({"spec": {"replicas": 1}}), &json!({"spec": {"replicas": 2}}), None);
        check(
            "StatefulSet",
            &json!({"spec": {}}),
            &json!({"spec": {"serviceName": "a"}}),
            Some("spec.serviceName"),
        );
        check(
            "StatefulSet",
            &json!({"spec": {"revisionHistoryLimit": 1}}),
            &json!({"spec": {"revisionHistoryLimit": 2}}),
            None,
        );
        check("Route", &json!({"spec": {"host": "a"}}), &json!({"spec": {"host": "b"}}), Some("spec.host"));
        check("ResourceQuota", &json!({"spec": {}}), &json!({"spec": {"scopes": []}}), None);
        // A kind with the same name in another group has other immutable fields.
        let of = |host: &str| json!({"apiVersion": "example.com/v1", "spec": {"clusterIP": host}});
        assert_eq!(immutable_change("Service", &of("a"), &of("b")), None);
    }
}
