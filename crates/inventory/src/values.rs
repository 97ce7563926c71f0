//! Values that no version of the API server accepts: an object with such a value can be neither created nor
//! updated.

use std::fmt;

use serde_json::Value;

use crate::quantity::is_quantity;

/// The fields of a limit that hold quantities.
const LIMIT_FIELDS: [&str; 5] = ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"];

/// A value that no API server accepts. The value itself is not part of the message, because it may be secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvalidValue {
    /// The path of the field.
    pub path: String,
    /// The type or format that the value does not have.
    pub expected: &'static str,
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.path, self.expected)
    }
}

/// The values of an object that no API server accepts: values of a `ConfigMap` that are not strings, and quantities
/// of a `ResourceQuota` and a `LimitRange` that cannot be parsed.
///
/// ```
/// let body = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": 2}});
/// let invalid = qontract_inventory::invalid_values(&body);
/// assert_eq!(invalid.iter().map(ToString::to_string).collect::<Vec<_>>(), ["`data.b` is not a string"]);
/// ```
pub fn invalid_values(body: &Value) -> Vec<InvalidValue> {
    let mut invalid = Vec::new();
    if body["apiVersion"] != "v1" {
        return invalid;
    }
    match body["kind"].as_str() {
        Some("ConfigMap") => {
            let entries = body["data"].as_object().into_iter().flatten();
            // The server removes a key whose value is null, so null is not an error.
            for (key, _) in entries.filter(|(_, value)| !value.is_string() && !value.is_null()) {
                invalid.push(InvalidValue { path: format!("data.{key}"), expected: "a string" });
            }
        }
        Some("ResourceQuota") => add_quantities(&body["spec"]["hard"], "spec.hard", &mut invalid),
        Some("LimitRange") => {
            for (index, limit) in body["spec"]["limits"].as_array().into_iter().flatten().enumerate() {
                for field in LIMIT_FIELDS {
                    add_quantities(&limit[field], &format!("spec.limits[{index}].{field}"), &mut invalid);
                }
            }
        }
        _ => {}
    }
    invalid
}

/// Adds the values of a map that are strings but not quantities.
fn add_quantities(map: &Value, path: &str, invalid: &mut Vec<InvalidValue>) {
    let is_invalid = |value: &Value| value.as_str().is_some_and(|text| !is_quantity(text));
    for (key, _) in map.as_object().into_iter().flatten().filter(|(_, value)| is_invalid(value)) {
        invalid.push(InvalidValue { path: format!("{path}.{key}"), expected: "a quantity" });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut body: Value, kind: &str, expect: &[&str]) {
        body["apiVersion"] = "v1".into();
        body["kind"] = kind.into();
        let found: Vec<String> = invalid_values(&body).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect, "{body}");
    }

    #[test]
    fn values_of_config_maps_are_strings() {
        check(json!({"data": {"a": "x", "b": null}}), "ConfigMap", &[]);
        check(json!({}), "ConfigMap", &[]);
        let expect = ["`data.a` is not a string", "`data.b` is not a string"];
        check(json!({"data": {"a": 8080, "b": {"c": "x"}}}), "ConfigMap", &expect);
        check(json!({"data": {"a": 8080}}), "Secret", &[]);
    }

    #[test]
    fn amounts_of_quotas_and_limit_ranges_are_quantities() {
        check(json!({"spec": {"hard": {"limits.cpu": "2", "pods": 4}}}), "ResourceQuota", &[]);
        let hard = json!({"spec": {"hard": {"limits.memory": "8Gigs", "pods": ""}}});
        let expect = ["`spec.hard.limits.memory` is not a quantity", "`spec.hard.pods` is not a quantity"];
        check(hard, "ResourceQuota", &expect);
        let limits = json!({"spec": {"limits": [{"max": {"cpu": "1"}}, {"min": {"cpu": "one"}}]}});
        check(limits, "LimitRange", &["`spec.limits[1].min.cpu` is not a quantity"]);
    }

    #[test]
    fn objects_of_other_groups_are_not_checked() {
        let body = json!({"apiVersion": "example.com/v1", "kind": "ConfigMap", "data": {"a": 1}});
        assert_eq!(invalid_values(&body), []);
    }
}
