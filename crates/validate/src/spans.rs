//! Lines for findings: only the files that have findings are read again.

use std::collections::BTreeMap;

use qontract_diagnostics::{Code, Diagnostic, Place, Sources, Span, code};
use qontract_yaml::{Document, Limits, Node, Syntax, Value as Yaml, parse_as};

/// Findings about the name of a field rather than its value.
const ABOUT_KEYS: [Code; 5] =
    [code::UNKNOWN_FIELD, code::FIELD_NAME, code::UNKNOWN_KEYWORD, code::MISPLACED_SCHEMA, code::SCHEMA_FORM];

/// Gives every finding that tells a JSON pointer the bytes it is about, where the text can be had.
pub fn locate(findings: &mut [Diagnostic], sources: &dyn Sources) {
    let mut files: BTreeMap<String, Vec<(Code, &mut Place)>> = BTreeMap::new();
    for Diagnostic { code, place, notes, .. } in findings {
        let others = notes.iter_mut().filter_map(|note| note.place.as_mut());
        for place in std::iter::once(place).chain(others) {
            if place.span.is_none() && place.pointer.is_some() {
                files.entry(place.file.clone()).or_default().push((*code, place));
            }
        }
    }
    for (file, places) in files {
        let Some(text) = sources.text(&file) else { continue };
        let parsed = parse_as(Syntax::of(&file), text.as_bytes(), &Limits::default());
        let Some(document) = parsed.document else { continue };
        for (code, place) in places {
            let pointer = place.pointer.as_deref().unwrap_or_default();
            place.span = Some(span(&document, pointer, ABOUT_KEYS.contains(&code)));
        }
    }
}

/// The bytes of a value; of a map or list its key, or its first key: a frame of many lines shows nothing.
fn span(document: &Document, pointer: &str, about_key: bool) -> Span {
    let located = document.root().locate(pointer);
    let is_collection = matches!(located.node.value(), Yaml::Map(_) | Yaml::List(_));
    match located.key_span {
        Some(key) if about_key || is_collection => key,
        _ if is_collection => first_key(located.node),
        // A value that is not there has no bytes of its own.
        Some(key) if located.span.start == located.span.end => key,
        _ => located.span,
    }
}

fn first_key(node: Node<'_>) -> Span {
    let first = match node.value() {
        Yaml::Map(map) => map.iter().next().map(|entry| entry.key_span),
        Yaml::List(list) => list.get(0).map(Node::span),
        _ => None,
    };
    let start = node.span().start as usize;
    first.unwrap_or_else(|| Span::new(start, start + 1))
}
