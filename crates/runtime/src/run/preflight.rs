//! Preflight checks: the data defines the integration, and its allow-list covers its declared queries.

use std::sync::Arc;

use crate::allow_list;
use crate::data::{Data, QueryPolicy};
use crate::definition;
use crate::fault::Fault;
use crate::integration::Integration;
use crate::outcome::{RunEnd, RunOutcome};
use crate::run_request::RunRequest;

/// A handle to the data of head, limited to the schemas that the integration's definition allows. Fails if
/// the definition is missing or does not cover the declared queries.
pub fn permitted_data(
    integration: &Integration,
    request: &RunRequest,
    outcome: &mut RunOutcome,
) -> Result<Data, Fault> {
    let meta = integration.meta();
    let listing = definition::of(&*request.head, &meta.name)?;
    let mut policy = QueryPolicy::of(meta);
    if request.validate_schemas {
        let Some(listing) = listing.filter(|listing| !listing.schemas.is_empty()) else {
            outcome.ended = RunEnd::NotDefined;
            let fault = Fault::author(format!("the data does not define the integration `{}`", meta.name))
                .hint(
                    "add a datafile with the schema `/app-sre/integration-1.yml`, its `name` and its `schemas`",
                );
            return Err(fault);
        };
        if let Some(engine) = request.head.engine() {
            let violations = allow_list::violations(engine, &meta.queries, &listing)?;
            if !violations.is_empty() {
                outcome.ended = RunEnd::Forbidden;
                let missing: Vec<String> = violations.iter().map(|one| format!("- {}", one.schema)).collect();
                let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
                let fault = Fault::author(texts.join("; "))
                    .hint(format!("add to `schemas`:\n{}", deduplicated(missing).join("\n")))
                    .at(listing.place.below("/schemas"));
                return Err(fault);
            }
        }
        policy.allowed_schemas = Some(listing.schemas);
    }
    Ok(Data::new(Arc::clone(&request.head), policy))
}

fn deduplicated(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines.dedup();
    lines
}
