//! Runs saved GraphQL queries, to detect changes of the data that break them.

mod check;
mod query;

use qontract_runtime::state::{Declared, Shard};
use qontract_runtime::{About, Cx, Data, Fault, Function, FunctionState, Options, ShardKey};

/// The integration.
pub struct QueryValidator {
    about: About,
}

/// Metadata of the integration.
pub fn about() -> About {
    About::new("query-validator", "Checks saved GraphQL queries").query::<query::Validations>().looks_up()
}

impl Default for QueryValidator {
    fn default() -> Self {
        Self { about: about() }
    }
}

impl Function for QueryValidator {
    fn about(&self) -> &About {
        &self.about
    }

    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = Declared::new(serde_json::Value::Null);
        for validation in check::validations(data)? {
            let key = ShardKey::new([("validation", validation.name.as_str())]);
            let place = validation.place.clone();
            let state =
                serde_json::to_value(&validation.items).map_err(|error| Fault::us(error.to_string()))?;
            declared.add(key, Shard::new((), state, place));
        }
        Ok(Some(declared))
    }

    async fn run(&self, cx: &Cx<'_>) -> Result<(), Fault> {
        for validation in check::validations(cx.data)? {
            for item in validation.items {
                if let Some(problem) = item.problem {
                    let fault = Fault::author(format!("`{}` of `{}`: {problem}", item.path, validation.name));
                    let place = validation.place.as_ref().map(|place| place.below(&item.pointer));
                    cx.fault(fault.at(place));
                }
            }
        }
        Ok(())
    }
}
