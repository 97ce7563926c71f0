//! Rule: templates parse. Only resources that an entry names as templates are checked, because other
//! resources may contain `{{` for other programs.

use qontract_bundle::{Backref, Resource, Value};
use qontract_diagnostics::{Diagnostic, Span, code, pluralize};
use qontract_template::{Dialect, Source, SyntaxError, check_syntax, entry_dialect};
use rayon::prelude::*;

use crate::Context;

/// The list of a datafile whose entries name templates.
const ENTRIES: &str = "openshiftResources";

/// Checks all templates.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let named = cx.bundle.resources().par_iter().filter(|resource| !resource.backrefs.is_empty());
    named
        .filter(|resource| has_tag(&resource.content))
        .filter_map(|resource| check_template(cx, resource))
        .collect()
}

/// Whether a text contains the start of a tag in either dialect.
fn has_tag(text: &str) -> bool {
    let next = |at: usize| text.as_bytes().get(at + 1);
    text.match_indices('{').any(|(at, _)| matches!(next(at), Some(b'{' | b'%' | b'#')))
}

/// The syntax error of a template, in the first dialect in which an entry renders it.
///
/// The template is parsed before the entries are looked up, because most templates are valid and entries are
/// in many files.
fn check_template(cx: &Context<'_>, resource: &Resource) -> Option<Diagnostic> {
    [Dialect::Jinja2, Dialect::ExtraCurly].into_iter().find_map(|dialect| {
        let error = check_syntax(&Source::new(&resource.path, &resource.content).dialect(dialect)).err()?;
        let rendering =
            |backref: &&Backref| entry(cx, backref).is_some_and(|entry| dialect_of(entry) == Some(dialect));
        let rendered: Vec<&Backref> = resource.backrefs.iter().filter(rendering).collect();
        let first = cx.layout.datafile(&rendered.first()?.path);
        let note = match rendered.len() - 1 {
            0 => format!("rendered for {first}"),
            more => format!(
                "rendered for {first} and {}",
                pluralize(more, "other entry").replace("entrys", "entries")
            ),
        };
        let file = cx.layout.resource(&resource.path);
        let finding = Diagnostic::new(code::TEMPLATE_SYNTAX, format!("template syntax: {}", error.message));
        Some(finding.at(span(&resource.content, &error)).in_file(file).note(note))
    })
}

/// The dialect in which an entry is rendered.
fn dialect_of(entry: &Value) -> Option<Dialect> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    entry_dialect(text("provider")?, text("type")).ok().flatten()
}

/// The entry of a back-reference: `openshiftResources.[6].path` belongs to the seventh entry.
fn entry<'b>(cx: &Context<'b>, backref: &Backref) -> Option<&'b Value> {
    let steps: Vec<&str> = backref.jsonpath.split('.').collect();
    let ([list, number, ..], true) = (&steps[..], steps.len() > 2) else { return None };
    if *list != ENTRIES {
        return None;
    }
    let number: usize = number.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
    let datafile = cx.bundle.datafile(&backref.path)?;
    datafile.value.get(ENTRIES)?.as_list()?.get(number)
}

/// The span of the character at which parsing failed.
fn span(text: &str, error: &SyntaxError) -> Span {
    let start = text.split_inclusive('\n').take(error.line - 1).map(str::len).sum::<usize>();
    let start = (start + error.column).min(text.len());
    let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let end = start + text[start..].chars().next().filter(|letter| *letter != '\n').map_or(0, char::len_utf8);
    Span::new(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_begins_with_two_characters() {
        for (text, expect) in [
            ("a {{ b", true),
            ("{%", true),
            ("x{#", true),
            ("{", false),
            ("{ {", false),
            ("{{", true),
            ("", false),
        ] {
            assert_eq!(has_tag(text), expect, "{text}");
        }
    }

    #[test]
    fn the_span_is_the_character_at_which_parsing_failed() {
        let check = |text: &str, line: usize, column: usize, expect: (usize, usize)| {
            let error = SyntaxError { line, column, message: String::new() };
            assert_eq!(span(text, &error), Span::new(expect.0, expect.1), "{text} {line} {column}");
        };
        check("ab\ncd", 2, 1, (4, 5));
        check("ab\r\ncd", 2, 0, (4, 5));
        check("é", 1, 1, (0, 2));
        check("ab\n", 1, 2, (2, 2));
        check("ab", 1, 9, (2, 2));
        check("", 1, 0, (0, 0));
    }
}
