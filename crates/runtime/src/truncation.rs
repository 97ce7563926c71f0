//! Truncates diffs for reports: long strings, large maps and lists, and multi-line strings.
//!
//! **Invariant:** a diff is truncated only once and only after it was redacted, because redaction does not recognise
//! a truncated secret (`crates/qontract/tests/suite/redaction_order.rs`).

mod lines;

use qontract_diagnostics::human::shortened;
use qontract_redaction::REDACTED;
use serde_json::{Map, Value};

use crate::field_diff::{DiffEntry, FieldDiff};

/// Maximum number of characters that are shown of a string.
const MAX_CHARS: usize = 200;

/// Maximum number of values that are shown of a map or list, at any depth.
const MAX_VALUES: usize = 16;

/// Number of characters that are shown before the first difference of two long strings.
const CONTEXT_CHARS: usize = 20;

/// Truncates the entries of a diff. A changed multi-line string becomes one entry per differing line.
pub fn truncate_entries(whole: Vec<DiffEntry>) -> Vec<DiffEntry> {
    whole
        .into_iter()
        .flat_map(|entry| match entry {
            DiffEntry::Note(_) => vec![entry],
            DiffEntry::Field(field) => truncate_field(field),
        })
        .collect()
}

fn truncate_field(field: FieldDiff) -> Vec<DiffEntry> {
    let FieldDiff { change, path, before, after } = field;
    let (before, after) = match (before, after) {
        (Some(Value::String(before)), Some(Value::String(after)))
            if [&before, &after].iter().any(|side| side.contains('\n'))
                && [&before, &after].iter().all(|side| *side != REDACTED) =>
        {
            return lines::diff(&path, &before, &after);
        }
        (Some(before), Some(after)) => {
            let (before, after) = truncate_pair(&before, &after);
            (Some(before), Some(after))
        }
        (before, after) => (before.as_ref().map(truncate_value), after.as_ref().map(truncate_value)),
    };
    vec![FieldDiff { change, path, before, after }.into()]
}

/// Truncates a value if it is too large.
fn truncate_value(whole: &Value) -> Value {
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

/// Truncates the two values of a changed field. Long strings are shown from shortly before the first difference.
fn truncate_pair(before: &Value, after: &Value) -> (Value, Value) {
    let (Value::String(one), Value::String(other)) = (before, after) else {
        return (truncate_value(before), truncate_value(after));
    };
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    if one.chars().count().max(other.chars().count()) <= MAX_CHARS || same <= CONTEXT_CHARS {
        return (truncate_value(before), truncate_value(after));
    }
    let part = |text: &str| {
        let rest: String = text.chars().skip(same - CONTEXT_CHARS).collect();
        Value::String(format!("…{}", beginning(&rest)))
    };
    (part(one), part(other))
}

/// Truncates a string if it is too long.
fn beginning(text: &str) -> String {
    shortened(text, MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{truncate_entries, truncate_pair, truncate_value};
    use crate::field_diff::{DiffEntry, FieldChange, FieldDiff};

    fn check(whole: &Value, expect: &Value) {
        assert_eq!(truncate_value(whole), *expect);
    }

    #[test]
    fn texts_are_cut() {
        check(&json!("ä".repeat(200)), &json!("ä".repeat(200)));
        check(&json!("ä".repeat(201)), &json!(format!("{}… (1 more character)", "ä".repeat(200))));
        check(&json!({"k".repeat(201): 1}), &json!({format!("{}… (1 more character)", "k".repeat(200)): 1}));
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
            assert_eq!(truncate_pair(&json!(one), &json!(other)), (json!(expect[0]), json!(expect[1])));
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
            ["1", "2"].map(|first| format!("{first}{}… (101 more characters)", "y".repeat(199))),
        );
    }

    #[test]
    fn each_side_of_an_entry_is_shortened() {
        let check = |before: Option<Value>, after: Option<Value>, expect: [Option<Value>; 2]| {
            let entry = |before: Option<Value>, after: Option<Value>| {
                DiffEntry::from(FieldDiff {
                    change: FieldChange::Changed,
                    path: "a".to_owned(),
                    before,
                    after,
                })
            };
            let [shown_before, shown_after] = expect;
            assert_eq!(truncate_entries(vec![entry(before, after)]), [entry(shown_before, shown_after)]);
        };
        let (long, cut) = (json!("x".repeat(201)), json!(format!("{}… (1 more character)", "x".repeat(200))));
        check(None, None, [None, None]);
        check(Some(long.clone()), None, [Some(cut.clone()), None]);
        check(None, Some(long.clone()), [None, Some(cut.clone())]);
        check(Some(json!(1)), Some(long), [Some(json!(1)), Some(cut)]);
        // Only two strings are compared line by line: not an added or removed string, and not other values.
        check(Some(json!("a\nb")), None, [Some(json!("a\nb")), None]);
        check(Some(json!("a\nb")), Some(json!(1)), [Some(json!("a\nb")), Some(json!(1))]);
    }

    #[test]
    fn texts_of_several_lines_are_shown_line_by_line() {
        let check = |before: &str, after: &str, expect: &[&str]| {
            let (before, after) = (Some(json!(before)), Some(json!(after)));
            let field = FieldDiff { change: FieldChange::Changed, path: "a".to_owned(), before, after };
            let shown = truncate_entries(vec!["note".into(), field.into()]);
            assert_eq!(shown[0], "note".into());
            assert_eq!(shown[1..].iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
        };
        check("a\nb\n", "a\nc\n", &["~ a line 2: \"b\" → \"c\""]);
        check("a\nb", "[redacted]", &["~ a: \"a\\nb\" → \"[redacted]\""]);
        check("[redacted]", "a\nb", &["~ a: \"[redacted]\" → \"a\\nb\""]);
        check("a", "b\nc", &["~ a line 1: \"a\" → \"b\"", "+ a line 2: \"c\""]);
        check("a", "b", &["~ a: \"a\" → \"b\""]);
    }
}
