//! Rules for the schemas themselves: schemas are well-formed, they conform to their metaschema, their
//! references resolve, and they contain nothing that is silently ignored.

use std::collections::BTreeSet;

use qontract_bundle::{Map, Value};
use qontract_diagnostics::{Code, Diagnostic, code, suggest};
use rayon::prelude::*;

use crate::Context;
use crate::explain::FailureExplainer;
use crate::failure::SchemaPlace;
use crate::keywords::{self, child_pointer};
use crate::pattern::PatternError;
use crate::schema::metaschema;
use crate::schema::ref_cycles::RefCycle;
use crate::schema::reference::{self, DRAFT, RefTarget, SchemaLocation};
use crate::tree;

/// Annotations: keywords that validation ignores.
const ANNOTATIONS: [&str; 5] = ["$comment", "deprecated", "externalDocumentation", "labels", "version"];

/// The metaschema that the `$schema` of a schema names.
pub enum Metaschema<'a> {
    /// There is no `$schema`.
    Missing,
    /// JSON Schema draft 6.
    Draft,
    /// A schema of the bundle.
    Schema(&'a str),
    /// The bundle has no schema with this path.
    Unknown(&'a str),
}

/// Finds the metaschema of a schema.
pub fn metaschema<'a>(cx: &Context<'_>, schema: &'a Value) -> Metaschema<'a> {
    match schema.get("$schema").and_then(Value::as_str) {
        None => Metaschema::Missing,
        Some(path) if cx.bundle.schema(path).is_some() => Metaschema::Schema(path),
        Some(address) if address.trim_end_matches('#') == DRAFT => Metaschema::Draft,
        Some(other) => Metaschema::Unknown(other),
    }
}

/// Checks all schemas.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let schemas = cx.bundle.schemas().par_iter();
    let mut findings: Vec<Diagnostic> = schemas
        .flat_map_iter(|schema| {
            SchemaFile { cx, path: &schema.path, root: &schema.document.value }.check_file()
        })
        .collect();
    findings.extend(cx.checker.ref_cycles().iter().map(|found| ref_cycle_finding(cx, found)));
    findings
}

/// The finding for a cycle of references that never descends into the value.
fn ref_cycle_finding(
    cx: &Context<'_>,
    RefCycle { place: SchemaPlace { file, pointer }, references }: &RefCycle,
) -> Diagnostic {
    let message = "`$ref` refers back to itself, so it constrains no value";
    let finding =
        Diagnostic::new(code::SCHEMA_REFERENCE, message).in_file(cx.layout.schema(file)).at_pointer(pointer);
    let finding = match references {
        1 => finding,
        _ => finding.note(format!("the cycle has {references} references")),
    };
    finding.hint("put the reference below `properties` or `items`, so that it applies to a part of the value")
}

struct SchemaFile<'a> {
    cx: &'a Context<'a>,
    path: &'a str,
    root: &'a Value,
}

