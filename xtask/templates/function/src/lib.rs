//! One sentence about what the integration does.

mod check;
mod query;

use qontract_runtime::state::{Declared, Shard};
use qontract_runtime::{About, Cx, Data, Fault, Function, FunctionState, Options, ShardKey};

/// The integration.
pub struct {{Type}} {
    about: About,
}

/// Describes the integration: its name and its queries.
pub fn about() -> About {
    About::new("{{name}}", "One sentence about what the integration does").query::<query::Apps>()
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

    /// The input of the function: if it is equal in base and head, the function does not run.
    fn state(&self, data: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        let mut declared = Declared::new(serde_json::Value::Null);
        for app in check::apps(data)? {
            let key = ShardKey::new([("app", app.name.as_str())]);
            declared.add(key, Shard::new((), app.name.into(), app.place));
        }
        Ok(Some(declared))
    }

    /// Reports problems with `cx.fault`. Every change of a target goes through `cx.act`.
    async fn run(&self, cx: &Cx<'_>) -> Result<(), Fault> {
        for app in check::apps(cx.data)? {
            if let Some(fault) = check::problem(&app) {
                cx.fault(fault);
            }
        }
        Ok(())
    }
}
