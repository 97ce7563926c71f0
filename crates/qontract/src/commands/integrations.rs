//! `qontract integrations`: lists the integrations, or the schemas that one integration reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_cli::printer::Printer;
use qontract_cli::{IntegrationSchemasArgs, IntegrationsAction, IntegrationsArgs, IntegrationsFormat};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::targets::Targets;
use qontract_diagnostics::sanitize;
use qontract_graphql::QueryLimits;
use qontract_runtime::{
    AdHocReads, ArgumentKind, Data, DataError, FlagKind, Integration, IntegrationMeta, Options, QueryPolicy,
    SlotDimensions, allow_list, definition,
};
use serde_json::{Value, json};

use crate::commands::query::QueryableData;
use crate::integrations::REGISTRY;

pub fn run(arguments: IntegrationsArgs, printer: &Printer) -> anyhow::Result<Exit> {
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
    let metas: Vec<&IntegrationMeta> = integrations.iter().map(Integration::meta).collect();
    match output.unwrap_or_default() {
        IntegrationsFormat::Text => {
            let width = metas.iter().map(|meta| meta.name.len()).max().unwrap_or_default();
            for meta in metas {
                printer.text(&format!("{:width$}  {}\n", meta.name, sanitize(&meta.description)))?;
            }
        }
        IntegrationsFormat::Name => {
            for meta in metas {
                printer.text(&format!("{}\n", sanitize(&meta.name)))?;
            }
        }
        IntegrationsFormat::Json => {
            let list: Vec<Value> = metas.iter().map(|meta| object(meta, form(&meta.name, config))).collect();
            printer.json(format!("{:#}\n", Value::Array(list)).as_bytes())?;
        }
    }
    Ok(Exit::Ok)
}

/// The form of an integration.
fn form(name: &str, config: &Config) -> &'static str {
    if config.integrations.contains_key(name) {
        "process"
    } else if config.foreign.contains_key(name) {
        "foreign"
    } else {
        "built-in"
    }
}

/// An integration as a JSON object.
fn object(meta: &IntegrationMeta, form: &str) -> Value {
    let flags: Vec<Value> = meta
        .flags
        .iter()
        .map(|flag| {
            let (selects, argument) = match flag.kind {
                FlagKind::Selects(dimension) => (Some(dimension), None),
                FlagKind::Argument(kind) => (None, Some(argument_word(kind))),
                _ => (None, None),
            };
            json!({
                "name": flag.name,
                "help": flag.help,
                "selects": selects,
                "argument": argument,
                "short": flag.short,
                "variable": flag.variable,
                "prints": flag.kind == FlagKind::Print,
            })
        })
        .collect();
    let slots_by = match &meta.slot_dimensions {
        SlotDimensions::Only(dimension) => Some(dimension),
        SlotDimensions::All | SlotDimensions::WithoutCaller => None,
    };
    json!({
        "name": meta.name,
        "description": meta.description,
        "form": form,
        "slots_by": slots_by,
        "flags": flags,
    })
}

/// How often a positional argument may be given, in the terms that a program uses to describe itself.
fn argument_word(kind: ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::Required => "required",
        ArgumentKind::Optional => "optional",
        ArgumentKind::Repeated => "repeated",
    }
}

/// Prints the schemas for the integration's datafile: schemas that its queries can read according to the
/// types, schemas that they read in this data, and schemas that every integration lists.
fn schemas(arguments: IntegrationSchemasArgs, config: &Config, printer: &Printer) -> anyhow::Result<Exit> {
    let IntegrationSchemasArgs { name, data } = arguments;
    let integration = REGISTRY.integration(&name, config, &Targets::none())?;
    let queryable = QueryableData::open(data, QueryLimits::default(), printer)?;
    let reach = allow_list::reachability(&queryable.engine, &integration.meta().queries)?;
    let mut schemas: BTreeSet<String> = allow_list::IMPLICIT_SCHEMAS.map(str::to_owned).into();
    schemas.extend(reach.schemas.iter().map(|one| one.schema.clone()));
    schemas.extend(read(&integration, &queryable)?);
    for schema in &schemas {
        printer.text(&format!("- {}\n", sanitize(schema)))?;
    }
    if integration.meta().ad_hoc_reads != AdHocReads::Never {
        printer.note(
            "note: the integration also runs queries from the data; list the schemas that they read as well",
        );
    }
    let listing = match definition::of(&*queryable.data.source, &name) {
        // The datafile to complete may itself be invalid, for example because its list is empty.
        Err(error @ (DataError::Refused { .. } | DataError::UnknownFields { .. })) => {
            printer.note(&format!("note: not compared with the data: {}", sanitize(&error.to_string())));
            None
        }
        listing => listing?,
    };
    if let Some(listing) = listing {
        for schema in schemas.difference(&listing.schemas) {
            printer.note(&format!("note: `{}` is not listed yet", sanitize(schema)));
        }
        if integration.meta().ad_hoc_reads == AdHocReads::Never {
            for schema in allow_list::unused_schemas(&reach, &listing, &schemas) {
                printer.note(&format!("warning: `{}` is listed but never read", sanitize(&schema)));
            }
        }
    }
    Ok(Exit::Ok)
}

/// The schemas that an integration reads in this data. They include schemas that the types do not name, to
/// which references may lead.
fn read(integration: &Integration, queryable: &QueryableData) -> anyhow::Result<BTreeSet<String>> {
    let meta = integration.meta();
    let data = Data::new(Arc::clone(&queryable.data.source), QueryPolicy::of(meta));
    for query in &meta.queries {
        data.query_declared(query)?;
    }
    // Declaring may run further queries. Errors of declaring are ignored here, because a run reports them.
    let _ = integration.declare(&data, &Options::default());
    Ok(data.query_log().schemas.into_values().flatten().collect())
}