impl SchemaFile<'_> {
    fn check_file(&self) -> Vec<Diagnostic> {
        if self.root.as_map().is_none() {
            let message = format!("the top level is {}, not a map", crate::display::kind_name(self.root));
            return vec![self.finding(code::NOT_A_MAP, "", message)];
        }
        let mut findings = self.check_keywords(self.root, "");
        findings.extend(self.check_metaschema(findings.is_empty()));
        let mut seen = BTreeSet::new();
        let mut inline = Vec::new();
        keywords::visit_schemas(self.root, &mut String::new(), &mut |map, pointer| {
            self.check_subschema(map, pointer, &mut findings);
            self.ignored_keywords(map, pointer, &mut findings);
            seen.insert(pointer.to_owned());
            if let Some(schema @ Value::Map(_)) = map.get("$schemaRef") {
                inline.push((schema, child_pointer(pointer, "$schemaRef")));
            }
        });
        // Inline `$schemaRef`s and targets of references may be in places where JSON Schema does not define
        // schemas.
        let referred =
            self.cx.checker.ref_targets(self.path).map(|place| (place.value, place.pointer.clone()));
        for (schema, start) in inline.into_iter().chain(referred) {
            if seen.contains(&start) {
                continue;
            }
            findings.extend(self.check_keywords(schema, &start));
            keywords::visit_schemas(schema, &mut start.clone(), &mut |map, pointer| {
                if seen.insert(pointer.to_owned()) {
                    self.check_subschema(map, pointer, &mut findings);
                }
                // The target of a reference may also be a map of schemas.
                if pointer != start {
                    self.ignored_keywords(map, pointer, &mut findings);
                }
            });
        }
        findings
    }

    /// Checks one schema, without its subschemas.
    fn check_subschema(&self, map: &Map, pointer: &str, findings: &mut Vec<Diagnostic>) {
        self.reference(map, pointer, findings);
        self.schema_ref(map, pointer, findings);
        self.patterns(map, pointer, findings);
        self.repeated_enum_values(map, pointer, findings);
    }

    fn finding(&self, code: Code, pointer: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, message).in_file(self.cx.layout.schema(self.path)).at_pointer(pointer)
    }

    /// Checks the keyword values of the schema at `start`, and of its subschemas.
    fn check_keywords(&self, schema: &Value, start: &str) -> Vec<Diagnostic> {
        let findings = metaschema::faults(schema).into_iter().map(|fault| {
            let keyword = fault.pointer.rsplit('/').next().unwrap_or_default();
            let message = format!("`{keyword}` {}", fault.message);
            let finding = self.finding(code::SCHEMA_FORM, &format!("{start}{}", fault.pointer), message);
            let written = schema.pointer(&fault.pointer).and_then(Value::as_str);
            match written.and_then(|written| suggest::nearest(written, fault.candidates.iter().copied())) {
                Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
                None => finding,
            }
        });
        findings.collect()
    }

    /// Checks the schema against its metaschema.
    fn check_metaschema(&self, well_formed: bool) -> Vec<Diagnostic> {
        match metaschema(self.cx, self.root) {
            // If the file could not be read, bundling reported it.
            _ if self.cx.unread.contains(&self.cx.layout.schema(self.path)) => Vec::new(),
            // A `$schema` that is not a string is reported by the keyword check.
            Metaschema::Missing if self.root.get("$schema").is_some() => Vec::new(),
            Metaschema::Unknown("") => {
                let finding = self.finding(code::UNKNOWN_METASCHEMA, "/$schema", "`$schema` is empty");
                vec![finding.hint("write `/metaschema-1.json`")]
            }
            Metaschema::Missing => {
                let finding = self.finding(code::SCHEMA_WITHOUT_SCHEMA, "", "the schema has no `$schema`");
                vec![finding.hint("add `$schema: /metaschema-1.json`")]
            }
            Metaschema::Unknown(named) => {
                let message = format!("metaschema `{named}` not found");
                let finding = self.finding(code::UNKNOWN_METASCHEMA, "/$schema", message);
                let paths = self.cx.bundle.schemas().iter().map(|schema| &*schema.path);
                vec![match suggest::nearest_path(named, paths) {
                    Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
                    None => finding.hint(format!("write `/metaschema-1.json` or `{DRAFT}`")),
                }]
            }
            Metaschema::Schema(path) if well_formed => {
                let failures = self.cx.checker.check(path, self.root).unwrap_or_default();
                let file = self.cx.layout.schema(self.path);
                let subject = FailureExplainer::new(self.cx.bundle, self.cx.layout, &file, self.root);
                subject.explain(failures)
            }
            Metaschema::Schema(_) | Metaschema::Draft => Vec::new(),
        }
    }

    fn reference(&self, map: &Map, pointer: &str, findings: &mut Vec<Diagnostic>) {
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let at = child_pointer(pointer, "$ref");
            let finding = match reference::resolve(self.cx.bundle, self.path, reference) {
                RefTarget::Schema(_) => None,
                RefTarget::NotASchema(SchemaLocation { file, pointer, value }) => {
                    let what = crate::display::kind_name(value);
                    let message = format!("`{pointer}` in `{file}` is {what}, not a schema");
                    Some(self.finding(code::SCHEMA_REFERENCE, &at, message))
                }
                RefTarget::External => {
                    let message = format!("`$ref` points outside the data repo, to `{reference}`");
                    Some(self.finding(code::SCHEMA_REFERENCE, &at, message).label("never fetched"))
                }
                RefTarget::NoFile(file) if self.cx.unread.contains(&self.cx.layout.schema(&file)) => None,
                RefTarget::NoFile(file) => {
                    let finding =
                        self.finding(code::SCHEMA_REFERENCE, &at, format!("schema `{file}` not found"));
                    Some(self.nearest_schema(finding, &file))
                }
                RefTarget::NoValue(file, place) => {
                    let message = format!("`{place}` does not exist in `{file}`");
                    let finding = self.finding(code::SCHEMA_REFERENCE, &at, message);
                    Some(self.nearest_place(finding, file, &place))
                }
            };
            findings.extend(finding);
        }
    }

    /// Checks `$schemaRef`, which constrains the target of a reference by the path of a schema or by an
    /// inline schema.
    fn schema_ref(&self, map: &Map, pointer: &str, findings: &mut Vec<Diagnostic>) {
        let at = child_pointer(pointer, "$schemaRef");
        match map.get("$schemaRef") {
            None | Some(Value::Map(_)) => {}
            Some(Value::Str(named)) => {
                let is_read = !self.cx.unread.contains(&self.cx.layout.schema(named));
                if self.cx.bundle.schema(named).is_none() && is_read {
                    let message =
                        format!("`$schemaRef` names `{named}`, which is not a schema: no file can match it");
                    let finding = self.finding(code::SCHEMA_REF_UNKNOWN, &at, message);
                    findings.push(self.nearest_schema(finding, named));
                }
            }
            Some(other) => {
                let what = crate::display::kind_name(other);
                let message = format!("`$schemaRef` is {what}, neither the path of a schema nor a schema");
                let finding = self.finding(code::SCHEMA_REF_UNKNOWN, &at, message);
                findings.push(finding.hint("write the path of the target's schema"));
            }
        }
    }

    fn nearest_schema(&self, finding: Diagnostic, path: &str) -> Diagnostic {
        let paths = self.cx.bundle.schemas().iter().map(|schema| &*schema.path);
        match suggest::nearest_path(path, paths) {
            Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
            None => finding,
        }
    }

    fn nearest_place(&self, finding: Diagnostic, file: &str, place: &str) -> Diagnostic {
        let Some((parent, name)) = place.rsplit_once('/') else { return finding };
        let document = self.cx.bundle.schema(file);
        let siblings = document.as_ref().and_then(|document| document.value.pointer(parent)?.as_map());
        let names = siblings.into_iter().flat_map(|map| map.iter().map(|(key, _)| key.as_str()));
        match suggest::nearest(name, names) {
            Some(meant) => finding.hint(format!("did you mean `{parent}/{meant}`?")),
            None => finding,
        }
    }

    fn patterns(&self, map: &Map, pointer: &str, findings: &mut Vec<Diagnostic>) {
        let mut check_pattern = |written: &str, at: String| {
            if let Some(bad) = self.cx.checker.bad_pattern(written) {
                let shown = crate::display::show(&Value::str(written));
                let finding = match bad {
                    PatternError::Invalid(why) => {
                        let message = format!("`{shown}` is not a regular expression");
                        self.finding(code::BAD_PATTERN, &at, message).note(why.as_str())
                    }
                    PatternError::TooLarge => {
                        let message = format!("the regular expression `{shown}` is too large");
                        self.finding(code::BAD_PATTERN, &at, message).hint("reduce the number of repetitions")
                    }
                };
                findings.push(finding);
            } else if let Some(why) = lint_pattern(written) {
                findings.push(self.finding(code::ODD_PATTERN, &at, why.0).hint(why.1));
            }
        };
        if let Some(written) = map.get("pattern").and_then(Value::as_str) {
            check_pattern(written, child_pointer(pointer, "pattern"));
        }
        let by_pattern = map.get("patternProperties").and_then(Value::as_map).into_iter().flat_map(Map::iter);
        for (written, _) in by_pattern {
            check_pattern(
                written.as_str(),
                child_pointer(&child_pointer(pointer, "patternProperties"), written.as_str()),
            );
        }
    }

    /// Reports unknown keywords, which are probably misspelt or one level too high.
    fn ignored_keywords(&self, map: &Map, pointer: &str, findings: &mut Vec<Diagnostic>) {
        let is_meta = pointer.is_empty() && matches!(metaschema(self.cx, self.root), Metaschema::Draft);
        for (key, value) in map.iter() {
            let word = key.as_str();
            if keywords::keyword_kind(word).is_some() || ANNOTATIONS.contains(&word) || is_meta {
                continue;
            }
            let at = child_pointer(pointer, word);
            let known = keywords::KEYWORDS.iter().map(|(known, _)| *known);
            if looks_like_schema(value) {
                let message =
                    format!("the schema of `{word}` is next to `properties`, not below it, and is ignored");
                let finding = self.finding(code::MISPLACED_SCHEMA, &at, message);
                findings.push(finding.hint("move the field one level down, under `properties`"));
            } else if let Some(meant) = suggest::nearest(word, known) {
                let message = format!("`{word}` is not a JSON Schema keyword, and is ignored");
                let finding = self.finding(code::UNKNOWN_KEYWORD, &at, message);
                findings.push(finding.hint(format!("did you mean `{meant}`?")));
            }
        }
    }

    fn repeated_enum_values(&self, map: &Map, pointer: &str, findings: &mut Vec<Diagnostic>) {
        let values = map.get("enum").and_then(Value::as_list).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for (index, value) in values.iter().enumerate().filter(|(_, value)| !seen.insert(tree::text(value))) {
            let at = child_pointer(&child_pointer(pointer, "enum"), &index.to_string());
            let message = format!("`{}` is listed twice", crate::display::show(value));
            findings.push(self.finding(code::REPEATED_ENUM, &at, message).hint("remove the duplicate"));
        }
    }
}

