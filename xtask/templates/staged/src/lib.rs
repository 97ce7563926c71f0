//! One sentence about what the integration does.

mod apply;
mod declare;
mod observe;
mod plan;
mod query;

use qontract_runtime::{
    ApplyResult, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem, Fault, IntegrationMeta,
    Options, Plan, ReadContext, StagedIntegration, WriteContext,
};

pub use declare::{App, Target};
pub use observe::{CurrentItem, Item};
pub use plan::Action;

/// The name of the integration.
pub const NAME: &str = "{{name}}";

/// The integration. Its clients are fields, set where the binary lists its integrations.
pub struct {{Type}} {
    meta: IntegrationMeta,
}

/// Describes the integration: its queries, and flags that select shards by a dimension of their key.
pub fn meta() -> IntegrationMeta {
    IntegrationMeta::new(NAME, "One sentence about what the integration does")
        .query::<query::Apps>()
        .selects("app-name", "app")
}

impl Default for {{Type}} {
    fn default() -> Self {
        Self { meta: meta() }
    }
}

impl StagedIntegration for {{Type}} {
    type Common = ();
    type Target = Target;
    type State = App;
    type Desired = Item;
    type Current = CurrentItem;
    type Action = Action;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        declare::declare(data)
    }

    fn plan(&self, desired: &[DesiredItem<Item>], current: &CurrentState<CurrentItem>) -> Plan<Action> {
        plan::plan(desired, current)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), Target, App>,
    ) -> Result<Vec<DesiredItem<Item>>, Fault> {
        Ok(observe::wants(&view))
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), Target, App>,
        _: &[DesiredItem<Item>],
    ) -> Result<CurrentState<CurrentItem>, Fault> {
        Ok(observe::observe(&view.shard.target))
    }

    async fn apply(&self, write: &WriteContext<'_>, action: &Action) -> Result<ApplyResult, Fault> {
        apply::apply(write, action)
    }
}
