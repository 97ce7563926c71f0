//! Rule: every reference points to an existing file of the expected schema, and every named resource exists.

use qontract_bundle::Value;
use qontract_diagnostics::suggest::{self, ComparisonBudget};
use qontract_diagnostics::{Diagnostic, code};

use crate::display::show;
use crate::explain::FailureExplainer;
use crate::links::{DatafileReference, Link, LinkKind};
use crate::{Context, FileLinks};

/// Maximum number of path comparisons that are made to find suggestions.
const MAX_COMPARISONS: usize = 10_000_000;
/// Maximum number of notes about one target.
const MAX_TARGET_NOTES: usize = 5;

/// The reason why a reference is broken.
pub enum BrokenReference<'a> {
    /// The target does not exist.
    NotFound,
    /// The target has a schema other than the expected one. Holds the actual and the expected schema.
    OtherSchema(&'a str, &'a str),
    /// The target does not conform to the inline `$schemaRef`. Holds the failures, one line each.
    SchemaMismatch(Vec<String>),
}

/// Checks one reference.
pub fn check_reference<'b>(
    cx: &Context<'b>,
    reference: DatafileReference<'b>,
    within: &str,
) -> Option<BrokenReference<'b>> {
    let DatafileReference { target, expects, .. } = reference;
    let Some(target) = target else { return Some(BrokenReference::NotFound) };
    let schema = target.schema().filter(|schema| !schema.is_empty())?;
    match expects? {
        Value::Str(expected) if **expected == *schema => None,
        Value::Str(expected) => Some(BrokenReference::OtherSchema(schema, expected)),
        inline => {
            let failures = cx.checker.check_inline(within, inline, &target.value);
            if failures.is_empty() {
                return None;
            }
            let subject = FailureExplainer::new(cx.bundle, cx.layout, "", &target.value);
            let reported = subject.explain(failures).into_iter();
            Some(BrokenReference::SchemaMismatch(
                reported.map(|finding| message_with_pointer(&finding)).collect(),
            ))
        }
    }
}

/// The message of a finding, with its JSON pointer.
pub fn message_with_pointer(finding: &Diagnostic) -> String {
    match finding.location.pointer.as_deref().unwrap_or_default() {
        "" => finding.message.clone(),
        pointer => format!("{} at {pointer}", finding.message),
    }
}

/// Checks all references and resources.
pub fn check(cx: &Context<'_>, files: &[FileLinks<'_>]) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let budget = ComparisonBudget::new(MAX_COMPARISONS);
    for FileLinks { path, links } in files {
        let file = cx.layout.datafile(path);
        for link in links {
            let finding = match &link.kind {
                LinkKind::Reference(to) => reference_finding(cx, link, *to, &budget),
                LinkKind::Resource(resource) => missing_resource(cx, resource, &budget),
                LinkKind::Unique { .. } | LinkKind::Item(_) => None,
            };
            findings.extend(finding.map(|finding| finding.in_file(&file).at_pointer(&link.pointer)));
        }
    }
    findings
}

fn reference_finding<'b>(
    cx: &Context<'b>,
    link: &Link<'b>,
    reference: DatafileReference<'b>,
    budget: &ComparisonBudget,
) -> Option<Diagnostic> {
    let within = link.schema_path.unwrap_or_default();
    match check_reference(cx, reference, within)? {
        BrokenReference::NotFound => dangling(cx, reference.to, budget),
        BrokenReference::OtherSchema(found, expected) => {
            // A target whose schema is unknown has a separate finding.
            cx.bundle.schema(found)?;
            let message = format!("the reference points to a file of `{found}`, not of `{expected}`");
            let finding = Diagnostic::new(code::OTHER_SCHEMA, message);
            let of_kind =
                cx.bundle.datafiles().iter().filter(|file| file.document.schema() == Some(expected));
            let written = reference.to.as_str().unwrap_or_default();
            let paths = of_kind.map(|file| &*file.path);
            match budget.spend(cx.bundle.datafiles().len(), || suggest::nearest_path(written, paths)) {
                Some(meant) => Some(finding.hint(format!("did you mean `{meant}`?"))),
                None => Some(finding.hint(format!("name a file whose `$schema` is `{expected}`"))),
            }
        }
        BrokenReference::SchemaMismatch(why) => {
            let message = "the reference points to a file that does not match the expected schema".to_owned();
            let mut finding = Diagnostic::new(code::UNFIT_TARGET, message);
            for why in why.iter().take(MAX_TARGET_NOTES) {
                finding = finding.note(format!("in the target: {why}"));
            }
            if why.len() > MAX_TARGET_NOTES {
                finding = finding.note(format!("in the target: {} more", why.len() - MAX_TARGET_NOTES));
            }
            Some(finding.hint("name a file of the kind that the schema expects"))
        }
    }
}

fn dangling(cx: &Context<'_>, to: &Value, budget: &ComparisonBudget) -> Option<Diagnostic> {
    let Some(written) = to.as_str() else {
        let message = format!("`$ref` is `{}`, not the path of a datafile", show(to));
        return Some(Diagnostic::new(code::DANGLING_REFERENCE, message));
    };
    if cx.unread.contains(&cx.layout.datafile(written)) {
        return None;
    }
    let finding = Diagnostic::new(code::DANGLING_REFERENCE, "`$ref` points to nothing");
    let finding = finding.label("no such file in the bundle");
    let paths = cx.bundle.datafiles().iter().map(|file| &*file.path);
    let whole = format!("/{}", written.trim_start_matches('/'));
    let (whole, part) =
        whole.split_once(['#', '$']).map_or((whole.as_str(), false), |(path, _)| (path, true));
    if whole != written && cx.bundle.datafile(whole).is_some() {
        let hint = if part { "only whole files can be referenced" } else { "paths begin with a slash" };
        return Some(finding.hint(format!("{hint}: write `{whole}`")));
    }
    let folder = cx.layout.datafile("/");
    if let Some(inside) = whole.strip_prefix(&format!("/{}", folder.trim_end_matches('/')))
        && cx.bundle.datafile(inside).is_some()
    {
        return Some(finding.hint(format!("paths are relative to `{folder}`: write `{inside}`")));
    }
    Some(match budget.spend(paths.len(), || suggest::nearest_path(written, paths)) {
        Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
        None => finding.hint("write the path of a datafile, relative to the data directory"),
    })
}

fn missing_resource(cx: &Context<'_>, written: &str, budget: &ComparisonBudget) -> Option<Diagnostic> {
    if cx.bundle.resource(written).is_some() || cx.unread.contains(&cx.layout.resource(written)) {
        return None;
    }
    let finding = Diagnostic::new(code::MISSING_RESOURCE, format!("resource `{written}` not found"));
    let finding = finding.label("no such resource file");
    let paths = cx.bundle.resources().iter().map(|resource| &*resource.path);
    Some(match budget.spend(paths.len(), || suggest::nearest_path(written, paths)) {
        Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
        None => finding.hint(format!("add it as `{}`", cx.layout.resource(written))),
    })
}
