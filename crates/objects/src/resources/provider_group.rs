//! The integrations for `openshiftResources`: the providers that each handles, and the kinds that it manages.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use qontract_runtime::{
    AdHocTrigger, Data, DesiredItem, Fault, IntegrationMeta, ManagedKinds, Options, SecretLookup, texts,
};

use super::entry::{DeclaredResources, ResourceEntry};
use super::{declare, query, resolve};
use crate::Declared;
use crate::flags::namespace_integration;
use crate::integration::{
    DeclaredObject, ObjectIntegration, ObjectShardView, ObjectState, ResolveContext, ScopeSpec,
};
use crate::scope::{DesiredObject, ManagedKind};
use crate::templates::query_scan::TEMPLATES_THAT_QUERY;

/// The providers of `openshiftResources` that one integration handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderGroup {
    /// Files and templates: `openshift-resources`.
    Files,
    /// Secrets: `openshift-vault-secrets`.
    Secrets,
    /// Routes: `openshift-routes`.
    Routes,
    /// Prometheus rules: `openshift-prometheus-rules`.
    Rules,
}

impl ProviderGroup {
    /// The name of the integration.
    pub fn name(self) -> &'static str {
        match self {
            ProviderGroup::Files => "openshift-resources",
            ProviderGroup::Secrets => "openshift-vault-secrets",
            ProviderGroup::Routes => "openshift-routes",
            ProviderGroup::Rules => "openshift-prometheus-rules",
        }
    }

    /// The kinds that are always managed, regardless of `managedResourceTypes`.
    pub(crate) fn kinds(self) -> &'static [&'static str] {
        match self {
            ProviderGroup::Files => &[],
            ProviderGroup::Secrets => &["Secret"],
            ProviderGroup::Routes => &["Route"],
            ProviderGroup::Rules => {
                &["PrometheusRule.monitoring.coreos.com", "PrometheusRule.monitoring.rhobs"]
            }
        }
    }

    /// The kinds on which the integration needs permissions.
    fn managed_kinds(self) -> ManagedKinds {
        match self {
            ProviderGroup::Files => ManagedKinds::OfNamespaces,
            ProviderGroup::Secrets => ManagedKinds::Fixed("Secret"),
            ProviderGroup::Routes => ManagedKinds::Fixed("Route.route.openshift.io"),
            ProviderGroup::Rules => ManagedKinds::Fixed("PrometheusRule.monitoring.coreos.com"),
        }
    }

    /// Metadata of the integration: name, queries, flags and guarantees.
    pub fn meta(self, description: &str) -> IntegrationMeta {
        namespace_integration::<query::Resources>(self.name(), description)
            .reads_ad_hoc_during_declare()
            .triggers_ad_hoc_reads(self.ad_hoc_trigger())
            // Restarts are planned from the notes that an earlier round wrote.
            .rounds(3)
    }

    /// The resources that may run queries against the data.
    fn ad_hoc_trigger(self) -> AdHocTrigger {
        match self {
            ProviderGroup::Files | ProviderGroup::Rules => TEMPLATES_THAT_QUERY,
            // This group does not render templates.
            ProviderGroup::Secrets | ProviderGroup::Routes => AdHocTrigger::NONE,
        }
    }
}

/// One of the integrations for `openshiftResources`.
pub trait ResourceProviders: Send + Sync + 'static {
    /// The providers that the integration handles.
    const PROVIDERS: ProviderGroup;
    /// The description of the integration, in one sentence.
    const DESCRIPTION: &'static str;
}

/// The integration that handles the providers `P`.
pub struct NamespaceResources<P>(PhantomData<P>);

impl<P> Default for NamespaceResources<P> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<P: ResourceProviders> fmt::Debug for NamespaceResources<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamespaceResources").field(&P::PROVIDERS).finish()
    }
}

impl<P: ResourceProviders> ObjectIntegration for NamespaceResources<P> {
    type State = DeclaredResources;

    fn meta(&self) -> IntegrationMeta {
        P::PROVIDERS.meta(P::DESCRIPTION)
    }

    fn managed_kinds(&self) -> ManagedKinds {
        P::PROVIDERS.managed_kinds()
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<DeclaredResources>, Fault> {
        declare::declare(P::PROVIDERS, data)
    }

    fn secret_lookups(&self, shard: ObjectShardView<'_, DeclaredResources>) -> BTreeSet<SecretLookup> {
        shard.shard.state.items.iter().flat_map(ResourceEntry::secret_lookups).collect()
    }

    fn public_texts(&self, shard: ObjectShardView<'_, DeclaredResources>) -> Vec<String> {
        let declared = shard.shard.state.items.iter().filter_map(|item| match item {
            ResourceEntry::Template(template) => template.source.declared.as_ref(),
            ResourceEntry::Object(_)
            | ResourceEntry::Secret(_)
            | ResourceEntry::Route { .. }
            | ResourceEntry::Invalid(_) => None,
        });
        declared.flat_map(texts).collect()
    }

    async fn resolve(
        &self,
        context: ResolveContext<'_>,
        shard: ObjectShardView<'_, DeclaredResources>,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        Ok(resolve::resolve(context, shard).await)
    }
}

impl ObjectState for DeclaredResources {
    fn scope_spec(shard: ObjectShardView<'_, Self>) -> ScopeSpec {
        let kinds = shard.shard.state.kinds.iter();
        ScopeSpec {
            namespace: shard.key.get("namespace").map(str::to_owned),
            kinds: kinds
                .map(|(kind, names)| ManagedKind { kind: kind.clone(), names: names.clone() })
                .collect(),
            ..ScopeSpec::default()
        }
    }

    fn declared_objects(shard: ObjectShardView<'_, Self>) -> Vec<Option<DeclaredObject>> {
        shard.shard.state.items.iter().map(ResourceEntry::declared_object).collect()
    }
}
