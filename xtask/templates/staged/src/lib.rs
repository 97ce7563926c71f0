//! One sentence about what the integration does.

mod apply;
mod declare;
mod observe;
mod plan;
mod query;

use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Plan, Read, Staged, View, Want, World, Write,
};

pub use declare::{App, Target};
pub use observe::{CurrentItem, Item};
pub use plan::Action;

/// The name of the integration.
pub const NAME: &str = "{{name}}";

/// The integration. Its clients are fields, set where the binary lists its integrations.
pub struct {{Type}} {
    about: About,
}

/// Describes the integration: its queries, and flags that select shards by a dimension of their key.
pub fn about() -> About {
    About::new(NAME, "One sentence about what the integration does").query::<query::Apps>().selects("app-name", "app")
}

impl Default for {{Type}} {
    fn default() -> Self {
        Self { about: about() }
    }
}

impl Staged for {{Type}} {
    type Common = ();
    type Target = Target;
    type State = App;
    type Item = Item;
    type Found = CurrentItem;
    type Action = Action;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredOf<Self>, Fault> {
        declare::declare(data)
    }

    async fn resolve(&self, _: &Read, view: View<'_, (), Target, App>) -> Result<Vec<Want<Item>>, Fault> {
        Ok(observe::wants(&view))
    }

    async fn observe(
        &self,
        _: &Read,
        view: View<'_, (), Target, App>,
        _: &[Want<Item>],
    ) -> Result<World<CurrentItem>, Fault> {
        Ok(observe::observe(&view.shard.target))
    }

    fn plan(&self, wanted: &[Want<Item>], world: &World<CurrentItem>) -> Plan<Action> {
        plan::plan(wanted, world)
    }

    async fn apply(&self, write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
        apply::apply(write, action)
    }
}
