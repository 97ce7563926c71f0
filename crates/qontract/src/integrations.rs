//! The list of integrations in this binary. To add an integration, run `cargo xtask new-integration`, which
//! adds it to this list; see `docs/how-to/add-an-integration.md`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use qontract_cli::ReconcileLine;
use qontract_config::{Config, LocatedConfig};
use qontract_daemon::registry::{IntegrationEntry as Entry, Registry};
use qontract_daemon::targets::Targets;
use qontract_fleet::commands::{DEFAULT_GRACE_SECONDS, SHARD};
use qontract_fleet::{CommandInfo, Commands};
use qontract_integration_integrations_manager::{
    self as integrations_manager, IntegrationsManager, RunTimes,
};
use qontract_integration_openshift_namespace_labels as openshift_namespace_labels;
use qontract_integration_prometheus_rules_tester as prometheus_rules_tester;
use qontract_objects::ManagedObjects;
use qontract_runtime::{Flag, FlagKind, Integration, IntegrationMeta};

/// All integrations that are compiled in, by name.
pub const ALL: &[Entry] = &[
    Entry::new(integrations_manager::meta, manager),
    Entry::objects::<qontract_integration_openshift_clusterrolebindings::OpenshiftClusterrolebindings>(),
    Entry::objects::<qontract_integration_openshift_limitranges::OpenshiftLimitranges>(),
    Entry::new(openshift_namespace_labels::meta, namespace_labels),
    Entry::objects::<qontract_integration_openshift_namespaces::OpenshiftNamespaces>(),
    Entry::objects::<qontract_integration_openshift_network_policies::OpenshiftNetworkPolicies>(),
    Entry::objects::<qontract_integration_openshift_prometheus_rules::OpenshiftPrometheusRules>(),
    Entry::objects::<qontract_integration_openshift_resourcequotas::OpenshiftResourcequotas>(),
    Entry::objects::<qontract_integration_openshift_resources::OpenshiftResources>(),
    Entry::objects::<qontract_integration_openshift_rolebindings::OpenshiftRolebindings>(),
    Entry::objects::<qontract_integration_openshift_routes::OpenshiftRoutes>(),
    Entry::objects::<qontract_integration_openshift_vault_secrets::OpenshiftVaultSecrets>(),
    Entry::new(prometheus_rules_tester::meta, rules_tester),
    Entry::function::<qontract_integration_query_validator::QueryValidator>(),
    Entry::function::<qontract_integration_resource_template_tester::ResourceTemplateTester>(),
];

/// The time that a pod needs to end in addition to the wind-down of its integration.
const POD_OVERHEAD: Duration = Duration::from_secs(15);

/// The registry of this binary.
pub const REGISTRY: Registry = Registry::new(ALL);

fn manager(targets: &Targets) -> anyhow::Result<Integration> {
    let manager = IntegrationsManager::new(Arc::new(fleet_commands(targets)));
    let run_times = match targets.prometheus()? {
        Some(prometheus) => RunTimes::Server(prometheus),
        None if targets.is_sandbox() => RunTimes::None,
        None => RunTimes::NotConfigured,
    };
    let manager = manager.with_run_times(run_times);
    let (kubernetes, lookups) = (Arc::clone(targets.kubernetes()?), Arc::clone(targets.lookups()));
    Ok(Integration::staged(ManagedObjects::new(manager, kubernetes, lookups)))
}

/// The commands that pods can run: those of this binary, of qontract-reconcile, and of the configuration.
pub fn fleet_commands(targets: &Targets) -> Commands {
    let mut commands = Commands::of_peer();
    for meta in REGISTRY.metas() {
        let selects = |flag: &Flag| matches!(flag.kind, FlagKind::Selects(_)).then(|| flag.spelling());
        let mut flags: BTreeSet<String> = meta.flags.iter().filter_map(selects).collect();
        if !flags.is_empty() {
            flags.insert(SHARD.to_owned());
        }
        let shutdown = meta.limits.shutdown_timeout.map_or(0, |timeout| (timeout + POD_OVERHEAD).as_secs());
        let grace_seconds = shutdown.max(DEFAULT_GRACE_SECONDS);
        commands.add(meta.name, CommandInfo { flags, grace_seconds });
    }
    for (name, command) in &targets.fleet().commands {
        let flags = command.flags.iter().cloned().collect();
        let grace_seconds = command.grace_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
        commands.add(name, CommandInfo { flags, grace_seconds });
    }
    commands
}

fn namespace_labels(targets: &Targets) -> anyhow::Result<Integration> {
    let kubernetes = Arc::clone(targets.kubernetes()?);
    Ok(Integration::staged(openshift_namespace_labels::OpenshiftNamespaceLabels::new(kubernetes)))
}

#[expect(clippy::unnecessary_wraps, reason = "other integrations may lack a target")]
fn rules_tester(targets: &Targets) -> anyhow::Result<Integration> {
    let promtool = targets.promtool().clone();
    Ok(Integration::function(prometheus_rules_tester::PrometheusRulesTester::new(promtool)))
}

/// The integrations that a command line can name, and the configuration that registers some of them.
pub struct KnownIntegrations {
    /// The metadata of the integrations.
    pub metas: Vec<IntegrationMeta>,
    /// The configuration; `None` if the command does not run an integration.
    pub config: Option<LocatedConfig>,
}

impl KnownIntegrations {
    /// Reads the configuration if the command line runs an integration. If the command line names a process
    /// integration, starts its program, and no other program.
    pub fn of(arguments: &[OsString]) -> Self {
        let Some(ReconcileLine { flavor, config, integration }) = ReconcileLine::of(arguments) else {
            return Self { metas: REGISTRY.metas_with(&Config::default(), None), config: None };
        };
        let config = flavor.read_config(config.as_deref());
        let metas = match &config.content {
            Ok(config) => REGISTRY.metas_with(config, integration.as_deref()),
            // The command that needs the configuration reports the error.
            Err(_) => REGISTRY.metas_with(&Config::default(), None),
        };
        Self { metas, config: Some(config) }
    }

    /// All integrations, for commands that run none.
    pub fn listed() -> Self {
        let config = Config::find(None).unwrap_or_default();
        Self { metas: REGISTRY.metas_with(&config, None), config: None }
    }

    /// The error for an unknown integration, if the command runs an integration. The cause may be an error in
    /// the configuration that should define it.
    pub fn unknown(self, name: &str) -> Option<anyhow::Error> {
        Some(match self.config?.content {
            Ok(config) => REGISTRY.unknown(name, &config),
            Err(wrong) => wrong.into(),
        })
    }
}
