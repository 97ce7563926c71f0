//! Registry of the integrations: those that are compiled in, and the process integrations of the
//! configuration.

use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_config::{Config, ForeignTable, UsageError};
use qontract_diagnostics::MessageSink;
use qontract_diagnostics::suggest::did_you_mean;
use qontract_objects::{ManagedObjects, ObjectIntegration, ObjectProgram, object_meta, with_print_flag};
use qontract_runtime::foreign::ForeignIntegration;
use qontract_runtime::process::ProcessIntegration;
use qontract_runtime::{Fault, Function, Integration, IntegrationMeta, Options, StagedIntegration};

use crate::data_endpoint::LoopbackEndpoint;
use crate::exit::SandboxUnsupported;
use crate::run_settings::RunSettings;
use crate::targets::Targets;

/// An integration that is compiled in.
#[derive(Clone, Copy, Debug)]
pub struct IntegrationEntry {
    /// Returns the metadata of the integration.
    pub meta: fn() -> IntegrationMeta,
    /// Creates the integration for these targets.
    pub create: fn(&Targets) -> anyhow::Result<Integration>,
}

impl IntegrationEntry {
    /// Creates an entry for an integration that is created by a function.
    pub const fn new(
        meta: fn() -> IntegrationMeta,
        create: fn(&Targets) -> anyhow::Result<Integration>,
    ) -> Self {
        Self { meta, create }
    }

    /// Creates an entry for an integration that manages Kubernetes objects.
    pub const fn objects<I: ObjectIntegration + Default>() -> Self {
        Self {
            meta: || object_meta(&I::default()),
            create: |targets| {
                let (kubernetes, lookups) = (targets.kubernetes()?, targets.lookups());
                let objects = ManagedObjects::new(I::default(), Arc::clone(kubernetes), Arc::clone(lookups));
                Ok(Integration::staged(objects))
            },
        }
    }

    /// Creates an entry for an integration of the staged form.
    pub const fn staged<I: StagedIntegration + Default>() -> Self {
        Self { meta: || I::default().meta().clone(), create: |_| Ok(Integration::staged(I::default())) }
    }

    /// Creates an entry for an integration of the function form.
    pub const fn function<I: Function + Default>() -> Self {
        Self { meta: || I::default().meta().clone(), create: |_| Ok(Integration::function(I::default())) }
    }
}

/// All integrations of a binary.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    entries: &'static [IntegrationEntry],
}

/// Describes the requirement that this machine lacks for an integration, with the hint.
pub fn describe_missing(fault: &Fault) -> String {
    let hint = fault.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{}{hint}", fault.text)
}

/// The reason why an integration cannot run unless the command line names it: this machine lacks a requirement, or
/// the integration needs an argument.
pub fn unavailable(integration: &Integration) -> Option<Fault> {
    if let Err(fault) = integration.ready() {
        return Some(fault);
    }
    let meta = integration.meta();
    // An invalid variable is ignored here, because the run reports it.
    let options = RunSettings::with_variables(Options::default(), integration).ok()?;
    let argument = options.missing(&meta.flags)?.spelling();
    let fault = Fault::operator(format!("`{}` needs the argument `{argument}`", meta.name));
    Some(fault.hint(format!("run it with `qontract reconcile {} {argument}`", meta.name)))
}

/// Whether an integration is registered in the configuration.
fn is_configured(name: &str, config: &Config) -> bool {
    config.integrations.contains_key(name) || config.foreign.contains_key(name)
}

/// Creates a foreign integration. Fails for real runs unless the configuration allows them.
fn foreign(
    name: &str,
    table: &ForeignTable,
    config: &Config,
    targets: &Targets,
) -> anyhow::Result<Integration> {
    if targets.is_sandbox() {
        return Err(SandboxUnsupported::Command(name.to_owned()).into());
    }
    if targets.mode() == Mode::Real && !table.real_runs {
        return Err(UsageError(format!(
            "real runs of the command of `{name}` are not allowed: pass `--dry-run`, or set `foreign.{name}.real_runs`"
        ))
        .into());
    }
    if targets.mode() == Mode::Real && !matches!(config.guards.write_bounds(), Ok(None)) {
        return Err(UsageError(format!(
            "real runs of the command of `{name}` are not allowed: its requests cannot be compared with `guards.writes`; pass `--dry-run`"
        ))
        .into());
    }
    let endpoint = LoopbackEndpoint { config: table.config.clone(), server: config.graphql.clone() };
    let command = table.command(name, targets.program_log());
    Ok(Integration::foreign(ForeignIntegration::new(command, Arc::new(endpoint))))
}

