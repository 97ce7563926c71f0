//! JSON values as YAML.

use serde_json::Value;

/// The text of a document.
pub fn print(value: &Value) -> String {
    let mut text = String::from("---\n");
    match value {
        Value::Array(items) if items.is_empty() => text.push_str("[]\n"),
        Value::Object(map) if map.is_empty() => text.push_str("{}\n"),
        Value::Array(_) | Value::Object(_) => block(value, 0, &mut text),
        scalar => text.push_str(&format!("{}\n", inline(scalar))),
    }
    text
}

fn block(value: &Value, indent: usize, text: &mut String) {
    let spaces = " ".repeat(indent);
    match value {
        Value::Array(items) => {
            for item in items {
                let start = text.len();
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        block(item, indent + 2, text);
                        // The first key stands behind the dash.
                        text.replace_range(start..start + indent + 2, &format!("{spaces}- "));
                    }
                    Value::Array(inner) if !inner.is_empty() => {
                        text.push_str(&format!("{spaces}-\n"));
                        block(item, indent + 2, text);
                    }
                    other => text.push_str(&format!("{spaces}- {}\n", inline(other))),
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let key = scalar(key);
                match value {
                    Value::Array(items) if !items.is_empty() => {
                        text.push_str(&format!("{spaces}{key}:\n"));
                        block(value, indent, text);
                    }
                    Value::Object(inner) if !inner.is_empty() => {
                        text.push_str(&format!("{spaces}{key}:\n"));
                        block(value, indent + 2, text);
                    }
                    other => text.push_str(&format!("{spaces}{key}: {}\n", inline(other))),
                }
            }
        }
        _ => {}
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// Text as it is where YAML reads it so, else in quotes.
fn scalar(text: &str) -> String {
    let document = format!("a: {text}\n");
    let parsed = qontract_yaml::parse(document.as_bytes(), &qontract_yaml::Limits::default());
    let same = parsed.findings.is_empty()
        && parsed.document.is_some_and(|document| match document.root().value() {
            qontract_yaml::Value::Map(map) => {
                map.get("a").is_some_and(|node| node.value() == qontract_yaml::Value::Str(text))
            }
            _ => false,
        });
    if same && !text.contains('\n') { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn values_read_back_as_they_were() {
        let value = json!({"a": "text", "b": ["yes", 1, null, [], [[1]], {"x": "1e3", "y": {}}], "c d": {"e": "a: b\n"},
            "f": "12:30", "g": true, "h": "0755", "i": ["/a/b.yml", "-"], "j": ""});
        let text = super::print(&value);
        let parsed = qontract_yaml::parse(text.as_bytes(), &qontract_yaml::Limits::default());
        assert!(parsed.findings.is_empty(), "{text}\n{:?}", parsed.findings);
        let document = parsed.document.expect("a document");
        assert_eq!(as_json(document.root()), value, "{text}");
    }

    fn as_json(node: qontract_yaml::Node<'_>) -> serde_json::Value {
        use qontract_yaml::Value;
        match node.value() {
            Value::Map(map) => {
                let entries = map.iter().map(|entry| (entry.key.to_owned(), as_json(entry.value)));
                serde_json::Value::Object(entries.collect())
            }
            Value::List(list) => list.iter().map(as_json).collect(),
            Value::Str(text) => json!(text),
            Value::Bool(flag) => json!(flag),
            Value::Int(number) => json!(number),
            Value::Null => json!(null),
            other => panic!("{other:?}"),
        }
    }
}
