//! Seeded random mutations of documents.

use qontract_testkit::SeededRng;
use serde_json::{Value, json};

/// Changes one value somewhere in `document`.
pub fn mutate(document: &mut Value, random: &mut SeededRng) {
    let mut places = Vec::new();
    collect(document, &mut String::new(), &mut places);
    let place = places[random.below(places.len())].clone();
    let Some(value) = document.pointer_mut(&place) else { return };
    match random.below(8) {
        0 | 1 => *value = other(random),
        2 => change_text(value, random),
        3 => drop_one(value, random),
        4 => rename_one(value, random),
        5 => double_one(value, random),
        6 => {
            if let Value::Object(map) = value {
                map.insert("unheardOf".to_owned(), other(random));
            }
        }
        _ => change_number(value, random),
    }
}

fn collect(value: &Value, pointer: &mut String, places: &mut Vec<String>) {
    places.push(pointer.clone());
    let mut below = |step: String, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        collect(value, pointer, places);
        pointer.truncate(length);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| below(index.to_string(), item));
        }
        _ => {}
    }
}

fn other(random: &mut SeededRng) -> Value {
    const TEXTS: [&str; 9] = ["", "x", "-", "/a/b.yml", "http", "aws", "name\n", "é٣", "a b;"];
    match random.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1.5),
        4 => json!(1.0),
        5 => json!([]),
        6 => json!({}),
        _ => json!(TEXTS[random.below(TEXTS.len())]),
    }
}

fn change_text(value: &mut Value, random: &mut SeededRng) {
    let Value::String(text) = value else { return };
    match random.below(5) {
        0 => text.push('\n'),
        1 => text.push('-'),
        2 => text.insert(0, '.'),
        3 => *text = text.to_uppercase(),
        _ => drop(text.pop()),
    }
}

fn drop_one(value: &mut Value, random: &mut SeededRng) {
    match value {
        Value::Object(map) => {
            let key = map.keys().nth(random.below(map.len())).cloned();
            key.and_then(|key| map.remove(&key));
        }
        Value::Array(items) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
        _ => {}
    }
}

fn rename_one(value: &mut Value, random: &mut SeededRng) {
    if let Value::Object(map) = value
        && let Some(key) = map.keys().nth(random.below(map.len())).cloned()
        && let Some(moved) = map.remove(&key)
    {
        map.insert(format!("{key}s"), moved);
    }
}

fn double_one(value: &mut Value, random: &mut SeededRng) {
    if let Value::Array(items) = value
        && !items.is_empty()
    {
        let item = items[random.below(items.len())].clone();
        items.push(item);
    }
}

fn change_number(value: &mut Value, random: &mut SeededRng) {
    if value.is_number() {
        *value =
            [json!(0), json!(-3), json!(2.0), json!(2.5), json!(1e9), json!(true)][random.below(6)].clone();
    }
}
