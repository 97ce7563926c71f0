//! `qontract affected`: which integrations and shards a change can affect, by which rule and because of what.

mod text;

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use qontract_runtime::affected::{self, Pair, Verdict, What};
use qontract_runtime::{Options, Place, Room};
use serde::Serialize;

use crate::cli::{Affected, ReportFormat};
use crate::config::Config;
use crate::data::{ComparedSides, Side};
use crate::exit::{Exit, UsageError};
use crate::input::Opener;
use crate::integrations;
use crate::printer::Printer;
use crate::targets::Targets;

/// Whether and why one integration is affected.
#[derive(Serialize)]
struct Row {
    integration: String,
    affected: bool,
    /// Left out if it is: an integration that the data does not declare cannot be judged.
    #[serde(skip_serializing_if = "is_true")]
    declared: bool,
    rule: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    /// `null` if all of them are.
    shards: Option<Vec<ShardRow>>,
}

#[derive(Serialize)]
struct ShardRow {
    shard: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differs: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
}

pub fn run(arguments: Affected, printer: &Printer) -> anyhow::Result<Exit> {
    let Affected { base, head, integration, verbose, config, repo, output, layout } = arguments;
    let config = Config::find_and_note(config.as_deref(), printer)?;
    let opener = Opener::new(&repo, layout.into(), printer);
    let (base, head) = opener.sides(base, head)?;
    let open = |word: &str, beside: Option<&Side>| {
        Side::open(&opener, word, beside)
            .map_err(|error| error.context(UsageError(format!("cannot open `{word}`"))))
    };
    // The process ends with this command: to free two bundles, document by document, would take a tenth of its time.
    let base = ManuallyDrop::new(open(&base, None)?);
    let head = ManuallyDrop::new(open(&head, Some(&base))?);
    let rooms = integrations::rooms(&config, &Targets::none(), printer)?;
    if let Some(unknown) =
        integration.iter().find(|name| rooms.iter().all(|room| room.about().name != **name))
    {
        return Err(integrations::no_such(unknown, &config));
    }
    let is_chosen = |room: &&Room| integration.is_empty() || integration.contains(&room.about().name);
    let chosen: Vec<&Room> = rooms.iter().filter(is_chosen).collect();
    let defined = affected::defined(chosen.iter().copied(), &*base.source, &*head.source)?;
    let is_defined = |room: &Room| defined.iter().any(|known| known.about().name == room.about().name);
    // Of all integrations, data declares some; data that declares none, or not the one that is asked about, decides nothing.
    let undeclared: Vec<&&Room> = if integration.is_empty() && !defined.is_empty() {
        Vec::new()
    } else {
        chosen.iter().filter(|room| !is_defined(room)).collect()
    };
    let pair = |room| Pair::new(room, Arc::clone(&base.source), Arc::clone(&head.source));
    let sides = ComparedSides::new(&base, &head);
    let mut rows: Vec<Row> = defined.iter().map(|room| row(room, &pair(room), &sides)).collect();
    if !undeclared.is_empty() {
        let names: Vec<String> = undeclared.iter().map(|room| format!("`{}`", room.about().name)).collect();
        let names = if integration.is_empty() { "any integration".to_owned() } else { names.join(", ") };
        printer.note(&format!(
            "warning: neither base nor head declares {names}\nhint: declare it by a datafile of `/app-sre/integration-1.yml`"
        ));
        rows.extend(undeclared.iter().map(|room| Row::undeclared(&room.about().name)));
    }
    match output {
        ReportFormat::Text => printer.styled(&text::render(&rows, verbose))?,
        ReportFormat::Md => printer.text(&text::markdown(&rows))?,
        ReportFormat::Json => printer.json(&[&serde_json::to_vec_pretty(&rows)?[..], b"\n"].concat())?,
    }
    Ok(match rows.iter().any(|row| row.affected) {
        true => Exit::Failure,
        false if undeclared.is_empty() => Exit::Ok,
        false => Exit::Run(UNDECLARED),
    })
}

/// The exit code of an integration that the data does not declare, as of a run.
const UNDECLARED: u8 = 4;

impl Row {
    fn undeclared(integration: &str) -> Self {
        let (integration, rule) = (integration.to_owned(), "not declared in the data".to_owned());
        Row { integration, affected: false, declared: false, rule, causes: Vec::new(), shards: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(value: &bool) -> bool {
    *value
}

fn row(room: &Room, pair: &Pair, sides: &ComparedSides<'_>) -> Row {
    let integration = room.about().name.clone();
    match affected::affected(room, pair, &Options::default()) {
        Verdict::Unaffected(rule) => Row {
            integration,
            affected: false,
            declared: true,
            rule: rule.as_str().to_owned(),
            causes: Vec::new(),
            shards: Some(Vec::new()),
        },
        Verdict::Unknown(fault) => {
            let rule = fault.to_string();
            Row { integration, affected: true, declared: true, rule, causes: Vec::new(), shards: None }
        }
        Verdict::Affected(found) => {
            let places: Vec<Place> = found.causes.iter().filter_map(|cause| cause.place.clone()).collect();
            let line = |place: &Place| sides.line(place, &places);
            Row {
                integration,
                affected: true,
                declared: true,
                rule: found.rule.as_str().to_owned(),
                causes: causes(&found, &line),
                shards: shards(&found, &line),
            }
        }
    }
}

/// Because of what, each line once.
fn causes(found: &affected::Affected, line: &dyn Fn(&Place) -> String) -> Vec<String> {
    let causes = found.causes.iter().map(|cause| {
        let what = match cause.what {
            What::Datafile | What::Resource | What::Integration => "",
            What::Types => "the GraphQL types",
            What::Approval => "the approvals of removals",
        };
        let place = cause.place.as_ref().map(line).unwrap_or_default();
        let removed = if cause.gone { " (removed)" } else { "" };
        format!("{what}{place}{removed}")
    });
    once_each(causes)
}

/// The shards, with each differing line once; nothing if all are affected.
fn shards(found: &affected::Affected, line: &dyn Fn(&Place) -> String) -> Option<Vec<ShardRow>> {
    let comparison = found.comparison.as_ref().filter(|_| !found.all)?;
    let differing = comparison.shards.iter().map(|(key, differences)| ShardRow {
        shard: key.to_string(),
        differs: once_each(differences.iter().filter_map(|one| one.place.as_ref()).map(line)),
        gone: false,
    });
    let gone = comparison.gone.iter().map(|key| ShardRow {
        shard: key.to_string(),
        differs: Vec::new(),
        gone: true,
    });
    Some(differing.chain(gone).collect())
}

fn once_each(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert(line.clone())).collect()
}
