//! Compares rendered templates with their expected results, so that the effect of a change is visible.

mod compare;
mod declare;
mod query;

use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    Data, Fault, Function, FunctionContext, FunctionState, IntegrationMeta, Options, ShardKey,
};
use serde_json::{Value, json};

/// The name of the integration.
pub const NAME: &str = "resource-template-tester";

/// The integration.
pub struct ResourceTemplateTester {
    meta: IntegrationMeta,
}

/// Metadata of the integration.
pub fn meta() -> IntegrationMeta {
    IntegrationMeta::new(NAME, "Compares rendered templates with their expected results")
        .query::<query::TemplateTests>()
        .reads_ad_hoc()
}

impl Default for ResourceTemplateTester {
    fn default() -> Self {
        Self { meta: meta() }
    }
}

impl Function for ResourceTemplateTester {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    /// The expectation and the results, per test.
    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = DeclaredState::new(Value::Null);
        for test in declare::tests(data)? {
            // Two tests may have the same name, so the key is the file.
            let key = ShardKey::new([("test", test.path.as_str())]);
            let place = test.place.clone();
            declared.add(key, Shard::new((), json!(test), place));
        }
        Ok(Some(declared))
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        for test in declare::tests(cx.data)? {
            for fault in compare::faults(&test) {
                cx.report_fault(fault);
            }
        }
        Ok(())
    }
}
