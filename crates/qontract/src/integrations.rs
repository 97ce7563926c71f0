//! The integrations of this binary. `cargo xtask new-integration` makes a room and adds its entry here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use qontract_client_kubernetes::Kubernetes;
use qontract_config::Config;
use qontract_daemon::registry::{Entry, Registry};
use qontract_daemon::targets::Targets;
use qontract_integration_openshift_clusterrolebindings as openshift_clusterrolebindings;
use qontract_integration_openshift_limitranges as openshift_limitranges;
use qontract_integration_openshift_namespace_labels as openshift_namespace_labels;
use qontract_integration_openshift_namespaces as openshift_namespaces;
use qontract_integration_openshift_network_policies as openshift_network_policies;
use qontract_integration_openshift_prometheus_rules as openshift_prometheus_rules;
use qontract_integration_openshift_resourcequotas as openshift_resourcequotas;
use qontract_integration_openshift_resources as openshift_resources;
use qontract_integration_openshift_rolebindings as openshift_rolebindings;
use qontract_integration_openshift_routes as openshift_routes;
use qontract_integration_openshift_vault_secrets as openshift_vault_secrets;
use qontract_integration_prometheus_rules_tester as prometheus_rules_tester;
use qontract_integration_query_validator as query_validator;
use qontract_integration_resource_template_tester as resource_template_tester;
use qontract_resources::Outside;
use qontract_runtime::process::Process;
use qontract_runtime::{About, Room, Staged};

/// All integrations that are compiled in, by name.
pub const ALL: [Entry; 14] = [
    Entry {
        about: openshift_clusterrolebindings::about,
        make: |targets| on_clusters(targets, openshift_clusterrolebindings::room),
    },
    Entry {
        about: openshift_limitranges::about,
        make: |targets| on_clusters(targets, openshift_limitranges::room),
    },
    Entry {
        about: openshift_namespace_labels::about,
        make: |targets| on_clusters(targets, openshift_namespace_labels::room),
    },
    Entry {
        about: openshift_namespaces::about,
        make: |targets| on_clusters(targets, openshift_namespaces::OpenshiftNamespaces::room),
    },
    Entry {
        about: openshift_network_policies::about,
        make: |targets| on_clusters(targets, openshift_network_policies::room),
    },
    Entry {
        about: openshift_prometheus_rules::about,
        make: |targets| looking_outside(targets, openshift_prometheus_rules::room),
    },
    Entry {
        about: openshift_resourcequotas::about,
        make: |targets| on_clusters(targets, openshift_resourcequotas::room),
    },
    Entry {
        about: openshift_resources::about,
        make: |targets| looking_outside(targets, openshift_resources::room),
    },
    Entry {
        about: openshift_rolebindings::about,
        make: |targets| on_clusters(targets, openshift_rolebindings::room),
    },
    Entry {
        about: openshift_routes::about,
        make: |targets| looking_outside(targets, openshift_routes::room),
    },
    Entry {
        about: openshift_vault_secrets::about,
        make: |targets| looking_outside(targets, openshift_vault_secrets::room),
    },
    Entry {
        about: prometheus_rules_tester::about,
        make: |targets| {
            let promtool = targets.promtool().clone();
            Ok(Room::function(prometheus_rules_tester::PrometheusRulesTester::new(promtool)))
        },
    },
    Entry {
        about: query_validator::about,
        make: |_| Ok(Room::function(query_validator::QueryValidator::default())),
    },
    Entry {
        about: resource_template_tester::about,
        make: |_| Ok(Room::function(resource_template_tester::ResourceTemplateTester::default())),
    },
];

/// The registry of this binary.
pub const REGISTRY: Registry = Registry::new(&ALL);

/// A room that works on clusters.
fn on_clusters<S: Staged>(targets: &Targets, room: fn(Arc<dyn Kubernetes>) -> S) -> anyhow::Result<Room> {
    Ok(Room::staged(room(Arc::clone(targets.kubernetes()?))))
}

/// A room that works on clusters, and looks up what lies outside.
fn looking_outside<S: Staged>(
    targets: &Targets,
    room: fn(Arc<Outside>, Arc<dyn Kubernetes>) -> S,
) -> anyhow::Result<Room> {
    Ok(Room::staged(room(Arc::clone(targets.outside()), Arc::clone(targets.kubernetes()?))))
}

/// What the integrations say about themselves that a command line can mean: those of the binary, and those of the process
/// form that it names.
pub fn known(arguments: &[OsString]) -> Vec<About> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    // What is wrong with the configuration is told by the command that reads it.
    let config = configured(&words).unwrap_or_default();
    let mut abouts: Vec<About> = ALL.iter().map(|entry| (entry.about)()).collect();
    for (name, registered) in &config.integrations {
        abouts.retain(|about| about.name != *name);
        let process = words.contains(&name.as_str()).then(|| Process::describe(name, registered.program()));
        abouts.push(match process {
            Some(Ok(process)) => Room::process(process).about().clone(),
            // Not asked for, or told about when it is made.
            _ => About::new(name.clone(), "An integration of the process form"),
        });
    }
    abouts.sort_by(|a, b| a.name.cmp(&b.name));
    abouts
}

/// The configuration that a command line names.
fn configured(words: &[&str]) -> anyhow::Result<Config> {
    let named = words.iter().zip(words.iter().skip(1)).find(|(flag, _)| **flag == "--config");
    let given = words.iter().find_map(|word| word.strip_prefix("--config="));
    let file = given.or(named.map(|(_, file)| *file)).map(PathBuf::from);
    // `up` reaches real targets, and the established tools read a configuration, only if it is named.
    let is_named = matches!(words.get(1), Some(&("up" | "peer")));
    if is_named { Config::read(file.as_deref()) } else { Config::find(file.as_deref()) }
}

/// Why a command line names an integration that is not known.
pub fn unknown(name: &str, arguments: &[OsString]) -> anyhow::Error {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match configured(&words) {
        Ok(config) => REGISTRY.unknown(name, &config),
        Err(wrong) => wrong,
    }
}

#[cfg(test)]
mod folders;
#[cfg(test)]
mod tests;
