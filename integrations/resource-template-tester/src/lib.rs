//! Compares rendered templates with their expected results, so that the effect of a change is visible.

mod compare;
mod declare;
mod query;

use qontract_runtime::state::{Declared, Shard};
use qontract_runtime::{About, Cx, Data, Fault, Function, FunctionState, Options, ShardKey};
use serde_json::{Value, json};

/// The name of the integration.
pub const NAME: &str = "resource-template-tester";

/// The integration.
pub struct ResourceTemplateTester {
    about: About,
}

/// Metadata of the integration.
pub fn about() -> About {
    About::new(NAME, "Compares rendered templates with their expected results")
        .query::<query::TemplateTests>()
        .looks_up()
}

impl Default for ResourceTemplateTester {
    fn default() -> Self {
        Self { about: about() }
    }
}

impl Function for ResourceTemplateTester {
    fn about(&self) -> &About {
        &self.about
    }

    /// The expectation and the results, per test.
    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = Declared::new(Value::Null);
        for test in declare::tests(data)? {
            // Two tests may have one name, so the key is the file.
            let key = ShardKey::new([("test", test.path.as_str())]);
            let place = test.place.clone();
            declared.add(key, Shard::new((), json!(test), place));
        }
        Ok(Some(declared))
    }

    async fn run(&self, cx: &Cx<'_>) -> Result<(), Fault> {
        for test in declare::tests(cx.data)? {
            for fault in compare::faults(&test) {
                cx.fault(fault);
            }
        }
        Ok(())
    }
}
