//! Parses YAML documents into objects.

use qontract_inventory::DesiredBody;
use qontract_runtime::Fault;
use serde_json::Value;

/// Parses one YAML document into an object, without its `$schema`. If the document contains secrets, errors
/// do not quote it.
pub fn object(path: &str, text: &str, is_sensitive: bool) -> Result<Value, Fault> {
    let read = qontract_yaml::json::read(text.as_bytes());
    let mut body = read.map_err(|error| {
        let why = match error_line(text) {
            _ if is_sensitive => "it is not YAML".to_owned(),
            Some(line) => format!("line {line}: {error}"),
            None => error,
        };
        Fault::author(format!("`{path}` is not an object: {why}"))
    })?;
    if body.is_null() {
        return Err(Fault::author(format!("`{path}` is not an object: it is empty")));
    }
    let Some(map) = body.as_object_mut() else {
        return Err(Fault::author(format!("`{path}` is not an object, but a list or a value")));
    };
    map.remove("$schema");
    check_object(path, body, is_sensitive)
}

/// The line, counted from 1, of the first YAML syntax error.
pub fn error_line(text: &str) -> Option<usize> {
    let parsed = qontract_yaml::parse(text.as_bytes(), &qontract_yaml::Limits::default());
    if parsed.document.is_some() {
        return None;
    }
    let at = parsed.findings.first()?.location.span?.start as usize;
    Some(text.get(..at)?.matches('\n').count() + 1)
}

/// Checks that an object has a valid kind and name. If it contains secrets, errors do not quote it.
pub fn check_object(path: &str, body: Value, is_sensitive: bool) -> Result<Value, Fault> {
    match DesiredBody::new(body.clone()) {
        Ok(_) => Ok(body),
        Err(_) if is_sensitive => Err(Fault::author(format!(
            "`{path}` is not an object: its kind, its name or its containers are invalid"
        ))),
        Err(why) => Err(Fault::author(format!("`{path}` is not an object: {why}"))),
    }
}

/// Checks that every value of `data` is JSON.
pub fn check_json_values(path: &str, body: &Value) -> Result<(), Fault> {
    let data = body["data"].as_object();
    for (key, value) in data.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            let why = format!("`validate_json` is set, and `{key}` of `{path}` is not JSON: {error}");
            return Err(Fault::author(why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check_json_values, object};
    use serde_json::json;

    fn check(text: &str, expect: Result<serde_json::Value, &str>) {
        let actual = object("/a.yaml", text, false).map_err(|fault| fault.text);
        match (actual, expect) {
            (Ok(body), expect) => assert_eq!(Ok(body), expect),
            (Err(text), Err(part)) => assert!(text.contains(part), "{text}"),
            (Err(text), Ok(body)) => panic!("{text} instead of {body}"),
        }
    }

    #[test]
    fn a_text_is_one_object_with_kind_and_name() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        check("$schema: /x.yml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", Ok(body));
        check("- 1\n", Err("but a list or a value"));
        for empty in ["", "---\n", "# later\n"] {
            check(empty, Err("`/a.yaml` is not an object: it is empty"));
        }
        check("kind: ConfigMap\nmetadata: {name: a}\n", Err("`/a.yaml` is not an object"));
        check("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A b}\n", Err("`/a.yaml` is not an object"));
        check("a: {\n", Err("`/a.yaml` is not an object: line "));
        check("a: 1\nb: [\nc: 2\n", Err("`/a.yaml` is not an object: line 2: "));
    }

    #[test]
    fn values_of_data_must_be_json() {
        let body = |text: &str| json!({"data": {"a": text}});
        assert!(check_json_values("/a", &body("{\"x\": 1}")).is_ok());
        assert!(check_json_values("/a", &body("{x")).is_err());
    }
}
