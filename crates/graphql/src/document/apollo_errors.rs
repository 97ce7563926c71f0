//! Errors that only apollo-compiler finds in a request, in its own words.
//!
//! It validates again what our rules validated before: only requests that it rejects and graphql-js accepts
//! get here.

use apollo_compiler::diagnostic::ToCliReport as _;
use apollo_compiler::validation::DiagnosticList;

use crate::failure::{Code, Failure};
use crate::location::RequestLines;

/// The first syntax error of a text.
pub fn syntax(lines: &RequestLines, errors: &DiagnosticList) -> Vec<Failure> {
    failures(lines, Code::ParseFailed, errors).take(1).collect()
}

/// All errors of a text that does not fit the schema.
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
