//! Values as a plan shows them: limited in size.

use serde_json::{Map, Value};

/// How many characters of a text are shown.
pub const MAX_CHARS: usize = 200;

/// How many values of a map or list are shown, at any depth.
pub const MAX_VALUES: usize = 16;

/// How many characters are shown in front of the first difference of two long texts.
const CONTEXT: usize = 20;

/// The value, or its beginning.
pub fn value(whole: &Value) -> Value {
    let mut left = MAX_VALUES;
    limited(whole, &mut left)
}

fn limited(whole: &Value, left: &mut usize) -> Value {
    match whole {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            *left = left.saturating_sub(1);
            whole.clone()
        }
        Value::String(text) => {
            *left = left.saturating_sub(1);
            Value::String(beginning(text))
        }
        Value::Array(items) => {
            let mut shown = Vec::new();
            for item in items {
                if *left == 0 {
                    shown.push(format!("… {} more", items.len() - shown.len()).into());
                    break;
                }
                shown.push(limited(item, left));
            }
            Value::Array(shown)
        }
        Value::Object(map) => {
            let mut shown = Map::new();
            for (key, item) in map {
                if *left == 0 {
                    shown.insert("…".to_owned(), format!("{} more", map.len() - shown.len()).into());
                    break;
                }
                shown.insert(beginning(key), limited(item, left));
            }
            Value::Object(shown)
        }
    }
}

/// The two values of a changed field. Long texts are shown from shortly before the first difference.
pub fn pair(before: &Value, after: &Value) -> (Value, Value) {
    let (Value::String(one), Value::String(other)) = (before, after) else {
        return (value(before), value(after));
    };
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    if one.chars().count().max(other.chars().count()) <= MAX_CHARS || same <= CONTEXT {
        return (value(before), value(after));
    }
    let part = |text: &str| {
        let rest: String = text.chars().skip(same - CONTEXT).collect();
        Value::String(format!("…{}", beginning(&rest)))
    };
    (part(one), part(other))
}

/// The text, or its beginning.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{pair, value};

    fn check(whole: &Value, expect: &Value) {
        assert_eq!(value(whole), *expect);
    }

    #[test]
    fn texts_are_cut() {
        check(&json!("ä".repeat(200)), &json!("ä".repeat(200)));
        check(&json!("ä".repeat(201)), &json!(format!("{}…", "ä".repeat(200))));
        check(&json!({"k".repeat(201): 1}), &json!({format!("{}…", "k".repeat(200)): 1}));
    }

    #[test]
    fn maps_and_lists_are_cut() {
        let sixteen: Vec<usize> = (0..16).collect();
        check(&json!(sixteen), &json!(sixteen));
        let mut cut: Vec<Value> = sixteen.iter().map(|number| json!(number)).collect();
        cut.push(json!("… 2 more"));
        check(&json!((0..18).collect::<Vec<_>>()), &json!(cut));
        check(&json!({"a": sixteen, "b": 1, "c": 2}), &json!({"a": sixteen, "…": "2 more"}));
    }

    #[test]
    fn long_texts_begin_where_they_differ() {
        let check = |one: String, other: String, expect: [String; 2]| {
            assert_eq!(pair(&json!(one), &json!(other)), (json!(expect[0]), json!(expect[1])));
        };
        let (a, b) = (format!("{}1", "x".repeat(200)), format!("{}2", "x".repeat(200)));
        check(a, b, [format!("…{}1", "x".repeat(20)), format!("…{}2", "x".repeat(20))]);
        check("x1".to_owned(), "x2".to_owned(), ["x1".to_owned(), "x2".to_owned()]);
        let (a, b) = (format!("{}1", "x".repeat(199)), format!("{}2", "x".repeat(199)));
        check(a.clone(), b.clone(), [a, b]);
        let long = "y".repeat(300);
        check(
            format!("1{long}"),
            format!("2{long}"),
            [format!("1{}…", "y".repeat(199)), format!("2{}…", "y".repeat(199))],
        );
    }
}
