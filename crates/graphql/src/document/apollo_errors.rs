//! Converts errors of apollo-compiler without changing their messages.
//!
//! apollo-compiler validates a request again after the rules in this crate. Its errors are reported only for
//! requests that pass these rules and that apollo-compiler rejects.

use apollo_compiler::diagnostic::ToCliReport as _;
use apollo_compiler::validation::DiagnosticList;

use crate::failure::{Code, Failure};
use crate::location::RequestLines;

/// The first syntax error of a document.
pub fn syntax(lines: &RequestLines, errors: &DiagnosticList) -> Vec<Failure> {
    failures(lines, Code::ParseFailed, errors).take(1).collect()
}

/// All validation errors of a document.
pub fn validation(lines: &RequestLines, errors: &DiagnosticList) -> Vec<Failure> {
    failures(lines, Code::ValidationFailed, errors).collect()
}

fn failures(lines: &RequestLines, code: Code, errors: &DiagnosticList) -> impl Iterator<Item = Failure> {
    errors.iter().map(move |error| {
        let message = error.error.unstable_compat_message().unwrap_or_else(|| error.error.to_string());
        let mut failure = Failure::new(code, message);
        failure.locations.extend(lines.of_span(error.error.location()));
        failure
    })
}
