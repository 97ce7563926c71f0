//! Rule: every datafile names an existing schema, and conforms to it.

use qontract_bundle::{Sha256, Value};
use qontract_diagnostics::{Diagnostic, Severity, code, suggest};
use rayon::prelude::*;

use crate::Context;
use crate::display::show;
use crate::explain::FailureExplainer;
use crate::schema::CheckSession;

/// Number of files per parallel task.
const CHUNK: usize = 128;

/// The schema that the `$schema` of a document names.
pub enum NamedSchema<'a> {
    /// A schema of the bundle, by its path.
    Schema(String),
    /// There is no `$schema`.
    Missing,
    /// `$schema` is not a string.
    NotAString(&'a Value),
    /// `$schema` is a URL, which is never fetched.
    Address(&'a str),
    /// The bundle has no schema with this path.
    Unknown(String),
}

/// Finds the schema that a document names; a leading slash may be missing.
pub fn named_schema<'a>(cx: &Context<'_>, document: &'a Value) -> NamedSchema<'a> {
    let written = match document.get("$schema") {
        None => return NamedSchema::Missing,
        Some(Value::Str(written)) => written,
        Some(other) => return NamedSchema::NotAString(other),
    };
    if cx.bundle.schema(written).is_some() {
        return NamedSchema::Schema(written.to_string());
    }
    if written.starts_with("http") {
        return NamedSchema::Address(written);
    }
    let path = if written.starts_with('/') { written.to_string() } else { format!("/{written}") };
    if cx.bundle.schema(&path).is_some() { NamedSchema::Schema(path) } else { NamedSchema::Unknown(path) }
}

/// Checks all datafiles; also returns the digests of datafiles that conform to their schemas.
pub fn check(cx: &Context<'_>) -> (Vec<Diagnostic>, Vec<Sha256>) {
    let chunks = cx.bundle.datafiles().par_chunks(CHUNK).map_init(
        || cx.checker.session(),
        |series, files| {
            let (mut findings, mut right) = (Vec::new(), Vec::with_capacity(files.len()));
            for file in files {
                let digest = file.document.digest;
                let found = if cx.cache.conforms(digest) {
                    Vec::new()
                } else {
                    check_document(cx, series, &cx.layout.datafile(&file.path), &file.document.value)
                };
                if found.is_empty() {
                    right.push(digest);
                }
                findings.extend(found);
            }
            (findings, right)
        },
    );
    merge(chunks)
}

/// Merges findings and digests into one list each.
pub fn merge(
    parts: impl ParallelIterator<Item = (Vec<Diagnostic>, Vec<Sha256>)>,
) -> (Vec<Diagnostic>, Vec<Sha256>) {
    parts.reduce(Default::default, |mut all, (findings, right)| {
        all.0.extend(findings);
        all.1.extend(right);
        all
    })
}

/// Checks one document against the schema that it names.
pub fn check_document<'v>(
    cx: &Context<'_>,
    series: &mut CheckSession<'_, '_, 'v>,
    file: &str,
    root: &'v Value,
) -> Vec<Diagnostic> {
    let about = |code, message: String| Diagnostic::new(code, message).in_file(file);
    match named_schema(cx, root) {
        NamedSchema::Missing => {
            let finding = about(code::NO_SCHEMA, "the file has no `$schema`".to_owned()).at_pointer("");
            vec![finding.hint("begin the file with `$schema:` and the path of its schema")]
        }
        NamedSchema::NotAString(value) => {
            let message = format!("`$schema` is `{}`, not the path of a schema", show(value));
            vec![about(code::NO_SCHEMA, message).at_pointer("/$schema")]
        }
        NamedSchema::Unknown(_) if root.get("$schema").and_then(Value::as_str) == Some("") => {
            let finding = about(code::NO_SCHEMA, "`$schema` is empty".to_owned()).at_pointer("/$schema");
            vec![finding.hint("write the path of the file's schema")]
        }
        NamedSchema::Address(address) => {
            let finding = about(code::SCHEMA_ADDRESS, format!("`$schema` is a URL: `{address}`"));
            let finding = finding.at_pointer("/$schema").label("never fetched");
            vec![finding.hint("add the schema to the data repo, and name its path")]
        }
        // A schema that could not be read has its own finding.
        NamedSchema::Unknown(path) if cx.unread.contains(&cx.layout.schema(&path)) => Vec::new(),
        NamedSchema::Unknown(path) => vec![unknown_schema(cx, file, &path)],
        NamedSchema::Schema(path) => {
            let mut failures = series.check_value(&path, root).unwrap_or_default();
            let mut findings = Vec::new();
            if root.get("$schema").and_then(Value::as_str) != Some(&*path) {
                let finding = about(code::SCHEMA_WITHOUT_SLASH, "`$schema` has no leading slash".to_owned());
                let mut finding = finding.at_pointer("/$schema").hint(format!("write `{path}`"));
                // If the schema itself rejects the value, this is reported once, as an error.
                let before = failures.len();
                failures.retain(|failure| failure.pointer != "/$schema");
                if failures.len() < before {
                    finding.severity = Severity::Error;
                }
                findings.push(finding);
            }
            if !failures.is_empty() {
                findings.extend(FailureExplainer::new(cx.bundle, cx.layout, file, root).explain(failures));
            }
            findings
        }
    }
}

fn unknown_schema(cx: &Context<'_>, file: &str, path: &str) -> Diagnostic {
    let finding = Diagnostic::new(code::UNKNOWN_SCHEMA, format!("schema `{path}` not found"));
    let finding = finding.in_file(file).at_pointer("/$schema").label("no such schema file");
    let paths = cx.bundle.schemas().iter().map(|schema| &*schema.path);
    match suggest::nearest_path(path, paths) {
        Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
        None => finding.hint("name an existing schema, or add this one"),
    }
}
