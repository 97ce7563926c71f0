//! Reports templates and files of namespaces that certainly do not produce a Kubernetes object, judged by the
//! data alone.
//!
//! `plan` also reports such templates and files, for each object; this check reports them without a target system.
//! Runs do not depend on this check: a run reports an object that cannot be rendered and processes the other objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::Layout;
use qontract_client_kubernetes::is_well_known;
use qontract_diagnostics::suggest::nearest;
use qontract_diagnostics::{Diagnostic, DiagnosticLocation, Span, code};
use qontract_graphql::Engine;
use qontract_objects::resources::ProviderGroup;
use qontract_objects::resources::check::{
    ObjectErrorKind, ResourceTextError, TextErrorKind, UnmanagedKind, check_resources,
};
use qontract_runtime::{Data, LoadedBundle, QueryPolicy, SourceLocation as DataPlace};

use super::ValidatedData;

/// The schema of namespaces.
const NAMESPACE_SCHEMA: &str = "/openshift/namespace-1.yml";

/// Errors of templates and files. `found` contains earlier findings: errors in the files of these findings are not
/// reported, because they may be consequences.
pub fn check<'d>(data: &ValidatedData<'_>, found: impl Iterator<Item = &'d Diagnostic>) -> Vec<Diagnostic> {
    let wrong: BTreeSet<&str> =
        found.filter(|finding| finding.is_error()).map(|finding| finding.location.file.as_str()).collect();
    // Invalid GraphQL types are reported by another check.
    let ValidatedData { bundle, layout, schemas, .. } = *data;
    let engine = Engine::with_schemas(Arc::new(bundle.clone()), schemas);
    let Ok(engine) = engine else { return Vec::new() };
    let terms = QueryPolicy::of(&ProviderGroup::Files.meta(""));
    let data = Data::new(Arc::new(LoadedBundle::new(Arc::new(engine))), terms);
    // The GraphQL types of a data repo may lack namespaces, or define other fields for them.
    let namespaces = bundle.datafiles().iter().filter(|file| file.document.is_of(NAMESPACE_SCHEMA));
    let namespaces: Vec<&str> = namespaces.map(|file| &*file.path).collect();
    let wrong_resources = check_resources(&data, &namespaces).unwrap_or_default();
    let mut findings = Vec::new();
    for (error, entries) in wrong_resources.errors {
        let entries: Vec<DiagnosticLocation> = entries.iter().map(|place| located(place, layout)).collect();
        let file = layout.resource(&error.resource);
        let is_invalid = |file: &str| wrong.contains(file);
        if is_invalid(&file) || entries.iter().any(|entry| is_invalid(&entry.file)) {
            continue;
        }
        let text = bundle.resource(&error.resource).map(|resource| &*resource.content);
        findings.push(finding(&error, file, entries, text.unwrap_or_default()));
    }
    let mut misspelt = BTreeSet::new();
    for unmanaged in wrong_resources.unmanaged.into_values() {
        if let Some(one) = MisspeltKind::of(&unmanaged) {
            misspelt.insert(one);
            continue;
        }
        let at = located(&unmanaged.place, layout);
        if !wrong.contains(at.file.as_str()) {
            findings.push(unmanaged_finding(&unmanaged, at));
        }
    }
    for error in wrong_resources.objects {
        let at = located(&error.place, layout);
        if !wrong.contains(at.file.as_str()) {
            findings.push(Diagnostic { location: at, ..object_finding(error.kind, layout) });
        }
    }
    for MisspeltKind { list, managed, kind } in misspelt {
        let at = located(&list, layout);
        if !wrong.contains(at.file.as_str()) {
            let message = format!("`managedResourceTypes` names `{managed}`, and no object has this kind");
            let finding = Diagnostic::new(code::UNMANAGED_KIND, message);
            findings.push(Diagnostic { location: at, ..finding.hint(format!("did you mean `{kind}`?")) });
        }
    }
    findings
}

/// A misspelt kind in `managedResourceTypes`, which is the cause of an [`UnmanagedKind`].
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MisspeltKind {
    /// The location of the list in the namespace.
    list: DataPlace,
    managed: String,
    /// The intended kind.
    kind: String,
}

