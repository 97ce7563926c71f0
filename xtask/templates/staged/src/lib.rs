//! Says in a sentence what it does.

mod apply;
mod declare;
mod observe;
mod plan;
mod query;

use qontract_runtime::{
    About, Applied, Data, DeclaredOf, Fault, Options, Plan, Read, Staged, View, Want, World, Write,
};

pub use declare::{App, Target};
pub use observe::{Item, Seen};
pub use plan::Action;

/// The name of the integration.
pub const NAME: &str = "{{name}}";

/// The integration. The clients that it asks are its fields, given to it in the list of the binary.
pub struct {{Type}} {
    about: About,
}

/// What it says about itself: its queries, and flags that select shards by a dimension of their key.
pub fn about() -> About {
    About::new(NAME, "Says in a sentence what it does").query::<query::Apps>().selects("app-name", "app")
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
    type Found = Seen;
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
    ) -> Result<World<Seen>, Fault> {
        Ok(observe::observe(&view.shard.target))
    }

    fn plan(&self, wanted: &[Want<Item>], world: &World<Seen>) -> Plan<Action> {
        plan::plan(wanted, world)
    }

    async fn apply(&self, write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
        apply::apply(write, action)
    }
}
