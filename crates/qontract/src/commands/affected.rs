//! `qontract affected`: which integrations and shards a change can affect, by which rule and because of what.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_cli::printer::Printer;
use qontract_cli::{Affected, ReportFormat};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::input::InputResolver;
use qontract_daemon::pinned::{ComparedData, PinnedData};
use qontract_daemon::targets::Targets;
use qontract_report::affected::{self as affected_report, Row, ShardRow};
use qontract_report::{FileName, Location};
use qontract_runtime::affected::{self, Pair, Verdict, What};
use qontract_runtime::{Options, Place, Room};

use crate::integrations::REGISTRY;

pub fn run(arguments: Affected, printer: &Printer) -> anyhow::Result<Exit> {
    let Affected { base, head, integration, verbose, config, repo, output, layout } = arguments;
    let config = Config::find_and_note(config.as_deref(), printer)?;
    let opener = InputResolver::new(&repo, layout.into(), printer);
    let (base, head) = opener.sides(base, head)?;
    let open = |word: &str, beside: Option<&PinnedData>| {
        PinnedData::open(&opener, word, beside)
            .map_err(|error| error.context(UsageError(format!("cannot open `{word}`"))))
    };
    let base = open(&base, None)?;
    let head = open(&head, Some(&base))?;
    // The process ends with this command: to free two bundles, document by document, would take a tenth of its time. Only they are kept; files that are
    // read from Git are in a temporary folder, which goes.
    std::mem::forget([Arc::clone(&base.source), Arc::clone(&head.source)]);
    let rooms = REGISTRY.all(&config, &Targets::none(), printer)?;
    if let Some(unknown) =
        integration.iter().find(|name| rooms.iter().all(|room| room.about().name != **name))
    {
        return Err(REGISTRY.unknown(unknown, &config));
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
    let sides = ComparedData::new(&base, &head);
    // In text, files have names that lead there from the working directory.
    let file_name = |file: &str| match output {
        ReportFormat::Text => head.display(file),
        ReportFormat::Md | ReportFormat::Json => file.to_owned(),
    };
    let names = Names { sides: &sides, file_name: &file_name };
    let mut rows: Vec<Row> = defined.iter().map(|room| row(room, &pair(room), &names)).collect();
    if !undeclared.is_empty() {
        let names: Vec<String> = undeclared.iter().map(|room| format!("`{}`", room.about().name)).collect();
        let names = if integration.is_empty() { "any integration".to_owned() } else { names.join(", ") };
        printer.note(&format!(
            "warning: neither base nor head declares {names}\nhint: declare it by a datafile of `/app-sre/integration-1.yml`"
        ));
        rows.extend(undeclared.iter().map(|room| Row::undeclared(&room.about().name)));
    }
    match output {
        ReportFormat::Text => printer.styled(&affected_report::text(&rows, verbose))?,
        ReportFormat::Md => printer.text(&affected_report::markdown(&rows))?,
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

/// How places are called.
struct Names<'a> {
    sides: &'a ComparedData<'a>,
    file_name: FileName<'a>,
}

impl Names<'_> {
    /// `file:line` of what differs at a place; `causes` are all changes that affect the integration.
    fn line(&self, place: &Place, causes: &[Place]) -> String {
        let at = Location::parse(&self.sides.line(place, causes));
        Location { file: (self.file_name)(&at.file), ..at }.to_string()
    }

    /// The name that a renamed file had before.
    fn old_file(&self, place: &Place, old: &str) -> String {
        (self.file_name)(&self.sides.file(&Place { path: old.into(), ..place.clone() }))
    }
}

fn row(room: &Room, pair: &Pair, names: &Names<'_>) -> Row {
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
            let line = |place: &Place| names.line(place, &places);
            Row {
                integration,
                affected: true,
                declared: true,
                rule: found.rule.as_str().to_owned(),
                causes: causes(&found, &line, names),
                shards: shards(&found, &line),
            }
        }
    }
}

/// Because of what, each line once.
fn causes(found: &affected::Affected, line: &dyn Fn(&Place) -> String, names: &Names<'_>) -> Vec<String> {
    let causes = found.causes.iter().map(|cause| {
        let what = match cause.what {
            What::Datafile | What::Resource | What::Integration => "",
            What::Types => "the GraphQL types",
            What::Approval => "the approvals of removals",
        };
        let place = cause.place.as_ref().map(line).unwrap_or_default();
        let removed = if cause.gone { " (removed)" } else { "" };
        let renamed = cause.place.as_ref().zip(cause.renamed_from.as_deref());
        let renamed = renamed.map(|(place, old)| format!(" (renamed from {})", names.old_file(place, old)));
        format!("{what}{place}{removed}{}", renamed.unwrap_or_default())
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
