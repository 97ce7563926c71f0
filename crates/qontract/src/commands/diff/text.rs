//! A diff for people: plain, and as Markdown.

use qontract_bundle::diff::{Change, DatafileChange, Diff, FieldChange, ResourceChange, fields};
use qontract_bundle::{Resource, Value, json};

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
    for Shown { sign, name, schema, lines } in shown(diff, sides) {
        let schema = schema.map(|schema| format!("  ({schema})")).unwrap_or_default();
        out.push_str(&format!("{sign} {name}{schema}\n"));
        for Line { sign, pointer, text, place } in lines {
            let pointer = if pointer.is_empty() { String::new() } else { format!("{pointer}  ") };
            out.push_str(&format!("    {sign} {pointer}{text}  [{place}]\n"));
        }
    }
    out.push_str(&summary(diff));
    out
}

/// The diff as Markdown.
pub fn markdown(diff: &Diff, sides: &Sides<'_>) -> String {
    let mut out = String::new();
    for Shown { sign, name, schema, lines } in shown(diff, sides) {
        let schema = schema.map(|schema| format!(" ({schema})")).unwrap_or_default();
        let word = match sign {
            '+' => "added",
            '-' => "removed",
            _ => "changed",
        };
        out.push_str(&format!("- **{word}** `{name}`{schema}\n"));
        for Line { sign, pointer, text, place } in lines {
            let pointer = if pointer.is_empty() { String::new() } else { format!("`{pointer}` ") };
            // A code span may hold backticks if its fence is longer.
            let fence = if text.contains('`') { "``" } else { "`" };
            out.push_str(&format!("  - {sign} {pointer}{fence}{text}{fence} ({place})\n"));
        }
    }
    if !diff.is_empty() {
        out.push('\n');
    }
    out.push_str(&summary(diff));
    out
}

fn summary(diff: &Diff) -> String {
    if diff.is_empty() {
        return "no difference\n".to_owned();
    }
    let mut counts = [0; 3];
    let datafiles = diff.datafiles.iter().map(|file| kind(&file.change));
    for kind in datafiles.chain(diff.resources.iter().map(|file| kind(&file.change))) {
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

fn shown(diff: &Diff, sides: &Sides<'_>) -> Vec<Shown> {
    let datafiles = diff.datafiles.iter().map(|change| datafile(change, sides));
    let resources = diff.resources.iter().map(|change| resource(change, sides));
    datafiles.chain(resources).collect()
}

fn datafile(change: &DatafileChange, sides: &Sides<'_>) -> Shown {
    let name = format!("{}{}", sides.layout.data, change.path);
    let mut lines = Vec::new();
    if let Change::Changed(old, new) = &change.change {
        lines.extend(fields(&old.value, &new.value).iter().map(|field| line(&name, field, sides)));
        if lines.is_empty() {
            let text = "only comments or layout".to_owned();
            lines.push(Line { sign: '~', pointer: String::new(), text, place: name.clone() });
        }
    }
    Shown { sign: sign(&change.change), schema: change.schema().map(str::to_owned), name, lines }
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
    let name = format!("{}{}", sides.layout.resources, change.path);
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
