//! Prometheus rules: adds the source URL to each alert.

use serde_json::{Value, json};

/// Adds the source URL (`html_url`) to each alert, if the repository is known.
pub fn with_source_urls(mut body: Value, repository: Option<&str>, path: &str) -> Value {
    let Some(repository) = repository else { return body };
    let url = format!("{}/blob/master/resources{path}", repository.trim_end_matches('/'));
    let groups = body.pointer_mut("/spec/groups").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten() {
        let rules = group.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            if !rule.contains_key("alert") {
                continue;
            }
            let annotations = rule.entry("annotations").or_insert(Value::Null);
            if annotations.is_null() {
                *annotations = json!({});
            }
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert("html_url".to_owned(), json!(url));
            }
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::with_source_urls;
    use serde_json::json;

    #[test]
    fn an_alert_gets_its_source_url_and_a_record_does_not() {
        let body = json!({"spec": {"groups": [{"rules": [{"alert": "a"}, {"record": "b"}]}]}});
        let actual = with_source_urls(body, Some("https://git.example.com/repo"), "/rules/a.yaml");
        let url = "https://git.example.com/repo/blob/master/resources/rules/a.yaml";
        let expect = json!([{"alert": "a", "annotations": {"html_url": url}}, {"record": "b"}]);
        assert_eq!(actual["spec"]["groups"][0]["rules"], expect);
    }

    #[test]
    fn a_value_that_is_not_a_rule_is_unchanged() {
        for body in [
            json!({"spec": "hello"}),
            json!({"spec": {"groups": ["hello", {"rules": "x"}, {"rules": [1]}]}}),
            json!({}),
        ] {
            assert_eq!(with_source_urls(body.clone(), Some("https://git.example.com"), "/a"), body);
        }
    }
}
