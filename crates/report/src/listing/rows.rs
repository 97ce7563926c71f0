//! The rows of a listing: filtered, sorted, and rendered as cells or values.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::kind::Kind;
use super::selection::{JSON_PREFIX, Selection};

/// The rows of a listing, and the file of each row.
pub struct Rows {
    rows: Vec<Row>,
}

/// A row, and the file of its object.
struct Row {
    value: Value,
    file: Option<String>,
}

impl Rows {
    /// The rows of a query result; `file` returns the file of the row with an index.
    pub fn read(values: Vec<Value>, file: &dyn Fn(usize) -> Option<String>) -> Self {
        Self {
            rows: values
                .into_iter()
                .enumerate()
                .map(|(index, value)| Row { value, file: file(index) })
                .collect(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Keeps the rows with this name. A path needs no filter here, because it was already part of the query.
    pub fn retain_named(&mut self, kind: &Kind<'_>, name: Option<&str>) {
        if let (Some(name), Some(title)) = (name, kind.name_field())
            && !name.starts_with('/')
        {
            self.retain_matching(title, name);
        }
    }

    /// The names of all rows.
    pub fn names(&self, kind: &Kind<'_>) -> Vec<String> {
        let title = kind.name_field().unwrap_or_default();
        self.rows.iter().flat_map(|row| cell_texts(&row.value[title])).collect()
    }

    /// Keeps rows whose field has this value, or a list that contains it.
    pub fn retain_matching(&mut self, field: &str, value: &str) {
        self.rows.retain(|row| cell_texts(&row.value[field]).iter().any(|text| text == value));
    }

    /// Sorts by a field: numbers as numbers, other values as text.
    pub fn sort(&mut self, field: &str) {
        self.rows.sort_by(|Row { value: a, .. }, Row { value: b, .. }| {
            match (a[field].as_f64(), b[field].as_f64()) {
                (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
                _ => cell_texts(&a[field]).cmp(&cell_texts(&b[field])),
            }
        });
    }

    /// The column names.
    pub fn header(selection: &Selection) -> Vec<String> {
        let names = selection.columns.iter().map(|name| match name.as_str() {
            "__typename" => "TYPE".to_owned(),
            name => name.to_uppercase(),
        });
        names.chain(["FILE".to_owned()]).collect()
    }

    /// The cells of each row.
    pub fn cells(&self, selection: &Selection) -> Vec<Vec<String>> {
        let cell = |value: &Value| match cell_texts(value) {
            texts if texts.is_empty() => "-".to_owned(),
            texts => texts.join(", "),
        };
        let row = |Row { value, file }: &Row| {
            let cells = selection.columns.iter().map(|name| cell(&value[name]));
            cells.chain([file.clone().unwrap_or_else(|| "-".to_owned())]).collect()
        };
        self.rows.iter().map(row).collect()
    }

    /// The rows as a list of values, without absent fields; a single value if `one` object was requested and
    /// it exists.
    pub fn values(&self, one: bool) -> Value {
        let value = |Row { value, file }: &Row| {
            let mut shown = decode_row(value);
            if let (Value::Object(map), Some(file)) = (&mut shown, file) {
                map.insert("$file".to_owned(), file.as_str().into());
            }
            shown
        };
        match (one, self.rows.as_slice()) {
            (true, [row]) => value(row),
            (_, rows) => Value::Array(rows.iter().map(value).collect()),
        }
    }
}

/// The strings that a cell shows for a value: one per element; for an object, the value of its only field.
fn cell_texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.lines().next().unwrap_or_default().to_owned()],
        Value::Array(items) => items.iter().flat_map(cell_texts).collect(),
        Value::Object(map) => map.values().flat_map(cell_texts).collect(),
        other => vec![other.to_string()],
    }
}

/// Restores the value as in the data: parses JSON strings, and removes key prefixes and nulls.
fn decode_row(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(decode_row).collect(),
        Value::Object(map) => {
            let mut shown = Map::new();
            for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                let (key, value) = match key.split_once(JSON_PREFIX) {
                    Some((_, key)) => (key, decode_json(value)),
                    None => (key.rsplit_once("__").map_or(key.as_str(), |(_, key)| key), decode_row(value)),
                };
                shown.insert(key.to_owned(), value);
            }
            Value::Object(shown)
        }
        other => other.clone(),
    }
}

fn decode_json(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        Value::Array(items) => items.iter().map(decode_json).collect(),
        other => other.clone(),
    }
}
