//! Rule: unique values are unique, across all data or within their list.

use std::collections::{BTreeMap, HashMap};

use qontract_diagnostics::{Diagnostic, DiagnosticLocation, code};

use crate::display::all_of;
use crate::keywords;
use crate::links::{LinkKind, ListItem};
use crate::{Context, FileLinks};

/// A value that occurs more than once, with its locations, in the order of files.
pub struct RepeatedValue<'a> {
    /// The field.
    pub field: &'a str,
    /// The value, as JSON.
    pub value: &'a str,
    /// For each occurrence, the path of the datafile and the JSON pointer.
    pub places: Vec<(&'a str, &'a str)>,
}

/// Items of one list that have the same identifier.
pub struct DuplicateItems<'a> {
    /// The datafile.
    pub path: &'a str,
    /// The first of the items.
    pub item: &'a ListItem<'a>,
    /// For each item, its index and its JSON pointer.
    pub places: Vec<(usize, &'a str)>,
}

/// All values that are not unique, in the order of their first occurrence.
pub fn repeated_values<'a>(files: &'a [FileLinks<'a>]) -> Vec<RepeatedValue<'a>> {
    let mut known: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut groups: Vec<RepeatedValue<'a>> = Vec::new();
    for FileLinks { path, links } in files {
        for link in links {
            let LinkKind::Unique { type_name, field, value } = &link.kind else { continue };
            let place = (*path, link.pointer.as_str());
            let group = *known.entry((type_name, field, value)).or_insert_with(|| {
                groups.push(RepeatedValue { field, value, places: Vec::new() });
                groups.len() - 1
            });
            groups[group].places.push(place);
        }
    }
    groups.retain(|group| group.places.len() > 1);
    groups
}

/// All list items that share an identifier with another item of their list, in the order of files.
pub fn duplicate_items<'a>(
    files: &'a [FileLinks<'a>],
    include: impl Fn(&ListItem<'_>) -> bool,
) -> Vec<DuplicateItems<'a>> {
    let mut all = Vec::new();
    for FileLinks { path, links } in files {
        let mut known: BTreeMap<(&str, &str, &[&str]), usize> = BTreeMap::new();
        let mut groups: Vec<DuplicateItems<'a>> = Vec::new();
        for link in links {
            let LinkKind::Item(item) = &link.kind else { continue };
            if !include(item) {
                continue;
            }
            let group = *known.entry((&item.list, item.identifier, &item.fields)).or_insert_with(|| {
                groups.push(DuplicateItems { path, item, places: Vec::new() });
                groups.len() - 1
            });
            groups[group].places.push((item.index, link.pointer.as_str()));
        }
        all.extend(groups.into_iter().filter(|group| group.places.len() > 1));
    }
    all
}

/// Checks all unique values.
pub fn check(cx: &Context<'_>, files: &[FileLinks<'_>]) -> Vec<Diagnostic> {
    let everywhere = repeated_values(files).into_iter().map(|group| {
        let [(first, first_at), (second, second_at), rest @ ..] = group.places.as_slice() else {
            unreachable!("a group has at least two places")
        };
        let value = group.value.trim_matches('"');
        let message = format!("the value `{value}` of `{}` is used twice", group.field);
        let mut finding = Diagnostic::new(code::NOT_UNIQUE, message)
            .in_file(cx.layout.datafile(second))
            .at_pointer(*second_at)
            .label("must be unique across all data")
            .note_in("first used here", place(cx, first, first_at));
        for (path, at) in rest {
            finding = finding.note_in("also used here", place(cx, path, at));
        }
        finding
    });
    let in_lists = duplicate_items(files, |_| true).into_iter().map(|group| {
        let DuplicateItems { path, item, places } = group;
        let [(_, first), (_, second), rest @ ..] = places.as_slice() else {
            unreachable!("a group has at least two places")
        };
        let document = cx.bundle.datafile(path).map(|document| &document.value);
        let present = |at: &str| {
            let item = document.and_then(|document| document.pointer(at));
            let mut fields = group.item.fields.iter();
            fields.find(|field| item.is_some_and(|item| item.get(field).is_some())).copied()
        };
        let at =
            |at: &str| present(at).map_or_else(|| at.to_owned(), |field| keywords::child_pointer(at, field));
        let message = format!("two items of the list have the same {}", all_of(item.fields.iter()));
        let mut finding = Diagnostic::new(code::NOT_UNIQUE_IN_LIST, message)
            .in_file(cx.layout.datafile(path))
            .at_pointer(at(second))
            .note_in("first used here", place(cx, path, &at(first)));
        for (_, other) in rest {
            finding = finding.note_in("also used here", place(cx, path, &at(other)));
        }
        finding
    });
    everywhere.chain(in_lists).collect()
}

/// A location in a datafile.
fn place(cx: &Context<'_>, path: &str, pointer: &str) -> DiagnosticLocation {
    DiagnosticLocation { file: cx.layout.datafile(path), span: None, pointer: Some(pointer.to_owned()) }
}
