//! Compares two documents field by field.

use std::collections::HashMap;

use super::Change;
use crate::value::{Map, Value};

/// A value that differs.
#[derive(Clone, Debug)]
pub struct FieldChange<'a> {
    /// JSON pointer: in the new document, or in the old one for a removed value.
    pub pointer: String,
    /// The change.
    pub change: Change<&'a Value>,
}

/// Fields that bundling adds, derived from the other fields.
const DERIVED_FIELDS: [&str; 2] = ["$file_sha256sum", "__identifier"];

/// Every field that differs between two documents, in document order.
///
/// List items are paired by identity (their identifier, the datafile they refer to, their name, or their own
/// value), so that a new first item does not change all others. If paired items changed their order, the list
/// is compared by position.
pub fn fields<'a>(old: &'a Value, new: &'a Value) -> Vec<FieldChange<'a>> {
    let mut comparison = Comparison { pointer: String::new(), changes: Vec::new() };
    comparison.values(old, new);
    comparison.changes
}

struct Comparison<'a> {
    pointer: String,
    changes: Vec<FieldChange<'a>>,
}

impl<'a> Comparison<'a> {
    fn values(&mut self, old: &'a Value, new: &'a Value) {
        match (old, new) {
            (Value::Map(old), Value::Map(new)) => self.maps(old, new),
            (Value::List(old), Value::List(new)) => self.lists(old, new),
            _ if old == new => {}
            _ => self.push(Change::Changed(old, new)),
        }
    }

    fn maps(&mut self, old: &'a Map, new: &'a Map) {
        let mut keys: Vec<&str> = old.iter().chain(new.iter()).map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys.into_iter().filter(|key| !DERIVED_FIELDS.contains(key)) {
            let step = key.replace('~', "~0").replace('/', "~1");
            self.with_step(&step, |comparison| comparison.optional_values(old.get(key), new.get(key)));
        }
    }

    fn lists(&mut self, old: &'a [Value], new: &'a [Value]) {
        if old == new {
            return;
        }
        let partners = pair(old, new);
        let mut paired = vec![false; old.len()];
        for partner in partners.iter().flatten() {
            paired[*partner] = true;
        }
        for index in 0..old.len().max(new.len()) {
            self.with_step(&index.to_string(), |comparison| {
                if paired.get(index) == Some(&false) {
                    comparison.push(Change::Removed(&old[index]));
                }
                match partners.get(index) {
                    Some(Some(partner)) => comparison.values(&old[*partner], &new[index]),
                    Some(None) => comparison.push(Change::Added(&new[index])),
                    None => {}
                }
            });
        }
    }

    fn optional_values(&mut self, old: Option<&'a Value>, new: Option<&'a Value>) {
        match (old, new) {
            (Some(old), Some(new)) => self.values(old, new),
            (Some(old), None) => self.push(Change::Removed(old)),
            (None, Some(new)) => self.push(Change::Added(new)),
            (None, None) => {}
        }
    }

    fn with_step(&mut self, step: &str, compare: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(step);
        compare(self);
        self.pointer.truncate(length);
    }

    fn push(&mut self, change: Change<&'a Value>) {
        self.changes.push(FieldChange { pointer: self.pointer.clone(), change });
    }
}

/// For each new item, the index of the corresponding old item, if any. The indexes are ascending.
fn pair(old: &[Value], new: &[Value]) -> Vec<Option<usize>> {
    let mut by_identity: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, value) in old.iter().enumerate().rev() {
        by_identity.entry(identity(value)).or_default().push(index);
    }
    let mut partners: Vec<Option<usize>> =
        new.iter().map(|value| by_identity.get_mut(&identity(value)).and_then(Vec::pop)).collect();
    if !partners.iter().flatten().is_sorted() {
        return (0..new.len()).map(|index| (index < old.len()).then_some(index)).collect();
    }
    // Maps without an identity at the same position in both lists are the same item, changed.
    let mut taken = vec![false; old.len()];
    for partner in partners.iter().flatten() {
        taken[*partner] = true;
    }
    for index in 0..new.len().min(old.len()) {
        let nested = matches!(
            (&old[index], &new[index]),
            (Value::Map(_), Value::Map(_)) | (Value::List(_), Value::List(_))
        );
        if nested && partners[index].is_none() && !taken[index] {
            partners[index] = Some(index);
        }
    }
    partners
}

