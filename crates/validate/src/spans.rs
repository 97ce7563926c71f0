//! Locates findings in source files. Only files with findings are parsed again.

use std::collections::BTreeMap;

use qontract_diagnostics::{Code, Diagnostic, DiagnosticLocation, Sources, Span, code};
use qontract_yaml::{Document, Limits, Node, Syntax, Value as Yaml, parse_as};

/// Codes of findings about the name of a field rather than its value.
const KEY_CODES: [Code; 5] =
    [code::UNKNOWN_FIELD, code::FIELD_NAME, code::UNKNOWN_KEYWORD, code::MISPLACED_SCHEMA, code::SCHEMA_FORM];

/// Sets the span of every finding that has a JSON pointer, where the source text is available.
pub fn locate(findings: &mut [Diagnostic], sources: &dyn Sources) {
    let mut files: BTreeMap<String, Vec<UnlocatedPlace<'_>>> = BTreeMap::new();
    for Diagnostic { code, location: place, notes, hint, .. } in findings {
        let others = notes.iter_mut().filter_map(|note| Some((note.location.as_mut()?, None)));
        for (place, hint) in std::iter::once((place, Some(hint))).chain(others) {
            if place.span.is_none() && place.pointer.is_some() {
                let unlocated = UnlocatedPlace { code: *code, place, hint };
                files.entry(unlocated.place.file.clone()).or_default().push(unlocated);
            }
        }
    }
    for (file, places) in files {
        let Some(text) = sources.text(&file) else { continue };
        let parsed = parse_as(Syntax::of(&file), text.as_bytes(), &Limits::default());
        let Some(document) = parsed.document else { continue };
        for UnlocatedPlace { code, place, hint } in places {
            let pointer = place.pointer.as_deref().unwrap_or_default();
            let span = span(&document, pointer, KEY_CODES.contains(&code));
            place.span = Some(span);
            let better = text.get(span.end as usize..).filter(|_| code == code::WRONG_TYPE);
            if let (Some(hint), Some(better)) = (hint, better.and_then(commented_out)) {
                *hint = Some(better);
            }
        }
    }
}

/// A location of a finding or note without a span.
struct UnlocatedPlace<'f> {
    code: Code,
    place: &'f mut DiagnosticLocation,
    /// The hint of the finding; `None` if the location belongs to a note.
    hint: Option<&'f mut Option<String>>,
}

/// The hint for a value that is a comment although a string was intended: `slack: #team`. `rest` is the
/// source after the key.
fn commented_out(rest: &str) -> Option<String> {
    let value = rest.lines().next()?.trim_start_matches(['"', '\'']).strip_prefix(':')?.trim();
    // A real comment has a space after the `#`.
    let is_value = value.strip_prefix('#')?.starts_with(char::is_alphanumeric);
    let is_plain = !value.contains(['"', '\\']);
    is_value.then(|| {
        let quoted = if is_plain { format!(": \"{value}\"") } else { String::new() };
        format!("`#` begins a comment; quote the value{quoted}")
    })
}

/// The span of a value. For a map or list, returns the span of its key, or of its first key, because a span
/// of many lines is not helpful.
fn span(document: &Document, pointer: &str, about_key: bool) -> Span {
    let located = document.root().locate(pointer);
    let is_collection = matches!(located.node.value(), Yaml::Map(_) | Yaml::List(_));
    match located.key_span {
        Some(key) if about_key || is_collection => key,
        _ if is_collection => first_key(located.node),
        // An empty value has no bytes, so the span of its key is used.
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
    fn a_value_that_is_a_comment_gets_a_hint_to_quote_it() {
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
