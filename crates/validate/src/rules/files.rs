//! Rule: every datafile names an existing schema, and conforms to it.

use qontract_bundle::{Sha256, Value};
use qontract_diagnostics::{Diagnostic, Severity, code, suggest};
use rayon::prelude::*;

use crate::Context;
use crate::explain::Subject;
use crate::schema::Series;
use crate::words::show;

/// Number of files per parallel task.
const CHUNK: usize = 128;

/// The schema that the `$schema` of a document names.
pub enum Named<'a> {
    /// A schema of the bundle, by its path.
    Schema(String),
    /// There is no `$schema`.
    Missing,
    /// `$schema` is not a string.
    NotText(&'a Value),
    /// `$schema` is a URL, which is never fetched.
    Address(&'a str),
    /// The bundle has no schema with this path.
    Unknown(String),
}

/// Finds the schema that a document names; a leading slash may be missing.
pub fn named<'a>(cx: &Context<'_>, document: &'a Value) -> Named<'a> {
    let written = match document.get("$schema") {
        None => return Named::Missing,
        Some(Value::Str(written)) => written,
        Some(other) => return Named::NotText(other),
    };
    if cx.bundle.schema(written).is_some() {
        return Named::Schema(written.to_string());
    }
    if written.starts_with("http") {
        return Named::Address(written);
    }
    let path = if written.starts_with('/') { written.to_string() } else { format!("/{written}") };
    if cx.bundle.schema(&path).is_some() { Named::Schema(path) } else { Named::Unknown(path) }
}

/// Checks all datafiles; also returns the digests of those that conform to their schemas.
pub fn check(cx: &Context<'_>) -> (Vec<Diagnostic>, Vec<Sha256>) {
    let chunks = cx.bundle.datafiles().par_chunks(CHUNK).map_init(
        || cx.checker.series(),
        |series, files| {
            let (mut findings, mut right) = (Vec::new(), Vec::with_capacity(files.len()));
            for file in files {
                let digest = file.document.digest;
                let found = if cx.known.fits(digest) {
                    Vec::new()
                } else {
                    document(cx, series, &cx.layout.datafile(&file.path), &file.document.value)
                };
                if found.is_empty() {
                    right.push(digest);
                }
                findings.extend(found);
            }
            (findings, right)
        },
    );
    together(chunks)
}

/// Merges findings and digests into one list each.
pub fn together(
    parts: impl ParallelIterator<Item = (Vec<Diagnostic>, Vec<Sha256>)>,
) -> (Vec<Diagnostic>, Vec<Sha256>) {
    parts.reduce(Default::default, |mut all, (findings, right)| {
        all.0.extend(findings);
        all.1.extend(right);
        all
    })
}

/// Checks one document against the schema that it names.
pub fn document<'v>(
    cx: &Context<'_>,
    series: &mut Series<'_, '_, 'v>,
    file: &str,
    root: &'v Value,
) -> Vec<Diagnostic> {
    let about = |code, message: String| Diagnostic::new(code, message).in_file(file);
    match named(cx, root) {
        Named::Missing => {
            let finding = about(code::NO_SCHEMA, "the file has no `$schema`".to_owned()).about("");
            vec![finding.hint("begin the file with `$schema:` and the path of its schema")]
        }
        Named::NotText(value) => {
            let message = format!("`$schema` is `{}`, not the path of a schema", show(value));
            vec![about(code::NO_SCHEMA, message).about("/$schema")]
        }
        Named::Unknown(_) if root.get("$schema").and_then(Value::as_str) == Some("") => {
            let finding = about(code::NO_SCHEMA, "`$schema` is empty".to_owned()).about("/$schema");
            vec![finding.hint("write the path of the file's schema")]
        }
        Named::Address(address) => {
            let finding = about(code::SCHEMA_ADDRESS, format!("`$schema` is an address: `{address}`"));
            let finding = finding.about("/$schema").label("never fetched");
            vec![finding.hint("add the schema to the data repo, and name its path")]
        }
        // A schema that could not be read has its own finding.
        Named::Unknown(path) if cx.unread.contains(&cx.layout.schema(&path)) => Vec::new(),
        Named::Unknown(path) => vec![unknown(cx, file, &path)],
        Named::Schema(path) => {
            let mut failures = series.check(&path, root).unwrap_or_default();
            let mut findings = Vec::new();
            if root.get("$schema").and_then(Value::as_str) != Some(&*path) {
                let finding = about(code::SCHEMA_WITHOUT_SLASH, "`$schema` has no leading slash".to_owned());
                let mut finding = finding.about("/$schema").hint(format!("write `{path}`"));
                // If the schema itself rejects the value, report that once, as an error.
                let before = failures.len();
                failures.retain(|failure| failure.pointer != "/$schema");
                if failures.len() < before {
                    finding.severity = Severity::Error;
                }
                findings.push(finding);
            }
            if !failures.is_empty() {
                findings.extend(Subject::new(cx.bundle, cx.layout, file, root).explain(failures));
            }
            findings
        }
    }
}

fn unknown(cx: &Context<'_>, file: &str, path: &str) -> Diagnostic {
    let finding = Diagnostic::new(code::UNKNOWN_SCHEMA, format!("there is no schema `{path}`"));
    let finding = finding.in_file(file).about("/$schema").label("no such schema file");
    let paths = cx.bundle.schemas().iter().map(|schema| &*schema.path);
    match suggest::nearest_path(path, paths) {
        Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
        None => finding.hint("name an existing schema, or add this one"),
    }
}
