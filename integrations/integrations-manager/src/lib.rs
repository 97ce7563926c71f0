//! Deploys the shards of integrations to Kubernetes.

mod balance;
mod convert;
mod declare;
mod optional;
mod query;
mod resolve;
mod settings;
mod shards;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use qontract_fleet::Commands;
use qontract_objects::{
    Callers, Declared, DesiredObject, ObjectIntegration, ObjectShardView, ResolveContext,
    cluster_integration, object_meta,
};
use qontract_runtime::{Data, DesiredItem, Fault, FlagKind, IntegrationMeta, ManagedKinds, Options};

pub use balance::{ASSIGNMENT, KEYS, RunTimes};
pub use settings::DEFAULT_UPSTREAM;
pub use shards::{DeclaredShard, DeclaredShards, declared_shards};
pub use state::{BalancedDeployment, BrokenDeployment, NamespaceFleet};

/// The name of the integration.
pub const NAME: &str = "integrations-manager";

/// Number of rounds of a run: replacing a workload takes one more than creating it.
const ROUNDS: u32 = 3;

/// Metadata of the integration.
pub fn meta() -> IntegrationMeta {
    object_meta(&IntegrationsManager::new(Arc::default()))
}

/// The integration.
#[derive(Clone, Debug)]
pub struct IntegrationsManager {
    commands: Arc<Commands>,
    run_times: RunTimes,
}

impl IntegrationsManager {
    /// Creates the integration; `commands` are the commands that pods can run.
    pub fn new(commands: Arc<Commands>) -> Self {
        Self { commands, run_times: RunTimes::None }
    }

    /// Sets the source of the run times of integrations whose shards are balanced.
    #[must_use]
    pub fn with_run_times(mut self, run_times: RunTimes) -> Self {
        self.run_times = run_times;
        self
    }
}

impl ObjectIntegration for IntegrationsManager {
    type State = NamespaceFleet;

    fn meta(&self) -> IntegrationMeta {
        cluster_integration::<query::Fleet>(NAME, "Deploys the shards of integrations to Kubernetes")
            .query_if_known::<optional::integration_shards::ShardsOfIntegrations>()
            .query_if_known::<optional::labelled_namespaces::LabelledNamespaces>()
            .query_if_known::<optional::older_shards::OlderShards>()
            .query_if_known::<optional::older_strategies::OlderStrategies>()
            .selects("namespace-name", "namespace")
            .flag(settings::ENVIRONMENT_NAME, "Only namespaces of this environment", FlagKind::Value)
            .variable("ENVIRONMENT_NAME")
            .restricts_shards()
            .flag(settings::UPSTREAM, "Only integrations of this repository", FlagKind::Value)
            .short('u')
            .variable("INTEGRATIONS_MANAGER_UPSTREAM")
            .restricts_shards()
            .flag(settings::IMAGE, "The image of the pods, without a tag", FlagKind::Value)
            .short('i')
            .variable("INTEGRATIONS_MANAGER_IMAGE")
            .flag(
                settings::IMAGE_TAG_FROM_REF,
                "The ref of the repository whose commit is the image tag in an environment: ENVIRONMENT=REF; can be \
                 repeated",
                FlagKind::Value,
            )
            .short('r')
            .variable("INTEGRATIONS_MANAGER_IMAGE_TAG_FROM_REF")
            .flag(settings::PARAMETER, "A template parameter: NAME=VALUE; can be repeated", FlagKind::Value)
            .variable("INTEGRATIONS_MANAGER_PARAMETERS")
            .rounds(ROUNDS)
            .resolves_each_round()
            .patience(Duration::from_secs(2), Duration::from_mins(5))
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Several(&[
            "ConfigMap",
            "CronJob.batch",
            "Deployment.apps",
            "PersistentVolumeClaim",
            "Service",
            "StatefulSet.apps",
        ])
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<NamespaceFleet>, Fault> {
        declare::declare(data, options, &self.commands)
    }

    fn has_callers(&self) -> bool {
        true
    }

    fn callers(&self, data: &Data) -> Result<Callers, Fault> {
        let mut callers: BTreeSet<String> = declare::upstreams(data)?;
        callers.insert(DEFAULT_UPSTREAM.to_owned());
        Ok(Callers::Whole(callers))
    }

    async fn resolve(
        &self,
        context: ResolveContext<'_>,
        shard: ObjectShardView<'_, NamespaceFleet>,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        resolve::resolve(context, &self.run_times, shard).await
    }
}
