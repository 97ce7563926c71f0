//! The model of a diff: the files that differ, and the lines of each file.

use std::sync::Arc;

use qontract_bundle::diff::{Change, Diff, FieldChange, Renames, fields, renames};
use qontract_bundle::{Document, Resource, Value, json};

use crate::line_diff::{DiffLine, diff, similarity};

use super::{DiffSides, SourceLocator};

/// The kind of difference of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// The content differs.
    Changed,
    /// The file exists only after the change.
    Added,
    /// The file exists only before the change.
    Removed,
    /// The file has a new name.
    Renamed,
}

/// A file that differs.
pub struct FileEntry {
    /// The kind of difference.
    pub(super) action: FileAction,
    /// The name after the change; for a removed file, the name before the change.
    pub(super) name: String,
    /// The name before the file was renamed.
    pub(super) old_name: Option<String>,
    /// The schema of a datafile.
    pub(super) schema: Option<String>,
    /// The differences, line by line.
    pub(super) lines: Vec<FileLine>,
}

/// One line about a file.
pub enum FileLine {
    /// A field: its sign, its JSON pointer, its values, and its location.
    Field { sign: char, pointer: String, values: Vec<String>, place: String },
    /// A remark about the file.
    Remark { text: String, place: String },
    /// A line of a resource, with its sign.
    Text { sign: char, text: String },
    /// The location of the lines that follow.
    Hunk { place: String },
}

/// The files that differ: datafiles, resources, schemas and types.
pub fn files(diff: &Diff, sides: &DiffSides<'_>) -> Vec<FileEntry> {
    let Renames { datafiles, resources } = renames(diff, similarity);
    let layout = sides.layout;
    let mut files = Vec::new();
    for file in &diff.datafiles {
        let name = layout.datafile(&file.path);
        match datafiles.partner(&file.path, &file.change) {
            None => files.push(document(name, &file.change, sides)),
            Some(None) => {}
            Some(Some(old)) => {
                let change = Change::Changed(Arc::clone(&old.thing), Arc::clone(file.change.either()));
                let mut entry = document(name, &change, sides);
                if old.thing.value == file.change.either().value {
                    entry.lines.clear();
                }
                files.push(renamed(entry, layout.datafile(&old.path)));
            }
        }
    }
    for file in &diff.resources {
        let name = layout.resource(&file.path);
        match resources.partner(&file.path, &file.change) {
            None => files.push(resource(name, &file.change)),
            Some(None) => {}
            Some(Some(old)) => {
                let change = Change::Changed(Arc::clone(&old.thing), Arc::clone(file.change.either()));
                let mut entry = resource(name, &change);
                if old.thing.content == file.change.either().content {
                    entry.lines.clear();
                }
                files.push(renamed(entry, layout.resource(&old.path)));
            }
        }
    }
    files.extend(diff.schemas.iter().map(|file| document(layout.schema(&file.path), &file.change, sides)));
    files.extend(diff.graphql.iter().map(|change| document(layout.graphql.clone(), change, sides)));
    files
}

fn renamed(entry: FileEntry, old_name: String) -> FileEntry {
    FileEntry { action: FileAction::Renamed, old_name: Some(old_name), ..entry }
}

fn action<T>(change: &Change<T>) -> FileAction {
    match change {
        Change::Changed(..) => FileAction::Changed,
        Change::Added(_) => FileAction::Added,
        Change::Removed(_) => FileAction::Removed,
    }
}

fn document(name: String, change: &Change<Arc<Document>>, sides: &DiffSides<'_>) -> FileEntry {
    let mut lines = Vec::new();
    match change {
        Change::Changed(old, new) => {
            lines.extend(
                fields(&old.value, &new.value).iter().map(|field| changed_field(&name, field, sides)),
            );
            if lines.is_empty() {
                lines.push(FileLine::Remark {
                    text: "only comments or layout".to_owned(),
                    place: name.clone(),
                });
            }
        }
        Change::Added(new) => top_level_fields(&name, '+', &new.value, &sides.head, &mut lines),
        Change::Removed(old) => top_level_fields(&name, '-', &old.value, &sides.base, &mut lines),
    }
    let schema = change.either().schema().map(str::to_owned);
    FileEntry { action: action(change), name, old_name: None, schema, lines }
}

/// Adds the top-level fields of a file that is added or removed.
fn top_level_fields(
    name: &str,
    sign: char,
    document: &Value,
    side: &SourceLocator<'_>,
    lines: &mut Vec<FileLine>,
) {
    let Value::Map(map) = document else { return };
    for (key, field) in map.iter() {
        // The schema is shown with the name, and the other omitted keys are derived from the file.
        if ["$schema", "$file_sha256sum", "__identifier"].contains(&key.as_str()) {
            continue;
        }
        let pointer = format!("/{}", key.as_str().replace('~', "~0").replace('/', "~1"));
        let place = side.locate(name, &pointer);
        lines.push(FileLine::Field { sign, pointer, values: vec![json_text(field)], place });
    }
}

fn changed_field(name: &str, field: &FieldChange<'_>, sides: &DiffSides<'_>) -> FileLine {
    let FieldChange { pointer, change } = field;
    let (sign, values, side) = match change {
        Change::Added(new) => ('+', vec![json_text(new)], &sides.head),
        Change::Removed(old) => ('-', vec![json_text(old)], &sides.base),
        Change::Changed(old, new) => ('~', vec![json_text(old), json_text(new)], &sides.head),
    };
    FileLine::Field { sign, pointer: pointer.clone(), values, place: side.locate(name, pointer) }
}

fn json_text(value: &Value) -> String {
    let mut out = Vec::new();
    json::write_javascript(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn resource(name: String, change: &Change<Arc<Resource>>) -> FileEntry {
    let text = |sign: char, text: &str| FileLine::Text { sign, text: text.to_owned() };
    let lines = match change {
        Change::Changed(old, new) => content(&name, &old.content, &new.content),
        Change::Added(new) => new.content.lines().map(|line| text('+', line)).collect(),
        Change::Removed(old) => old.content.lines().map(|line| text('-', line)).collect(),
    };
    FileEntry { action: action(change), name, old_name: None, schema: None, lines }
}

/// The lines of a resource that differ, with one line of context.
fn content(name: &str, old: &str, new: &str) -> Vec<FileLine> {
    let lines = diff(old, new, 1);
    if lines.is_empty() {
        return vec![FileLine::Remark { text: "only line endings".to_owned(), place: name.to_owned() }];
    }
    let line = |line: DiffLine<'_>| match line {
        DiffLine::Context(text) => FileLine::Text { sign: ' ', text: text.to_owned() },
        DiffLine::Removed(text) => FileLine::Text { sign: '-', text: text.to_owned() },
        DiffLine::Added(text) => FileLine::Text { sign: '+', text: text.to_owned() },
        DiffLine::At(number) => FileLine::Hunk { place: format!("{name}:{number}") },
    };
    lines.into_iter().map(line).collect()
}
