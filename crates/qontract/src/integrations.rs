//! The list of integrations in this binary. For adding an integration, run `cargo xtask new-integration`,
//! which adds it here; see `docs/how-to/add-an-integration.md`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use qontract_config::Config;
use qontract_daemon::registry::{IntegrationEntry as Entry, Registry};
use qontract_daemon::targets::Targets;
use qontract_integration_openshift_namespace_labels as openshift_namespace_labels;
use qontract_integration_prometheus_rules_tester as prometheus_rules_tester;
use qontract_runtime::foreign::ForeignIntegration;
use qontract_runtime::process::ProcessIntegration;
use qontract_runtime::{Integration, IntegrationMeta};

/// All integrations that are compiled in, by name.
pub const ALL: &[Entry] = &[
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

/// The registry of this binary.
pub const REGISTRY: Registry = Registry::new(ALL);

fn namespace_labels(targets: &Targets) -> anyhow::Result<Integration> {
    let kubernetes = Arc::clone(targets.kubernetes()?);
    Ok(Integration::staged(openshift_namespace_labels::OpenshiftNamespaceLabels::new(kubernetes)))
}

#[expect(clippy::unnecessary_wraps, reason = "other integrations may lack a target")]
fn rules_tester(targets: &Targets) -> anyhow::Result<Integration> {
    let promtool = targets.promtool().clone();
    Ok(Integration::function(prometheus_rules_tester::PrometheusRulesTester::new(promtool)))
}

/// The metadata of all integrations of a command line: those of the binary, and the process integrations of
/// its configuration.
pub fn metas(arguments: &[OsString]) -> Vec<IntegrationMeta> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    // The command itself reports errors of the configuration.
    let config = read_config(&words).unwrap_or_default();
    let mut metas: Vec<IntegrationMeta> = ALL.iter().map(|entry| (entry.meta)()).collect();
    for (name, registered) in &config.integrations {
        metas.retain(|meta| meta.name != *name);
        let process =
            words.contains(&name.as_str()).then(|| ProcessIntegration::describe(name, registered.program()));
        metas.push(match process {
            Some(Ok(process)) => Integration::process(process).meta().clone(),
            // Not needed, or an error that is reported when the integration is created.
            _ => IntegrationMeta::new(name.clone(), "A process integration"),
        });
    }
    for (name, registered) in &config.foreign {
        metas.retain(|meta| meta.name != *name);
        metas.push(ForeignIntegration::meta_of(name, &registered.command));
    }
    metas.sort_by(|a, b| a.name.cmp(&b.name));
    metas
}

/// The configuration that a command line names.
fn read_config(words: &[&str]) -> anyhow::Result<Config> {
    let named = words.iter().zip(words.iter().skip(1)).find(|(flag, _)| **flag == "--config");
    let given = words.iter().find_map(|word| word.strip_prefix("--config="));
    let file = given.or(named.map(|(_, file)| *file)).map(PathBuf::from);
    // `up` and the peer's tools do not search the default locations.
    let is_named = matches!(words.get(1), Some(&("up" | "peer")));
    if is_named { Config::read(file.as_deref()) } else { Config::find(file.as_deref()) }
}

/// The error for an unknown integration on the command line.
pub fn unknown(name: &str, arguments: &[OsString]) -> anyhow::Error {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match read_config(&words) {
        Ok(config) => REGISTRY.unknown(name, &config),
        Err(wrong) => wrong,
    }
}

#[cfg(test)]
mod folders;
#[cfg(test)]
mod tests;
