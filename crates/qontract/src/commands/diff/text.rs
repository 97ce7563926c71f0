//! A diff for people: plain, and as Markdown.

use std::sync::Arc;

use qontract_bundle::diff::{Change, Diff, FieldChange, ResourceChange, fields};
use qontract_bundle::{Document, Resource, Value, json};
use qontract_diagnostics::shown;

use super::Sides;

/// Longest value that is shown.
const LONGEST: usize = 100;

/// A file that differs, and a line for each of its differences.
struct Shown {
    sign: char,
    name: String,
    schema: Option<String>,
    lines: Vec<Line>,
}

struct Line {
    sign: char,
    pointer: String,
    text: String,
    place: String,
}

/// The diff as plain text.
pub fn plain(diff: &Diff, sides: &Sides<'_>) -> String {
    let mut out = String::new();
    for Shown { sign, name, schema, lines } in files(diff, sides) {
        let schema = schema.map(|schema| format!("  ({})", shown(&schema))).unwrap_or_default();
        out.push_str(&format!("{sign} {}{schema}\n", shown(&name)));
        for Line { sign, pointer, text, place } in lines {
            let pointer = if pointer.is_empty() { String::new() } else { format!("{}  ", shown(&pointer)) };
            out.push_str(&format!("    {sign} {pointer}{}  [{}]\n", shown(&text), shown(&place)));
        }
    }
    out.push_str(&summary(diff));
    out
}

/// The diff as Markdown.
pub fn markdown(diff: &Diff, sides: &Sides<'_>) -> String {
    let mut out = String::new();
    for Shown { sign, name, schema, lines } in files(diff, sides) {
        let schema = schema.map(|schema| format!(" {}", code(&schema))).unwrap_or_default();
        let word = match sign {
            '+' => "added",
            '-' => "removed",
            _ => "changed",
        };
        out.push_str(&format!("- **{word}** {}{schema}\n", code(&name)));
        for Line { sign, pointer, text, place } in lines {
            let pointer = if pointer.is_empty() { String::new() } else { format!("{} ", code(&pointer)) };
            out.push_str(&format!("  - {sign} {pointer}{} in {}\n", code(&text), code(&place)));
        }
    }
    if !diff.is_empty() {
        out.push('\n');
    }
    out.push_str(&summary(diff));
    out
}

/// A code span: its fence is longer than any run of backticks in the text.
fn code(text: &str) -> String {
    let text = shown(text);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let pad = if text.is_empty() || text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn summary(diff: &Diff) -> String {
    if diff.is_empty() {
        return "no difference\n".to_owned();
    }
    let mut counts = [0; 3];
    let documents = diff.datafiles.iter().chain(&diff.schemas).map(|file| kind(&file.change));
    let resources = diff.resources.iter().map(|file| kind(&file.change));
    for kind in documents.chain(resources).chain(diff.graphql.iter().map(kind)) {
        counts[kind] += 1;
    }
    let [changed, added, removed] = counts;
    format!("{changed} changed, {added} added, {removed} removed\n")
}

fn kind<T>(change: &Change<T>) -> usize {
    match change {
        Change::Changed(..) => 0,
        Change::Added(_) => 1,
        Change::Removed(_) => 2,
    }
}

fn sign<T>(change: &Change<T>) -> char {
    ['~', '+', '-'][kind(change)]
}

fn files(diff: &Diff, sides: &Sides<'_>) -> Vec<Shown> {
    let layout = sides.layout;
    let datafiles =
        diff.datafiles.iter().map(|file| document(layout.datafile(&file.path), &file.change, sides));
    let resources = diff.resources.iter().map(|change| resource(change, sides));
    let schemas = diff.schemas.iter().map(|file| document(layout.schema(&file.path), &file.change, sides));
    let types = diff.graphql.iter().map(|change| document(layout.graphql.clone(), change, sides));
    datafiles.chain(resources).chain(schemas).chain(types).collect()
}

fn document(name: String, change: &Change<Arc<Document>>, sides: &Sides<'_>) -> Shown {
    let mut lines = Vec::new();
    if let Change::Changed(old, new) = change {
        lines.extend(fields(&old.value, &new.value).iter().map(|field| line(&name, field, sides)));
        if lines.is_empty() {
            let text = "only comments or layout".to_owned();
            lines.push(Line { sign: '~', pointer: String::new(), text, place: name.clone() });
        }
    }
    Shown { sign: sign(change), schema: change.either().schema().map(str::to_owned), name, lines }
}

fn line(name: &str, field: &FieldChange<'_>, sides: &Sides<'_>) -> Line {
    let FieldChange { pointer, change } = field;
    let (text, side) = match change {
        Change::Added(new) => (value(new), &sides.head),
        Change::Removed(old) => (value(old), &sides.base),
        Change::Changed(old, new) => (format!("{} → {}", value(old), value(new)), &sides.head),
    };
    Line { sign: sign(change), pointer: pointer.clone(), text, place: side.place(name, pointer) }
}

fn value(value: &Value) -> String {
    let mut out = Vec::new();
    json::write_javascript(value, &mut out);
    let text = String::from_utf8_lossy(&out);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

fn resource(change: &ResourceChange, sides: &Sides<'_>) -> Shown {
    let name = sides.layout.resource(&change.path);
    let mut lines = Vec::new();
    if let Change::Changed(old, new) = &change.change {
        lines.push(content(&name, old, new));
    }
    Shown { sign: sign(&change.change), name, schema: None, lines }
}

/// How many lines of a resource differ, and from which one on.
fn content(name: &str, old: &Resource, new: &Resource) -> Line {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.content.lines().collect(), new.content.lines().collect());
    let front = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[front..], &new[front..]);
    let back = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let text = match (old.len() - back, new.len() - back) {
        (0, 0) => "only line ends".to_owned(),
        (gone, came) => format!("-{gone} +{came} lines"),
    };
    Line { sign: '~', pointer: String::new(), text, place: format!("{name}:{}", front + 1) }
}
