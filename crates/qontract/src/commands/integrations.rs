//! `qontract integrations`: lists the integrations, and the schemas that one of them reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_cli::printer::Printer;
use qontract_cli::{IntegrationSchemas, Integrations, IntegrationsAction, IntegrationsFormat};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::targets::Targets;
use qontract_diagnostics::shown;
use qontract_graphql::Limits;
use qontract_runtime::{About, Data, FlagKind, LooksUp, Options, Room, Terms, allowed, listing};
use serde_json::{Value, json};

use crate::commands::query::Asked;
use crate::integrations::REGISTRY;

pub fn run(arguments: Integrations, printer: &Printer) -> anyhow::Result<Exit> {
    let config = Config::find_and_note(arguments.config.as_deref(), printer)?;
    match (arguments.action, arguments.output) {
        (None, output) => list(output, &config, printer),
        (Some(IntegrationsAction::List { output: own }), output) => list(own.or(output), &config, printer),
        (Some(IntegrationsAction::Schemas(arguments)), None) => schemas(arguments, &config, printer),
        (Some(IntegrationsAction::Schemas(_)), Some(_)) => {
            Err(UsageError("`--output` applies only to the list of integrations".to_owned()).into())
        }
    }
}

fn list(output: Option<IntegrationsFormat>, config: &Config, printer: &Printer) -> anyhow::Result<Exit> {
    let integrations = REGISTRY.all(config, &Targets::none(), printer)?;
    let abouts: Vec<&About> = integrations.iter().map(Room::about).collect();
    match output.unwrap_or_default() {
        IntegrationsFormat::Text => {
            let width = abouts.iter().map(|about| about.name.len()).max().unwrap_or_default();
            for about in abouts {
                printer.text(&format!("{:width$}  {}\n", about.name, shown(&about.description)))?;
            }
        }
        IntegrationsFormat::Name => {
            for about in abouts {
                printer.text(&format!("{}\n", shown(&about.name)))?;
            }
        }
        IntegrationsFormat::Json => {
            let list: Vec<Value> = abouts
                .iter()
                .map(|about| object(about, config.integrations.contains_key(&about.name)))
                .collect();
            printer.json(format!("{:#}\n", Value::Array(list)).as_bytes())?;
        }
    }
    Ok(Exit::Ok)
}

/// An integration as a JSON object.
fn object(about: &About, is_program: bool) -> Value {
    let flags: Vec<Value> = about
        .flags
        .iter()
        .map(|flag| {
            let selects = match flag.kind {
                FlagKind::Selects(dimension) => Some(dimension),
                _ => None,
            };
            json!({"name": flag.name, "help": flag.help, "selects": selects})
        })
        .collect();
    json!({
        "name": about.name,
        "description": about.description,
        "form": if is_program { "process" } else { "built-in" },
        "flags": flags,
    })
}

/// The list of schemas for the integration's datafile: schemas that its queries can read by the types,
/// schemas that they read in this data, and schemas that every integration lists.
fn schemas(arguments: IntegrationSchemas, config: &Config, printer: &Printer) -> anyhow::Result<Exit> {
    let IntegrationSchemas { name, data } = arguments;
    let integration = REGISTRY.integration(&name, config, &Targets::none())?;
    let asked = Asked::open(data, Limits::default(), printer)?;
    let reach = allowed::reach(&asked.engine, &integration.about().queries)?;
    let mut schemas: BTreeSet<String> = allowed::ALWAYS.map(str::to_owned).into();
    schemas.extend(reach.into_iter().map(|one| one.schema));
    schemas.extend(read(&integration, &asked)?);
    for schema in &schemas {
        printer.text(&format!("- {}\n", shown(schema)))?;
    }
    if integration.about().looks_up != LooksUp::Never {
        printer.note(
            "note: it also runs queries from the data; the schemas that they read have to be listed, too",
        );
    }
    if let Some(listing) = listing::of(&*asked.side.source, &name)? {
        for schema in schemas.difference(&listing.schemas) {
            printer.note(&format!("note: `{}` is not listed yet", shown(schema)));
        }
        if integration.about().looks_up == LooksUp::Never {
            for schema in allowed::unused(&asked.engine, &listing, &schemas) {
                printer.note(&format!("warning: `{}` is listed but never read", shown(&schema)));
            }
        }
    }
    Ok(Exit::Ok)
}

/// The schemas that an integration reads in this data: references may lead to schemas that the types do not
/// show.
fn read(integration: &Room, asked: &Asked) -> anyhow::Result<BTreeSet<String>> {
    let about = integration.about();
    let data = Data::new(Arc::clone(&asked.side.source), Terms::of(about));
    for query in &about.queries {
        data.declared(query)?;
    }
    // Declaring may run further queries. A run reports errors of declaring.
    let _ = integration.declare(&data, &Options::default());
    Ok(data.asked().schemas.into_values().flatten().collect())
}