impl MisspeltKind {
    /// Finds the misspelt kind. Returns `None` unless the kind of the object is well known and the similar managed
    /// kind is not.
    fn of(unmanaged: &UnmanagedKind) -> Option<Self> {
        let UnmanagedKind { kind, managed, namespace, .. } = unmanaged;
        let managed = nearest(kind, managed.iter().map(String::as_str))?;
        if !is_well_known(kind) || managed.contains('.') || is_well_known(managed) {
            return None;
        }
        let list = DataPlace::datafile(&namespace.as_ref()?.path, "/managedResourceTypes");
        Some(Self { list, managed: managed.to_owned(), kind: kind.clone() })
    }
}

fn unmanaged_finding(unmanaged: &UnmanagedKind, at: DiagnosticLocation) -> Diagnostic {
    let UnmanagedKind { kind, managed, .. } = unmanaged;
    let hint = match nearest(kind, managed.iter().map(String::as_str)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("add `{kind}` to `managedResourceTypes`"),
    };
    let message = format!("the namespace does not manage the kind `{kind}` of this object");
    let mut diagnostic = Diagnostic::new(code::UNMANAGED_KIND, message).hint(hint);
    diagnostic.location = at;
    diagnostic
}

fn object_finding(error: ObjectErrorKind, layout: &Layout) -> Diagnostic {
    match error {
        ObjectErrorKind::Duplicate { object, other } => {
            let message = format!("another entry of the namespace declares {object}, too");
            let finding = Diagnostic::new(code::DUPLICATE_OBJECT, message);
            let finding = finding.note_in("the other entry", located(&other, layout));
            finding.hint("keep one of the entries, or correct a name")
        }
        ObjectErrorKind::Name(message) => {
            let hint = "use lowercase letters, digits, `-` and `.`";
            Diagnostic::new(code::OBJECT_NAME, message).hint(hint)
        }
        ObjectErrorKind::Value(message) => {
            Diagnostic::new(code::OBJECT_VALUE, message).hint("quote the value")
        }
    }
}

/// Converts a location in the data to the location of a diagnostic.
fn located(place: &DataPlace, layout: &Layout) -> DiagnosticLocation {
    let file = if place.resource { layout.resource(&place.path) } else { layout.datafile(&place.path) };
    DiagnosticLocation { file, span: None, pointer: Some(place.pointer.to_string()) }
}

fn finding(
    error: &ResourceTextError,
    file: String,
    entries: Vec<DiagnosticLocation>,
    text: &str,
) -> Diagnostic {
    let ResourceTextError { resource, line, kind: problem, message } = error;
    let rest = message.strip_prefix(&format!("`{resource}` is not an object")).unwrap_or(message);
    let (diagnostic, hint) = match problem {
        TextErrorKind::NotRendered => (
            Diagnostic::new(code::TEMPLATE_FAILS, format!("the template cannot be rendered: {message}")),
            "define it in `variables` of the entry, or correct the template",
        ),
        TextErrorKind::OutputNotAnObject => (
            Diagnostic::new(
                code::NOT_AN_OBJECT,
                format!("the output of the template is not a Kubernetes object{rest}"),
            ),
            "lines are those of the rendered text",
        ),
        TextErrorKind::FileNotAnObject => (
            Diagnostic::new(code::NOT_AN_OBJECT, format!("the file is not a Kubernetes object{rest}")),
            "if it is a template, use `provider: resource-template`",
        ),
    };
    let diagnostic = diagnostic.in_file(file).hint(hint);
    let diagnostic = match line {
        Some(line) => diagnostic.at(line_span(text, *line)),
        None => diagnostic,
    };
    let more = entries.len().saturating_sub(1);
    let Some(first) = entries.into_iter().next() else { return diagnostic };
    let used = match more {
        0 => "used by this entry".to_owned(),
        1 => "used by this entry and 1 other".to_owned(),
        more => format!("used by this entry and {more} others"),
    };
    diagnostic.note_in(used, first)
}

/// The span of a line, counted from 1, without leading and trailing white space.
fn line_span(text: &str, line: usize) -> Span {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let whole = text[start..].lines().next().unwrap_or_default();
    let start = start + (whole.len() - whole.trim_start().len());
    Span::new(start, start + whole.trim().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_marked_without_its_blanks() {
        let check = |text: &str, line: usize, expect: &str| {
            assert_eq!(&text[line_span(text, line).range()], expect, "{text} {line}");
        };
        check("a: 1\n  b: 2 \nc", 1, "a: 1");
        check("a: 1\n  b: 2 \nc", 2, "b: 2");
        check("a: 1\n  b: 2 \nc", 3, "c");
        check("a: 1\n", 2, "");
        check("a: 1\n", 9, "");
        check("", 1, "");
    }
}
