//! One sentence about what the integration does.

mod check;
mod query;

use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    Data, Fault, Function, FunctionContext, FunctionState, IntegrationMeta, Options, ShardKey,
};

/// The integration.
pub struct {{Type}} {
    meta: IntegrationMeta,
}

/// Describes the integration: its name and its queries.
pub fn meta() -> IntegrationMeta {
    IntegrationMeta::new("{{name}}", "One sentence about what the integration does").query::<query::Apps>()
}

impl Default for {{Type}} {
    fn default() -> Self {
        Self { meta: meta() }
    }
}

impl Function for {{Type}} {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    /// The input of the function: if it is equal in base and head, the function does not run.
    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = DeclaredState::new(serde_json::Value::Null);
        for app in check::apps(data)? {
            let key = ShardKey::new([("app", app.name.as_str())]);
            declared.add(key, Shard::new((), app.name.into(), app.place));
        }
        Ok(Some(declared))
    }

    /// Reports problems with `cx.report_fault`. Every change to a target goes through `cx.apply`.
    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        for app in check::apps(cx.data)? {
            if let Some(fault) = check::problem(&app) {
                cx.report_fault(fault);
            }
        }
        Ok(())
    }
}
