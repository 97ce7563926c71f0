//! What apollo-compiler alone finds wrong with a request, in its own words.
//!
//! It checks again what was checked before: only what it holds to be wrong and graphql-js does not ends here.

use apollo_compiler::diagnostic::ToCliReport as _;
use apollo_compiler::validation::DiagnosticList;

use crate::failure::{Code, Failure};
use crate::location::Lines;

/// The first mistake of a text that is no GraphQL.
pub fn syntax(lines: &Lines, errors: &DiagnosticList) -> Vec<Failure> {
    failures(lines, Code::ParseFailed, errors).take(1).collect()
}

/// All mistakes of a text that does not fit the schema.
pub fn validation(lines: &Lines, errors: &DiagnosticList) -> Vec<Failure> {
    failures(lines, Code::ValidationFailed, errors).collect()
}

fn failures(lines: &Lines, code: Code, errors: &DiagnosticList) -> impl Iterator<Item = Failure> {
    errors.iter().map(move |error| {
        let message = error.error.unstable_compat_message().unwrap_or_else(|| error.error.to_string());
        let mut failure = Failure::new(code, message);
        failure.locations.extend(lines.of_span(error.error.location()));
        failure
    })
}
