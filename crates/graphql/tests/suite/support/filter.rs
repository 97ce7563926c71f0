//! A second implementation of the filter language, written from its documentation.

use serde_json::{Value, json};

use super::reference::{ExecutionError, Reference};
use super::script::{number_text, same};

fn field<'r>(reference: &'r Reference, conf: &'r Value, name: &str) -> Option<&'r Value> {
    let of = |conf: &'r Value| conf["fields"].as_array()?.iter().rfind(|field| field["name"] == name);
    of(conf).or_else(|| {
        let types =
            conf["interfaceResolve"]["fieldMap"].as_object().filter(|_| conf["isInterface"] == true)?;
        types.values().find_map(|mapped| of(reference.conf(mapped.as_str()?)?))
    })
}

/// The entries of a filter in order; see `literal` in the reference.
fn entries(filter: &Value) -> Option<Vec<(String, &Value)>> {
    match filter {
        Value::Object(map) => {
            Some(map.iter().map(|(key, value)| (key.split_once(':').unwrap().1.to_owned(), value)).collect())
        }
        Value::Array(items) => {
            Some(items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect())
        }
        _ => None,
    }
}

/// The value of a keyword such as `in`.
fn get<'v>(value: &'v Value, word: &str) -> Option<&'v Value> {
    let map = value.as_object()?;
    map.iter()
        .find(|(key, _)| key.split_once(':').is_some_and(|(_, name)| name == word))
        .map(|(_, value)| value)
}

/// Reports the errors of a filter that do not depend on the data.
pub fn check(reference: &Reference, conf: &Value, filter: &Value) -> Result<(), ExecutionError> {
    for (key, value) in entries(filter).unwrap_or_default() {
        let Some(field) = field(reference, conf, &key) else {
            let name = conf["name"].as_str().unwrap();
            return Err(ExecutionError {
                message: format!("Field \"{key}\" does not exist on type \"{name}\""),
                code: "BAD_FILTER_FIELD",
                type_: Some(name.to_owned()),
            });
        };
        if value.is_array() && field["isList"] == true {
            continue;
        }
        if let Some(set) = get(value, "in") {
            match set {
                Value::Number(number) => {
                    let number = number_text(number);
                    return Err(ExecutionError::new(format!(
                        "number {number} is not iterable (cannot read property Symbol(Symbol.iterator))"
                    )));
                }
                Value::Bool(flag) => {
                    return Err(ExecutionError::new(format!(
                        "boolean {flag} is not iterable (cannot read property Symbol(Symbol.iterator))"
                    )));
                }
                Value::Object(_) => {
                    return Err(ExecutionError::new(
                        "object is not iterable (cannot read property Symbol(Symbol.iterator))",
                    ));
                }
                _ => {}
            }
        } else if let Some(inner) = get(value, "filter")
            && let Some(conf) = reference.conf(field["type"].as_str().unwrap())
        {
            check(reference, conf, inner)?;
        }
    }
    Ok(())
}

/// Whether an object or a list of objects passes a filter.
pub fn passes(
    reference: &Reference,
    conf: &Value,
    filter: &Value,
    source: &Value,
) -> Result<bool, ExecutionError> {
    let Some(entries) = entries(filter) else { return Ok(false) };
    for (key, value) in entries {
        let field = field(reference, conf, &key).unwrap();
        let knows_lists = !(value.is_array() && field["isList"] == true)
            && ["in", "filter", "ne"].iter().any(|word| get(value, word).is_some());
        let holds = match source {
            Value::Array(items) if knows_lists => {
                let mut all = true;
                for item in items {
                    all = all && holds(reference, field, &key, value, item)?;
                }
                all
            }
            Value::Array(_) => holds(reference, field, &key, value, &json!({}))?,
            one => holds(reference, field, &key, value, one)?,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(
    reference: &Reference,
    field: &Value,
    key: &str,
    value: &Value,
    source: &Value,
) -> Result<bool, ExecutionError> {
    let raw = source.get(key);
    let or_null = raw.unwrap_or(&Value::Null);
    let unreadable = |what: String| Err(ExecutionError::new(what));
    if let (Value::Array(wanted), true) = (value, field["isList"] == true) {
        let Value::Array(items) = or_null else { return Ok(false) };
        return Ok(items.len() == wanted.len() && items.iter().zip(wanted).all(|(a, b)| same(a, b)));
    }
    if let Some(set) = get(value, "in") {
        return match source {
            Value::Null => unreadable(format!("Cannot use 'in' operator to search for '{key}' in null")),
            Value::String(text) => {
                unreadable(format!("Cannot use 'in' operator to search for '{key}' in {text}"))
            }
            Value::Number(number) => {
                let number = number_text(number);
                unreadable(format!("Cannot use 'in' operator to search for '{key}' in {number}"))
            }
            Value::Bool(flag) => {
                unreadable(format!("Cannot use 'in' operator to search for '{key}' in {flag}"))
            }
            _ => Ok(match (raw, set) {
                (Some(raw), Value::Array(items)) => items.iter().any(|item| same(raw, item)),
                (Some(Value::String(raw)), Value::String(text)) => {
                    text.chars().any(|one| *raw == one.to_string())
                }
                _ => false,
            }),
        };
    }
    if source.is_null() {
        return unreadable(format!("Cannot read properties of null (reading '{key}')"));
    }
    if let Some(inner) = get(value, "filter") {
        // Here the key is resolved like a field, and the field `schema` reads `$schema`.
        let resolved = if key == "schema" { source.get("$schema") } else { raw };
        let is_missing = resolved.is_none_or(Value::is_null);
        let found = if is_missing { Value::Null } else { reference.follow(resolved)? };
        if found.is_null() {
            return Ok(false);
        }
        return match reference.conf(field["type"].as_str().unwrap()) {
            Some(_) if inner.is_null() => unreadable("Cannot convert undefined or null to object".to_owned()),
            None => unreadable("Cannot read properties of undefined (reading 'name')".to_owned()),
            Some(conf) => passes(reference, conf, inner, &found),
        };
    }
    if let Some(other) = get(value, "ne") {
        return Ok(!same(or_null, other));
    }
    Ok(same(or_null, value))
}
