//! Preflight checks: the data defines the integration, and its allow-list covers its declared queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::allow_list;
use crate::data::{Data, QueryPolicy};
use crate::definition::{self, IntegrationDefinition};
use crate::fault::Fault;
use crate::integration::Integration;
use crate::outcome::{RunEnd, RunOutcome};
use crate::run_request::RunRequest;

/// The result of the preflight checks of a run.
pub struct Preflight {
    /// A handle to the data of head, limited to the schemas that the integration's definition allows.
    pub data: Data,
    /// The definition of the integration in head.
    pub definition: Option<IntegrationDefinition>,
    /// The schemas that the declared queries can read; `None` if the allow-list is not enforced, or if only the
    /// server of a remote bundle can tell.
    pub reachable: Option<BTreeSet<String>>,
}

/// Checks the definition of the integration. Fails if it is missing or does not cover the declared queries.
pub fn check(
    integration: &Integration,
    request: &RunRequest,
    outcome: &mut RunOutcome,
) -> Result<Preflight, Fault> {
    let meta = integration.meta();
    let definition = definition::of(&*request.head, &meta.name)?;
    let mut policy = QueryPolicy::of(meta);
    let mut reachable = None;
    if request.validate_schemas {
        let Some(listing) = definition.as_ref().filter(|listing| !listing.schemas.is_empty()) else {
            outcome.ended = RunEnd::NotDefined;
            let fault = Fault::author(format!("the data does not define the integration `{}`", meta.name))
                .hint(
                    "add a datafile with the schema `/app-sre/integration-1.yml`, its `name` and its `schemas`",
                );
            return Err(fault);
        };
        if let Some(engine) = request.head.engine() {
            let reach = allow_list::reachable_schemas(engine, &meta.queries)?;
            let violations = allow_list::violations(&reach, listing);
            if !violations.is_empty() {
                outcome.ended = RunEnd::Forbidden;
                let missing: BTreeSet<String> =
                    violations.iter().map(|one| format!("- {}", one.schema)).collect();
                let missing: Vec<String> = missing.into_iter().collect();
                let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
                let fault = Fault::author(texts.join("; "))
                    .hint(format!("add to `schemas`:\n{}", missing.join("\n")))
                    .at(listing.place.below("/schemas"));
                return Err(fault);
            }
            reachable = Some(reach.into_iter().map(|one| one.schema).collect());
        }
        policy.allowed_schemas = Some(listing.schemas.clone());
    }
    Ok(Preflight { data: Data::new(Arc::clone(&request.head), policy), definition, reachable })
}
