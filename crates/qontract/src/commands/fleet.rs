//! `qontract fleet`: the shards of integrations, and the objects that run them.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_cli::printer::Printer;
use qontract_cli::{FleetAction, FleetArgs, FleetFormat, FleetStatusArgs};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::fleet_status::{self, FleetRow, FleetShard};
use qontract_daemon::pinned_data::PinnedData;
use qontract_daemon::targets::{SandboxLocation, Targets};
use qontract_diagnostics::sanitize;
use qontract_diagnostics::suggest::did_you_mean;
use qontract_graphql::QueryLimits;
use qontract_integration_integrations_manager::{self as integrations_manager, DeclaredShard};
use qontract_runtime::{Data, Options, QueryPolicy};

use super::query::QueryableData;
use crate::integrations::fleet_commands;

pub fn run(arguments: FleetArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match arguments.action {
        FleetAction::Plan { arguments } => {
            let words = ["qontract", "reconcile", integrations_manager::NAME, "--dry-run"];
            let words: Vec<OsString> = words.into_iter().map(OsString::from).chain(arguments).collect();
            Ok(crate::run_command(&words, None))
        }
        FleetAction::Status(fleet) => {
            let output = fleet.output;
            let shards = shards(fleet, printer)?;
            let rows: Vec<&FleetRow> = shards.iter().map(|shard| &shard.shown).collect();
            match output {
                FleetFormat::Text => printer.styled(&fleet_status::table_text(&rows))?,
                FleetFormat::Json => printer.json(&json(&rows)?)?,
            }
            Ok(Exit::Ok)
        }
        FleetAction::Explain { shard, fleet } => {
            let output = fleet.output;
            let shards = shards(fleet, printer)?;
            let full = format!("qontract-reconcile-{shard}");
            let is_it = |one: &&FleetShard| one.shown.name == shard || one.shown.name == full;
            let rows: Vec<&FleetRow> = shards.iter().filter(is_it).map(|one| &one.shown).collect();
            if rows.is_empty() {
                let names = shards.iter().map(|one| one.shown.name.trim_start_matches("qontract-reconcile-"));
                let near = did_you_mean(&shard, names).map(|near| format!("; {near}")).unwrap_or_default();
                return Err(UsageError(format!("the data declares no shard `{shard}`{near}")).into());
            }
            match output {
                FleetFormat::Text => {
                    for row in &rows {
                        printer.text(&fleet_status::explanation(row))?;
                    }
                }
                FleetFormat::Json => printer.json(&json(&rows)?)?,
            }
            Ok(Exit::Ok)
        }
    }
}

fn json(rows: &[&FleetRow]) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(rows).context("cannot write JSON")?;
    text.push(b'\n');
    Ok(text)
}

/// The shards that the data declares, with their live state.
fn shards(arguments: FleetStatusArgs, printer: &Printer) -> anyhow::Result<Vec<FleetShard>> {
    let FleetStatusArgs { data, sandbox, config, upstream, environment_name, output: _ } = arguments;
    let config = Config::find_and_note(config.as_deref(), printer)?;
    let location = SandboxLocation { folder: sandbox.as_deref(), repo: None };
    let targets = Targets::new(&config, location, Mode::DryRun)?;
    let queryable = QueryableData::open(data, QueryLimits::default(), printer)?;
    let source = Arc::clone(&queryable.data.source);
    let data = Data::new(source, QueryPolicy::of(&integrations_manager::meta()));
    let mut options = Options::default();
    for (flag, value) in [("upstream", upstream), ("environment-name", environment_name)] {
        if let Some(value) = value {
            options.add(flag, value);
        }
    }
    let declared = integrations_manager::declared_shards(&data, &options, &fleet_commands(&targets));
    let declared = declared.map_err(|fault| anyhow::anyhow!("{fault}"))?;
    for fault in &declared.faults {
        printer.note(&format!("error: {}", sanitize(&fault.to_string())));
    }
    let mut shards: Vec<FleetShard> =
        declared.shards.into_iter().map(|shard| fleet_shard(shard, &queryable.data)).collect();
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let threads = threads.context("cannot start threads")?;
    if let Ok(kubernetes) = targets.kubernetes() {
        shards = threads.block_on(fleet_status::with_live_state(&**kubernetes, shards));
    }
    if let Some(prometheus) = targets.prometheus()?
        && let Err(why) = threads.block_on(fleet_status::add_last_runs(&prometheus, &mut shards))
    {
        printer.note(&format!("warning: the last runs are not shown: {}", sanitize(&why)));
    }
    Ok(shards)
}

fn fleet_shard(shard: DeclaredShard, data: &PinnedData) -> FleetShard {
    let DeclaredShard { cluster, namespace, workload, strategy, shard_id, is_balanced, place } = shard;
    let declared = place.map(|place| data.with_lines(|line| line(&place))).unwrap_or_default();
    let disabled = workload.shard.is_disabled();
    let shown = FleetRow {
        integration: workload.integration,
        kind: workload.kind.as_str().to_owned(),
        name: workload.name,
        cluster: cluster.name.clone(),
        namespace,
        strategy,
        arguments: workload.shard.extra_args,
        disabled,
        declared,
        ..FleetRow::default()
    };
    FleetShard { cluster, shown, shard_id, is_balanced }
}
