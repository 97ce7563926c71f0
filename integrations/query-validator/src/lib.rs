//! Runs saved GraphQL queries to detect changes in the data that break them.

mod check;
mod query;

use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    Data, Fault, Function, FunctionContext, FunctionState, IntegrationMeta, Options, ShardKey,
};

/// The integration.
pub struct QueryValidator {
    meta: IntegrationMeta,
}

/// Metadata of the integration.
pub fn meta() -> IntegrationMeta {
    IntegrationMeta::new("query-validator", "Checks saved GraphQL queries")
        .query::<query::Validations>()
        .reads_ad_hoc()
}

impl Default for QueryValidator {
    fn default() -> Self {
        Self { meta: meta() }
    }
}

impl Function for QueryValidator {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = DeclaredState::new(serde_json::Value::Null);
        for validation in check::validations(data)? {
            let key = ShardKey::new([("validation", validation.name.as_str())]);
            let place = validation.place.clone();
            let state = serde_json::to_value(&validation.items)
                .map_err(|error| Fault::internal(error.to_string()))?;
            declared.add(key, Shard::new((), state, place));
        }
        Ok(Some(declared))
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        for validation in check::validations(cx.data)? {
            for item in validation.items {
                if let Some(problem) = item.problem {
                    let fault = Fault::author(format!("`{}` of `{}`: {problem}", item.path, validation.name));
                    let place = validation.place.as_ref().map(|place| place.below(&item.pointer));
                    cx.report_fault(fault.at(place));
                }
            }
        }
        Ok(())
    }
}
