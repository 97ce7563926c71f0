//! Parses the YAML and JSON files of a data repo, and reports files that cannot be parsed.

use qontract_diagnostics::{Diagnostic, Severity, Span, code};
use qontract_yaml::{Document, Limits, ParsedYaml, Syntax, Value as Yaml};

use crate::digest::Sha256;
use crate::json;
use crate::repo::{self, FileReadError, MAX_FILE_BYTES, RepoFile};

/// Reads and parses a YAML file. `None` if it is empty or has an error.
pub(super) fn parse(file: &RepoFile, findings: &mut Vec<Diagnostic>) -> Option<(Document, Sha256)> {
    match file.read() {
        Ok(bytes) => Some((parse_bytes(file, &bytes, findings)?, Sha256::of(&bytes))),
        Err(unread) => {
            findings.push(read_error_finding(file, &unread));
            None
        }
    }
}

pub(super) fn read_error_finding(file: &RepoFile, unread: &FileReadError) -> Diagnostic {
    match unread {
        FileReadError::TooLarge(size) => {
            let message = format!("the file has {size} bytes, more than the {MAX_FILE_BYTES} allowed");
            Diagnostic::new(code::YAML_SIZE, message).in_file(&file.name)
        }
        FileReadError::Failed(error) => repo::unreadable(&file.name, &error.to_string()),
    }
}

/// Parses the bytes of a YAML file. `None` if it is empty or has an error.
pub(super) fn parse_bytes(file: &RepoFile, bytes: &[u8], findings: &mut Vec<Diagnostic>) -> Option<Document> {
    let parsed = parse_as_named(file, bytes);
    let empty = match &parsed.document {
        Some(document) => document.root().value() == Yaml::Null,
        None => !parsed.findings.iter().any(Diagnostic::is_error),
    };
    findings.extend(parsed.findings.into_iter().map(|finding| finding.in_file(&file.name)));
    if empty {
        let mut finding =
            Diagnostic::new(code::EMPTY_FILE, "the file is empty and is left out").in_file(&file.name);
        // qontract-bundler omits empty files, and bundles must be equal. Validation reports an empty file as
        // an error.
        finding.severity = Severity::Warning;
        findings.push(finding);
        return None;
    }
    parsed.document
}

/// Parses YAML, or strict JSON if the file name ends in `.json`.
fn parse_as_named(file: &RepoFile, bytes: &[u8]) -> ParsedYaml {
    let syntax = Syntax::of(&file.path);
    if syntax == Syntax::Json
        && let text = str::from_utf8(bytes).unwrap_or_default()
        && !text.trim().is_empty()
        && let Err(fault) = json::JsonParser::new(text).parse()
    {
        let finding = Diagnostic::new(code::YAML_SYNTAX, format!("the file is not JSON: {}", fault.message));
        let finding = finding.at(Span::new(fault.offset, fault.offset + 1));
        return ParsedYaml { document: None, findings: vec![finding] };
    }
    qontract_yaml::parse_as(syntax, bytes, &Limits::default())
}

/// Reports a document whose top level is not a map.
pub(super) fn not_a_map(file: &RepoFile, document: &Document) -> Diagnostic {
    let what = match document.root().value() {
        Yaml::List(_) => "a list",
        Yaml::Map(_) => "a map",
        _ => "a single value",
    };
    let start = document.root().span().start as usize;
    Diagnostic::new(code::NOT_A_MAP, format!("the top level is {what}, not a map"))
        .at(Span::new(start, start + 1))
        .in_file(&file.name)
}

/// Whether a file is a datafile or schema, judged by its name. Reports a name that is nearly valid.
pub(super) fn is_document(file: &RepoFile, findings: &mut Vec<Diagnostic>) -> bool {
    let Some(ending) = repo::document_ending(&file.path) else { return false };
    if ending == ending.to_ascii_lowercase() {
        return true;
    }
    let message = format!("files that end in `.{ending}` are left out");
    let finding = Diagnostic::new(code::NAME_IGNORED, message).in_file(&file.name);
    findings.push(finding.hint(format!("rename it to end in `.{}`", ending.to_ascii_lowercase())));
    false
}