fn looks_like_schema(value: &Value) -> bool {
    const SCHEMA_KEYWORDS: [&str; 8] =
        ["$ref", "type", "properties", "items", "enum", "oneOf", "anyOf", "pattern"];
    value.as_map().is_some_and(|map| SCHEMA_KEYWORDS.iter().any(|word| map.get(word).is_some()))
}

/// The message and hint for a valid pattern that probably does not have the meaning that its author intended.
fn lint_pattern(pattern: &str) -> Option<(&'static str, &'static str)> {
    let mut class: Option<String> = None;
    let mut previous = None;
    let mut escaped = false;
    for character in pattern.chars() {
        if std::mem::take(&mut escaped) {
            previous = None;
            continue;
        }
        match (&mut class, character) {
            (_, '\\') => escaped = true,
            (None, '[') => class = Some(String::new()),
            (Some(inside), ']') if !inside.is_empty() => {
                // `[^Task|^Pipeline]`: words and a bar between brackets are matched letter by letter.
                let words = inside.split('|').map(|word| word.trim_start_matches('^'));
                let is_word = |word: &str| word.len() > 2 && word.chars().all(char::is_alphabetic);
                if inside.contains('|') && words.clone().count() > 1 && words.clone().all(is_word) {
                    let why = "each letter between `[` and `]` is matched separately";
                    return Some((
                        why,
                        "to match several words, write `(one|other)`; to exclude them, `(?!one|other)`",
                    ));
                }
                class = None;
            }
            (Some(inside), other) => inside.push(other),
            (None, '|') if matches!(previous, Some('|' | '(')) => {
                let why = "the pattern has an empty alternative, which matches everything";
                return Some((why, "remove one `|`"));
            }
            (None, ')') if previous == Some('|') => {
                return Some((
                    "the pattern has an empty alternative, which matches everything",
                    "remove the `|`, or write `(…)?`",
                ));
            }
            _ => {}
        }
        previous = (!escaped).then_some(character);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::lint_pattern;

    #[test]
    fn patterns_that_probably_mean_something_else_are_reported() {
        assert!(lint_pattern("[^Task|^Pipeline].+").is_some());
        assert!(lint_pattern("^(a||b)$").is_some());
        assert!(lint_pattern("^(a|b|)$").is_some());
        assert!(lint_pattern("^[a-z|]+$").is_none());
        assert!(lint_pattern(r"^(a|b)\||[|]$").is_none());
        assert!(lint_pattern("[^[:alpha:]_]").is_none());
    }
}
