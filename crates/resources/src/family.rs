//! The rooms: which providers each of them knows, and which kinds it looks after.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Kind, Kubernetes};
use qontract_objects::{Declared, Estate, Item as Wished, Keeper, Kept, Managed, Plot, with_cluster_flags};
use qontract_runtime::{About, Data, Fault, Options, Read, SecretLookup, Want, texts};

use crate::item::{Item, Named};
use crate::outside::Outside;
use crate::{asking, declare, query, resolve};

/// A room over the objects that namespaces name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Files and templates: `openshift-resources`.
    Files,
    /// Secrets: `openshift-vault-secrets`.
    Secrets,
    /// Routes: `openshift-routes`.
    Routes,
    /// Rules of Prometheus: `openshift-prometheus-rules`.
    Rules,
}

impl Family {
    /// The name of the integration.
    pub fn name(self) -> &'static str {
        match self {
            Family::Files => "openshift-resources",
            Family::Secrets => "openshift-vault-secrets",
            Family::Routes => "openshift-routes",
            Family::Rules => "openshift-prometheus-rules",
        }
    }

    /// The kinds that it looks after whatever a namespace says is managed.
    pub(crate) fn kinds(self) -> &'static [&'static str] {
        match self {
            Family::Files => &[],
            Family::Secrets => &["Secret"],
            Family::Routes => &["Route"],
            Family::Rules => &["PrometheusRule.monitoring.coreos.com", "PrometheusRule.monitoring.rhobs"],
        }
    }

    /// What it says about itself.
    pub fn about(self, description: &str) -> About {
        with_cluster_flags(About::new(self.name(), description).query::<query::Resources>())
            .looks_up_to_declare()
            .one_by_one("namespaces_v1", &["name"])
            .looks_up_more_for(self.looks_up_more_for())
            .selects("namespace-name", "namespace")
            // Restarts follow from what was written.
            .rounds(3)
    }

    /// Of which resources it may ask the data.
    fn looks_up_more_for(self) -> fn(&str) -> bool {
        match self {
            Family::Files | Family::Rules => asking::may_ask,
            // They render nothing.
            Family::Secrets | Family::Routes => |_| false,
        }
    }

    /// The integration, which looks up here what lies outside, and writes there.
    pub fn room(
        self,
        about: About,
        outside: Arc<Outside>,
        kubernetes: Arc<dyn Kubernetes>,
    ) -> Kept<Resources> {
        Kept::new(Resources { family: self, about, outside }, kubernetes)
    }
}

/// A room over the objects that namespaces name.
pub struct Resources {
    family: Family,
    about: About,
    outside: Arc<Outside>,
}

impl Keeper for Resources {
    type State = Named;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<Named>, Fault> {
        declare::declare(self.family, data)
    }

    fn estate(&self, plot: Plot<'_, Named>) -> (Option<String>, Vec<Managed>) {
        let managed = plot.shard.state.kinds.iter().filter_map(|(kind, names)| {
            Some(Managed { kind: kind.parse::<Kind>().ok()?, names: names.clone() })
        });
        (plot.key.get("namespace").map(str::to_owned), managed.collect())
    }

    fn secret_lookups(&self, plot: Plot<'_, Named>) -> BTreeSet<SecretLookup> {
        plot.shard.state.items.iter().flat_map(Item::secret_lookups).collect()
    }

    fn public_texts(&self, plot: Plot<'_, Named>) -> Vec<String> {
        let declared = plot.shard.state.items.iter().filter_map(|item| match item {
            Item::Template(template) => template.source.declared.as_ref(),
            Item::Object(_) | Item::Secret(_) | Item::Route { .. } | Item::Wrong(_) => None,
        });
        declared.flat_map(texts).collect()
    }

    async fn wanted(
        &self,
        read: &Read,
        plot: Plot<'_, Named>,
        estate: &Arc<Estate>,
    ) -> Result<Vec<Want<Wished>>, Fault> {
        Ok(resolve::resolve(read, &self.outside, plot, estate).await)
    }
}
