//! Says in a sentence what it does.

mod check;
mod query;

use qontract_runtime::state::{Declared, Shard};
use qontract_runtime::{About, Cx, Data, Fault, Function, FunctionState, Options, ShardKey};

/// The integration.
pub struct {{Type}} {
    about: About,
}

/// What it says about itself.
pub fn about() -> About {
    About::new("{{name}}", "Says in a sentence what it does").query::<query::Apps>()
}

impl Default for {{Type}} {
    fn default() -> Self {
        Self { about: about() }
    }
}

impl Function for {{Type}} {
    fn about(&self) -> &About {
        &self.about
    }

    /// What the outcome depends on: if it is the same in base and head, the function does not run.
    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = Declared::new(serde_json::Value::Null);
        for app in check::apps(data)? {
            let key = ShardKey::new([("app", app.name.as_str())]);
            declared.add(key, Shard::new((), app.name.into(), app.place));
        }
        Ok(Some(declared))
    }

    /// Tells what is wrong with single things through `cx.fault`. Whatever changes the world goes through `cx.act`.
    async fn run(&self, cx: &Cx<'_>) -> Result<(), Fault> {
        for app in check::apps(cx.data)? {
            if let Some(fault) = check::problem(&app) {
                cx.fault(fault);
            }
        }
        Ok(())
    }
}
