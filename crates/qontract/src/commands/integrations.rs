//! `qontract integrations`: what there is, and what each of them reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_config::Config;
use qontract_daemon::exit::Exit;
use qontract_daemon::targets::Targets;
use qontract_diagnostics::shown;
use qontract_graphql::Limits;
use qontract_runtime::{Data, LooksUp, Options, Room, Terms, allowed, listing};

use qontract_cli::printer::Printer;
use qontract_cli::{IntegrationSchemas, Integrations, IntegrationsAction};

use crate::commands::query::Asked;
use crate::integrations::REGISTRY;

pub fn run(arguments: Integrations, printer: &Printer) -> anyhow::Result<Exit> {
    let config = Config::find_and_note(arguments.config.as_deref(), printer)?;
    match arguments.action {
        None => list(&config, printer),
        Some(IntegrationsAction::Schemas(arguments)) => schemas(arguments, &config, printer),
    }
}

fn list(config: &Config, printer: &Printer) -> anyhow::Result<Exit> {
    let rooms = REGISTRY.all(config, &Targets::none(), printer)?;
    let width = rooms.iter().map(|room| room.about().name.len()).max().unwrap_or_default();
    for room in &rooms {
        let about = room.about();
        printer.text(&format!("{:width$}  {}\n", about.name, shown(&about.description)))?;
    }
    Ok(Exit::Ok)
}

/// The list for the integration's file: what its queries can read by the types, what they do read of this data, and what every integration lists.
fn schemas(arguments: IntegrationSchemas, config: &Config, printer: &Printer) -> anyhow::Result<Exit> {
    let IntegrationSchemas { name, data } = arguments;
    let room = REGISTRY.integration(&name, config, &Targets::none())?;
    let asked = Asked::open(data, Limits::default(), printer)?;
    let reach = allowed::reach(&asked.engine, &room.about().queries)?;
    let mut schemas: BTreeSet<String> = allowed::ALWAYS.map(str::to_owned).into();
    schemas.extend(reach.into_iter().map(|one| one.schema));
    schemas.extend(read(&room, &asked)?);
    for schema in &schemas {
        printer.text(&format!("- {}\n", shown(schema)))?;
    }
    if room.about().looks_up != LooksUp::Never {
        printer
            .note("note: it also asks queries that stand in the data; what they read in a run has to be listed, too");
    }
    if let Some(listing) = listing::of(&*asked.side.source, &name)? {
        for schema in schemas.difference(&listing.schemas) {
            printer.note(&format!("note: `{}` is not listed yet", shown(schema)));
        }
        if room.about().looks_up == LooksUp::Never {
            for schema in allowed::unused(&asked.engine, &listing, &schemas) {
                printer.note(&format!("warning: `{}` is listed and never read", shown(&schema)));
            }
        }
    }
    Ok(Exit::Ok)
}

/// What an integration reads of this data: references may lead to what the types do not tell of.
fn read(room: &Room, asked: &Asked) -> anyhow::Result<BTreeSet<String>> {
    let about = room.about();
    let data = Data::new(Arc::clone(&asked.side.source), Terms::of(about));
    for query in &about.queries {
        data.declared(query)?;
    }
    // What is declared may ask more. That it cannot be declared is told by a run.
    let _ = room.declare(&data, &Options::default());
    Ok(data.asked().schemas.into_values().flatten().collect())
}