/// The identity of a list item within its list.
fn identity(value: &Value) -> String {
    for key in ["__identifier", "$ref", "name"] {
        if let Some(text) = value.get(key).and_then(Value::as_str) {
            return format!("{key} {text}");
        }
    }
    let mut text = Vec::new();
    crate::json::write_python(value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonParser;

    fn check(old: &str, new: &str, expect: &[&str]) {
        let read = |text: &str| JsonParser::new(text).parse().expect("JSON");
        let (old, new) = (read(old), read(new));
        let shown = |value: &Value| {
            let mut text = Vec::new();
            crate::json::write_python(value, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        let found: Vec<String> = fields(&old, &new)
            .into_iter()
            .map(|FieldChange { pointer, change }| match change {
                Change::Added(new) => format!("+ {pointer} {}", shown(new)),
                Change::Removed(old) => format!("- {pointer} {}", shown(old)),
                Change::Changed(old, new) => format!("~ {pointer} {} {}", shown(old), shown(new)),
            })
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn fields_are_named_by_pointers() {
        check(
            r#"{"a/b":1,"c":{"d":2},"e":3}"#,
            r#"{"a/b":2,"c":{"f":2}}"#,
            &["~ /a~1b 1 2", "- /c/d 2", "+ /c/f 2", "- /e 3"],
        );
    }

    #[test]
    fn a_removed_item_changes_no_other_item() {
        check(
            r#"[{"$ref":"/a"},{"$ref":"/b"},{"$ref":"/c"}]"#,
            r#"[{"$ref":"/a"},{"$ref":"/c"}]"#,
            &[r#"- /1 {"$ref":"/b"}"#],
        );
        check(r#"["x","y"]"#, r#"["w","x","y"]"#, &[r#"+ /0 "w""#]);
    }

    #[test]
    fn items_are_paired_by_name() {
        check(
            r#"[{"name":"a","n":1},{"name":"b","n":2}]"#,
            r#"[{"name":"new","n":0},{"name":"a","n":1},{"name":"b","n":3}]"#,
            &[r#"+ /0 {"n":0,"name":"new"}"#, "~ /2/n 2 3"],
        );
    }

    #[test]
    fn a_reordered_list_is_compared_by_position() {
        check("[1,2,3]", "[3,1,2]", &["~ /0 1 3", "~ /1 2 1", "~ /2 3 2"]);
        check(
            r#"[{"name":"a","n":1},{"name":"b","n":2}]"#,
            r#"[{"name":"b","n":3},{"name":"a","n":9}]"#,
            &["~ /0/n 1 3", r#"~ /0/name "a" "b""#, "~ /1/n 2 9", r#"~ /1/name "b" "a""#],
        );
    }

    #[test]
    fn a_long_list_of_changed_texts_is_compared_in_linear_time() {
        let list = |word: &str| {
            format!("[{}]", (0..60_000).map(|n| format!("\"{word}{n}\"")).collect::<Vec<_>>().join(","))
        };
        let read = |text: String| JsonParser::new(&text).parse().expect("JSON");
        let (old, new) = (read(list("a")), read(list("b")));
        assert_eq!(fields(&old, &new).len(), 120_000);
    }

    #[test]
    fn fields_that_bundling_adds_are_not_changes() {
        check(r#"{"$file_sha256sum":"a","x":1}"#, r#"{"$file_sha256sum":"b","x":1}"#, &[]);
    }

    #[test]
    fn an_integer_and_a_float_differ() {
        check(r#"{"x":1}"#, r#"{"x":1.0}"#, &["~ /x 1 1.0"]);
    }
}
