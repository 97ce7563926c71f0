//! Preflight checks: the data defines the integration, and its allow-list covers its declared queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::allow_list::{self, Reachability};
use crate::data::{Data, QueryPolicy, QueryRequest};
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
    /// The schemas that the declared queries can read. `None` if the allow-list is not enforced, or if the server of
    /// a remote bundle does not report these schemas.
    pub reachable: Option<Reachability>,
}

/// Checks the definition of the integration. Fails if the definition is missing or its allow-list does not cover the
/// declared queries.
pub fn check(
    integration: &Integration,
    request: &RunRequest,
    outcome: &mut RunOutcome,
) -> Result<Preflight, Fault> {
    let meta = integration.meta();
    let reachability = || {
        let definitions = QueryRequest { text: definition::DEFINITIONS_QUERY, ..QueryRequest::default() };
        request.head.reachability(&meta.queries, &[definitions])
    };
    // The schemas are requested before the definition is read, so that a server gets both requests as one. An error
    // of this request is reported only if the integration is defined.
    let reachability = request.validate_schemas.then(reachability);
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
        if let Some(reach) = reachability.transpose()?.flatten() {
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
            reachable = Some(reach);
        }
        policy.allowed_schemas = Some(listing.schemas.clone());
    }
    Ok(Preflight { data: Data::new(Arc::clone(&request.head), policy), definition, reachable })
}