impl Registry {
    /// Creates a registry of these integrations.
    pub const fn new(entries: &'static [IntegrationEntry]) -> Self {
        Self { entries }
    }

    /// The metadata of the compiled-in integrations, in registry order.
    pub fn metas(self) -> impl Iterator<Item = IntegrationMeta> {
        self.entries.iter().map(|entry| (entry.meta)())
    }

    /// The metadata of the compiled-in integrations and of those of a configuration, by name. The metadata of the
    /// integration `selected` comes from its program, which is started to describe itself.
    pub fn metas_with(self, config: &Config, selected: Option<&str>) -> Vec<IntegrationMeta> {
        let mut metas: Vec<IntegrationMeta> = self.metas().collect();
        for (name, registered) in &config.integrations {
            metas.retain(|meta| meta.name != *name);
            let is_selected = selected == Some(name.as_str());
            let process = is_selected.then(|| ProcessIntegration::describe(name, registered.program()));
            metas.push(match process {
                Some(Ok(process)) if process.declares_objects() => with_print_flag(process.meta().clone()),
                Some(Ok(process)) => process.meta().clone(),
                // The description of this program is not needed, or it has an error, which is reported when the
                // integration is created.
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

    /// Whether an integration is compiled in or configured.
    pub fn has(self, name: &str, config: &Config) -> bool {
        is_configured(name, config) || self.metas().any(|meta| meta.name == name)
    }

    /// Whether an integration runs first because other integrations depend on its objects.
    pub fn runs_first(self, name: &str) -> bool {
        self.metas().any(|meta| meta.name == name && meta.runs_first)
    }

    /// The error for an integration that is neither compiled in nor configured.
    pub fn unknown(self, name: &str, config: &Config) -> anyhow::Error {
        let names: Vec<String> = self.metas().map(|meta| meta.name).collect();
        let names =
            names.iter().chain(config.integrations.keys()).chain(config.foreign.keys()).map(String::as_str);
        let list = || "`qontract integrations` lists them".to_owned();
        let hint = did_you_mean(name, names).unwrap_or_else(list);
        UsageError(format!("no such integration: `{name}`; {hint}")).into()
    }

    /// Creates the integration with this name.
    pub fn integration(self, name: &str, config: &Config, targets: &Targets) -> anyhow::Result<Integration> {
        if config.integrations.contains_key(name) && config.foreign.contains_key(name) {
            let text = format!("`{name}` is in both `[integrations]` and `[foreign]`");
            return Err(UsageError(text).into());
        }
        if let Some(program) = config.integrations.get(name) {
            let process = ProcessIntegration::describe(name, targets.program(program.program()))
                .with_context(|| format!("cannot start integration `{name}`"))?;
            if targets.is_sandbox() && !process.supports_sandbox() {
                return Err(SandboxUnsupported::Program(name.to_owned()).into());
            }
            if process.declares_objects() {
                let (kubernetes, lookups) = (targets.kubernetes()?, targets.lookups());
                let program = ObjectProgram::new(process);
                let objects = ManagedObjects::new(program, Arc::clone(kubernetes), Arc::clone(lookups));
                return Ok(Integration::staged(objects));
            }
            return Ok(Integration::process(process));
        }
        if let Some(table) = config.foreign.get(name) {
            return foreign(name, table, config, targets);
        }
        match self.entries.iter().find(|entry| (entry.meta)().name == name) {
            Some(entry) => (entry.create)(targets),
            None => Err(self.unknown(name, config)),
        }
    }

    /// Creates the compiled-in integration with this name; `None` if there is none.
    pub fn compiled(self, name: &str, targets: &Targets) -> anyhow::Result<Option<Integration>> {
        let entry = self.entries.iter().find(|entry| (entry.meta)().name == name);
        entry.map(|entry| (entry.create)(targets)).transpose()
    }

    /// Creates all integrations. Targets are only contacted when an integration runs. A configured integration that
    /// cannot be started is reported and omitted.
    pub fn all(
        self,
        config: &Config,
        targets: &Targets,
        messages: &dyn MessageSink,
    ) -> anyhow::Result<Vec<Integration>> {
        let mut names: Vec<String> = self.metas().map(|meta| meta.name).collect();
        names.extend(config.integrations.keys().chain(config.foreign.keys()).cloned());
        names.sort();
        names.dedup();
        let mut integrations = Vec::new();
        for name in &names {
            match self.integration(name, config, targets) {
                Ok(integration) => integrations.push(integration),
                Err(error) if is_configured(name, config) => {
                    messages.note(&format!("warning: {error:#}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(integrations)
    }
}
