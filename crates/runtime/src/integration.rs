//! An integration of any form, for the runner and the registry.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::contract::StagedIntegration;
use crate::data::{BundleReader, Data, QueryPolicy};
use crate::declared_cache::{DeclaredStateCache, SharedDeclaredState};
use crate::fault::{Fault, panic_fault};
use crate::foreign::ForeignIntegration;
use crate::function::{DynFunction, Function};
use crate::key::ShardKey;
use crate::meta::IntegrationMeta;
use crate::options::Options;
use crate::process::ProcessIntegration;
use crate::trust::TargetAddress;
use crate::type_erasure::{AnyDeclaredState, DynIntegration, StagedAdapter, shard_address};
use crate::unplanned::{DeclaredCount, ReleasedPart};
use qontract_telemetry::activity;

/// An integration of any form.
pub struct Integration {
    form: IntegrationForm,
    declared_cache: DeclaredStateCache,
}

/// The forms of an integration.
pub enum IntegrationForm {
    /// The five phases of [`StagedIntegration`].
    Staged(Box<dyn DynIntegration>),
    /// One function; see [`Function`].
    Function(Box<dyn DynFunction>),
    /// An existing command; see [`foreign`](crate::foreign).
    Foreign(Box<ForeignIntegration>),
}

impl Integration {
    fn new(form: IntegrationForm) -> Self {
        Self { form, declared_cache: DeclaredStateCache::default() }
    }

    /// Creates an integration of the staged form.
    pub fn staged(integration: impl StagedIntegration) -> Self {
        Self::new(IntegrationForm::Staged(Box::new(StagedAdapter(integration))))
    }

    /// Creates an integration of the function form.
    pub fn function(integration: impl Function) -> Self {
        Self::new(IntegrationForm::Function(Box::new(integration)))
    }

    /// Creates an integration of the process form.
    pub fn process(process: ProcessIntegration) -> Self {
        Self::new(IntegrationForm::Staged(Box::new(process)))
    }

    /// Creates an integration of the foreign form.
    pub fn foreign(foreign: ForeignIntegration) -> Self {
        Self::new(IntegrationForm::Foreign(Box::new(foreign)))
    }

    /// The form of the integration, with its implementation.
    pub(crate) fn form(&self) -> &IntegrationForm {
        &self.form
    }

    /// The addresses that a shard contacts.
    pub(crate) fn addresses(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<TargetAddress> {
        match &self.form {
            IntegrationForm::Staged(integration) => integration.addresses(declared, key),
            IntegrationForm::Function(_) | IntegrationForm::Foreign(_) => shard_address(declared, key),
        }
    }

    /// Whether the integration plans and applies each shard independently.
    pub(crate) fn is_sharded(&self) -> bool {
        match &self.form {
            IntegrationForm::Staged(_) => true,
            IntegrationForm::Function(_) | IntegrationForm::Foreign(_) => false,
        }
    }

    /// The objects that base manages in a shard and that head no longer manages, although head does not remove them.
    pub(crate) fn released(
        &self,
        base: &dyn AnyDeclaredState,
        head: Option<&dyn AnyDeclaredState>,
        key: &ShardKey,
    ) -> Vec<ReleasedPart> {
        match &self.form {
            IntegrationForm::Staged(integration) => integration.released(base, head, key),
            // Integrations of the other forms do not own objects in a target.
            IntegrationForm::Function(_) | IntegrationForm::Foreign(_) => Vec::new(),
        }
    }

    /// The metadata of the integration.
    pub fn meta(&self) -> &IntegrationMeta {
        match &self.form {
            IntegrationForm::Staged(integration) => integration.meta(),
            IntegrationForm::Function(integration) => integration.meta(),
            IntegrationForm::Foreign(integration) => integration.meta(),
        }
    }

    /// Checks the prerequisites of the integration on this machine; see [`Function::ready`].
    pub fn ready(&self) -> Result<(), Fault> {
        match &self.form {
            IntegrationForm::Staged(_) | IntegrationForm::Foreign(_) => Ok(()),
            IntegrationForm::Function(integration) => integration.ready(),
        }
    }

    /// The declared state of the integration, if it has one. Concurrent callers with the same data and options share
    /// one state, which is declared once and cached while a caller holds it.
    pub fn declare(&self, data: &Data, options: &Options) -> Result<Option<SharedDeclaredState>, Fault> {
        let _activity = activity::phase("declare", "declare");
        let declare = |data: &Data| match &self.form {
            IntegrationForm::Staged(integration) => {
                integration.declare(data, options).map(|state| Some(Arc::from(state)))
            }
            IntegrationForm::Function(integration) => {
                let state = integration.state(data, options)?;
                Ok(state.map(|state| Arc::new(state) as Arc<dyn AnyDeclaredState>))
            }
            IntegrationForm::Foreign(_) => Ok(None),
        };
        let entry = self.declared_cache.entry(data, options);
        let (result, log) = entry.result.get_or_init(|| {
            let own = data.with_empty_log();
            let declared = catch_unwind(AssertUnwindSafe(|| {
                own.prefetch_declared()?;
                declare(&own)
            }));
            (declared.unwrap_or_else(|panic| Err(panic_fault("declare", &*panic))), own.query_log())
        });
        data.merge_query_log(log);
        let state = result.clone()?;
        Ok(state.map(|state| SharedDeclaredState::new(state, Arc::clone(&entry))))
    }
}

impl std::fmt::Debug for Integration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Integration").field(&self.meta().name).finish()
    }
}

/// Counts the shards that an integration manages and the objects that are declared in them; `None` if the integration
/// has no declared state.
pub fn count_declared(integration: &Integration, source: &Arc<dyn BundleReader>) -> Option<DeclaredCount> {
    let data = Data::new(Arc::clone(source), QueryPolicy::of(integration.meta()));
    let declared = integration.declare(&data, &Options::default()).ok().flatten()?;
    let managed = declared.keys().into_iter().filter(|key| declared.disabled(key).is_none());
    let mut count = DeclaredCount { shards: 0, objects: Some(0) };
    for key in managed {
        count.shards += 1;
        for part in integration.released(&*declared, None, key) {
            count.objects = count.objects.zip(part.count).map(|(all, more)| all + more);
        }
    }
    Some(count)
}
