//! The integrations of this binary. `cargo xtask new-integration` makes one and adds its line here.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use qontract_diagnostics::suggest::did_you_mean;
use qontract_integration_openshift_namespace_labels as openshift_namespace_labels;
use qontract_integration_prometheus_rules_tester as prometheus_rules_tester;
use qontract_objects::{ManagedObjects, ObjectIntegration};
use qontract_runtime::process::Process;
use qontract_runtime::{About, Function, Room, Staged};

use crate::config::Config;
use crate::printer::Printer;
use crate::targets::Targets;

/// All integrations that are compiled in, by name.
pub const ALL: &[Entry] = &[
    Entry::objects::<qontract_integration_openshift_clusterrolebindings::OpenshiftClusterrolebindings>(),
    Entry::objects::<qontract_integration_openshift_limitranges::OpenshiftLimitranges>(),
    Entry::new(openshift_namespace_labels::about, namespace_labels),
    Entry::objects::<qontract_integration_openshift_namespaces::OpenshiftNamespaces>(),
    Entry::objects::<qontract_integration_openshift_network_policies::OpenshiftNetworkPolicies>(),
    Entry::objects::<qontract_integration_openshift_prometheus_rules::OpenshiftPrometheusRules>(),
    Entry::objects::<qontract_integration_openshift_resourcequotas::OpenshiftResourcequotas>(),
    Entry::objects::<qontract_integration_openshift_resources::OpenshiftResources>(),
    Entry::objects::<qontract_integration_openshift_rolebindings::OpenshiftRolebindings>(),
    Entry::objects::<qontract_integration_openshift_routes::OpenshiftRoutes>(),
    Entry::objects::<qontract_integration_openshift_vault_secrets::OpenshiftVaultSecrets>(),
    Entry::new(prometheus_rules_tester::about, rules_tester),
    Entry::function::<qontract_integration_query_validator::QueryValidator>(),
    Entry::function::<qontract_integration_resource_template_tester::ResourceTemplateTester>(),
];

/// An integration that is compiled in.
pub struct Entry {
    /// Its name, queries and flags.
    pub about: fn() -> About,
    /// The integration on these targets.
    pub make: fn(&Targets) -> anyhow::Result<Room>,
}

impl Entry {
    /// An integration that needs more than a default value.
    const fn new(about: fn() -> About, make: fn(&Targets) -> anyhow::Result<Room>) -> Self {
        Self { about, make }
    }

    /// An integration that manages Kubernetes objects.
    const fn objects<I: ObjectIntegration + Default>() -> Self {
        Self {
            about: || I::default().about(),
            make: |targets| {
                let (kubernetes, lookups) = (targets.kubernetes()?, targets.outside());
                let objects = ManagedObjects::new(I::default(), Arc::clone(kubernetes), Arc::clone(lookups));
                Ok(Room::staged(objects))
            },
        }
    }

    /// An integration of the staged form.
    #[allow(dead_code, reason = "`cargo xtask new-integration` adds lines of this form")]
    const fn staged<I: Staged + Default>() -> Self {
        Self { about: || I::default().about().clone(), make: |_| Ok(Room::staged(I::default())) }
    }

    /// An integration of the function form.
    const fn function<I: Function + Default>() -> Self {
        Self { about: || I::default().about().clone(), make: |_| Ok(Room::function(I::default())) }
    }
}

fn namespace_labels(targets: &Targets) -> anyhow::Result<Room> {
    let kubernetes = Arc::clone(targets.kubernetes()?);
    Ok(Room::staged(openshift_namespace_labels::OpenshiftNamespaceLabels::new(kubernetes)))
}

fn rules_tester(targets: &Targets) -> anyhow::Result<Room> {
    let promtool = targets.promtool().clone();
    Ok(Room::function(prometheus_rules_tester::PrometheusRulesTester::new(promtool)))
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
        Ok(config) => no_such(name, &config),
        Err(wrong) => wrong,
    }
}

/// The error for an integration that is neither compiled in nor configured.
pub fn no_such(name: &str, config: &Config) -> anyhow::Error {
    let names: Vec<String> = ALL.iter().map(|entry| (entry.about)().name).collect();
    let names = names.iter().chain(config.integrations.keys()).map(String::as_str);
    let list = || "`qontract integrations` lists them".to_owned();
    let hint = did_you_mean(name, names).unwrap_or_else(list);
    crate::exit::UsageError(format!("no such integration: `{name}`; {hint}")).into()
}

/// A program of the process form would change its real target system, although a sandbox is asked for.
#[derive(Debug)]
pub struct SandboxUnsupported(String);

impl fmt::Display for SandboxUnsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        write!(
            f,
            "the program of `{name}` does not support a sandbox: it would change its real target system; \
             one that works on the folder `$QONTRACT_SANDBOX` answers `describe` with `\"sandbox\": true`"
        )
    }
}

impl std::error::Error for SandboxUnsupported {}

/// The integration of a name.
pub fn room(name: &str, config: &Config, targets: &Targets) -> anyhow::Result<Room> {
    if let Some(program) = config.integrations.get(name) {
        let process = Process::describe(name, targets.program(program.program()))
            .with_context(|| format!("the integration `{name}` cannot be started"))?;
        if targets.is_sandbox() && !process.supports_sandbox() {
            return Err(SandboxUnsupported(name.to_owned()).into());
        }
        return Ok(Room::process(process));
    }
    match ALL.iter().find(|entry| (entry.about)().name == name) {
        Some(entry) => (entry.make)(targets),
        None => Err(no_such(name, config)),
    }
}

/// All integrations, on targets that are only needed once they run. One that cannot be started is told about, and the
/// others go on.
pub fn rooms(config: &Config, targets: &Targets, printer: &Printer) -> anyhow::Result<Vec<Room>> {
    let mut names: Vec<String> = ALL.iter().map(|entry| (entry.about)().name).collect();
    names.extend(config.integrations.keys().cloned());
    names.sort();
    names.dedup();
    let mut rooms = Vec::new();
    for name in &names {
        match room(name, config, targets) {
            Ok(room) => rooms.push(room),
            Err(error) if config.integrations.contains_key(name) => {
                printer.note(&format!("warning: {error:#}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(rooms)
}

#[cfg(test)]
mod folders;
#[cfg(test)]
mod tests;
