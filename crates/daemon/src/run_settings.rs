//! The settings of runs, used for single runs, loops and plans.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use qontract_access::{Mode, WriteBounds};
use qontract_config::{Config, UsageError, variable};
use qontract_runtime::guard::{Budgets, Ledger};
use qontract_runtime::lease::{Leases, NoLeases};
use qontract_runtime::slot::Slot;
use qontract_runtime::{Bodies, Integration, Options, RunRequest, SelectionObserver, ShardKey};

/// The shards that a run with a base processes; without a base, a run processes all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardScope {
    /// The shards that the change affects.
    #[default]
    Affected,
    /// All shards of an integration that the change affects.
    AllIfAffected,
    /// All shards, even if the change does not affect the integration.
    All,
}

/// The location of the targets of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetLocation {
    /// The targets are in a sandbox.
    Sandbox,
    /// The targets are real target systems.
    Real,
}

impl TargetLocation {
    /// `Sandbox` if a sandbox directory is used, otherwise `Real`.
    pub fn of(sandbox: Option<&Path>) -> Self {
        if sandbox.is_some() { Self::Sandbox } else { Self::Real }
    }
}

/// Settings of runs. The other fields of a [`RunRequest`] belong to one run: its id, clock and data.
#[derive(Clone)]
pub struct RunSettings {
    /// Whether the runs may change target systems.
    pub mode: Mode,
    /// The flags of the integration, with the values that come from environment variables.
    pub options: Options,
    /// The hash slot of this process.
    pub slot: Slot,
    /// The only shards to run; `None` for all shards.
    pub only_shards: Option<BTreeSet<ShardKey>>,
    /// The shards that a run with a base processes.
    pub shards: ShardScope,
    /// Whether a flag that selects a nonexistent shard is an error instead of a warning.
    pub strict_selectors: bool,
    /// Whether the list of allowed schemas is enforced.
    pub validate_schemas: bool,
    /// Whether target addresses that only the head names are contacted.
    pub trust_head: bool,
    /// Whether plans show the content of created objects.
    pub bodies: Bodies,
    /// The removal budgets.
    pub budgets: Budgets,
    /// The removal ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The leases of the shards. Dry runs do not use leases.
    pub leases: Arc<dyn Leases>,
    /// The bounds of the writes of a real run; `None` if the writes are not bounded.
    pub write_bounds: Option<Arc<WriteBounds>>,
    /// The maximum time that a run waits for rollouts; `None` if it only reports them.
    pub await_rollouts: Option<Duration>,
    /// Observes which shards a run processes.
    pub selection: Option<SelectionObserver>,
}

impl RunSettings {
    /// Creates settings with defaults for all other fields.
    pub fn new(mode: Mode, budgets: Budgets, ledger: Arc<dyn Ledger>) -> Self {
        Self {
            mode,
            options: Options::default(),
            slot: Slot::default(),
            only_shards: None,
            shards: ShardScope::default(),
            strict_selectors: false,
            validate_schemas: true,
            trust_head: false,
            bodies: Bodies::default(),
            budgets,
            ledger,
            leases: Arc::new(NoLeases),
            write_bounds: None,
            await_rollouts: None,
            selection: None,
        }
    }

    /// Creates settings with the limits of the configuration and with defaults for all other fields.
    pub fn configured(
        mode: Mode,
        config: &Config,
        location: TargetLocation,
        ledger: Arc<dyn Ledger>,
    ) -> Result<Self, UsageError> {
        let write_bounds = Self::write_bounds(config, location)?.map(Arc::new);
        Ok(Self { write_bounds, ..Self::new(mode, config.guards.budgets(), ledger) })
    }

    /// The bounds of the writes of a real run. The bounds in the configuration do not apply to a sandbox, because
    /// writes to it stay on this machine.
    pub fn write_bounds(
        config: &Config,
        location: TargetLocation,
    ) -> Result<Option<WriteBounds>, UsageError> {
        match location {
            TargetLocation::Sandbox => Ok(None),
            TargetLocation::Real => {
                let bounds = config.guards.write_bounds();
                bounds.map_err(|error| UsageError(format!("`guards.writes`: {error}")))
            }
        }
    }

    /// Adds the values that come from environment variables to the flags.
    pub fn with_variables(mut options: Options, integration: &Integration) -> Result<Options, UsageError> {
        let filled = options.fill_from_environment(&integration.meta().flags, variable);
        filled.map(|()| options).map_err(|error| UsageError(error.to_string()))
    }

    /// Applies the settings to a run of an integration.
    pub fn apply(&self, integration: &Integration, request: &mut RunRequest) {
        // Destructured completely, so that a new field causes a compile error here instead of having no effect.
        let Self {
            mode,
            options,
            slot,
            only_shards,
            shards,
            strict_selectors,
            validate_schemas,
            trust_head,
            bodies,
            budgets,
            ledger,
            leases,
            write_bounds,
            await_rollouts,
            selection,
        } = self;
        request.mode = *mode;
        request.set_options(options.clone(), &integration.meta().flags);
        request.slot = *slot;
        request.only_shards.clone_from(only_shards);
        request.only_affected = *shards == ShardScope::Affected;
        request.include_unaffected = *shards == ShardScope::All;
        request.strict_selectors = *strict_selectors;
        request.validate_schemas = *validate_schemas;
        request.trust_head = *trust_head;
        request.bodies = *bodies;
        request.budgets = *budgets;
        request.ledger = Arc::clone(ledger);
        request.leases = Arc::clone(leases);
        request.write_bounds.clone_from(write_bounds);
        request.await_rollouts = *await_rollouts;
        request.selection.clone_from(selection);
    }
}
