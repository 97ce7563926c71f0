//! Lines for findings: only the files that have findings are read again.

use std::collections::BTreeMap;

use qontract_diagnostics::{Code, Diagnostic, Place, Sources, Span, code};
use qontract_yaml::{Document, Limits, Node, Syntax, Value as Yaml, parse_as};

/// Findings about the name of a field rather than its value.
const ABOUT_KEYS: [Code; 5] =
    [code::UNKNOWN_FIELD, code::FIELD_NAME, code::UNKNOWN_KEYWORD, code::MISPLACED_SCHEMA, code::SCHEMA_FORM];

/// Gives every finding that tells a JSON pointer the bytes it is about, where the text can be had.
pub fn locate(findings: &mut [Diagnostic], sources: &dyn Sources) {
    let mut files: BTreeMap<String, Vec<Unlocated<'_>>> = BTreeMap::new();
    for Diagnostic { code, place, notes, hint, .. } in findings {
        let others = notes.iter_mut().filter_map(|note| Some((note.place.as_mut()?, None)));
        for (place, hint) in std::iter::once((place, Some(hint))).chain(others) {
            if place.span.is_none() && place.pointer.is_some() {
                let unlocated = Unlocated { code: *code, place, hint };
                files.entry(unlocated.place.file.clone()).or_default().push(unlocated);
            }
        }
    }
    for (file, places) in files {
        let Some(text) = sources.text(&file) else { continue };
        let parsed = parse_as(Syntax::of(&file), text.as_bytes(), &Limits::default());
        let Some(document) = parsed.document else { continue };
        for Unlocated { code, place, hint } in places {
            let pointer = place.pointer.as_deref().unwrap_or_default();
            let span = span(&document, pointer, ABOUT_KEYS.contains(&code));
            place.span = Some(span);
            let better = text.get(span.end as usize..).filter(|_| code == code::WRONG_TYPE);
            if let (Some(hint), Some(better)) = (hint, better.and_then(commented_out)) {
                *hint = Some(better);
            }
        }
    }
}

/// A place of a finding that has no bytes yet.
struct Unlocated<'f> {
    code: Code,
    place: &'f mut Place,
    /// The hint of the finding, if the place is its own and not a note's.
    hint: Option<&'f mut Option<String>>,
}

/// What to do about a value that is a comment: `slack: #team`, where text was meant. `rest` is what follows the key.
fn commented_out(rest: &str) -> Option<String> {
    let value = rest.lines().next()?.trim_start_matches(['"', '\'']).strip_prefix(':')?.trim();
    // A comment for people has a blank behind the sign.
    let is_value = value.strip_prefix('#')?.starts_with(char::is_alphanumeric);
    let is_plain = !value.contains(['"', '\\']);
    is_value.then(|| {
        let quoted = if is_plain { format!(": \"{value}\"") } else { String::new() };
        format!("`#` begins a comment; quote the value{quoted}")
    })
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

#[cfg(test)]
mod tests {
    use super::commented_out;

    #[test]
    fn a_value_behind_a_hash_is_to_be_quoted() {
        let check =
            |rest: &str, expect: Option<&str>| assert_eq!(commented_out(rest).as_deref(), expect, "{rest}");
        check(": #team\nb: c", Some("`#` begins a comment; quote the value: \"#team\""));
        check("\": #team", Some("`#` begins a comment; quote the value: \"#team\""));
        check(": #a \"b\"", Some("`#` begins a comment; quote the value"));
        for other in [": # team", ": ## team", ": #! team", ": #", ":\n#team", ": team", "", "#team"] {
            check(other, None);
        }
    }
}
