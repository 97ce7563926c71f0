//! `qontract affected`: which integrations and shards a change can affect, by which rule and because of what.

use std::sync::Arc;

use qontract_diagnostics::shown;
use qontract_runtime::affected::{self, Pair, Verdict, What};
use qontract_runtime::{Options, Place, Room};
use serde::Serialize;

use crate::cli::{Affected, FindingsFormat};
use crate::config::Config;
use crate::data::Side;
use crate::exit::{Exit, UsageError};
use crate::input::Opener;
use crate::integrations;
use crate::printer::Printer;
use crate::targets::Targets;

/// What is told about one integration.
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
    let Affected { base, head, integration, config, repo, output, layout } = arguments;
    let config = Config::read(config.as_deref())?;
    let opener = Opener::new(&repo, layout.into(), printer);
    let open = |word: &str, beside: Option<&Side>| {
        Side::open(&opener, word, beside)
            .map_err(|error| error.context(UsageError(format!("cannot open `{word}`"))))
    };
    let base = open(&base, None)?;
    let head = open(&head, Some(&base))?;
    let rooms = integrations::rooms(&config, &Targets::none(), printer)?;
    if let Some(unknown) =
        integration.iter().find(|name| rooms.iter().all(|room| room.about().name != **name))
    {
        return Err(UsageError(format!("there is no integration `{unknown}`")).into());
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
    let mut rows: Vec<Row> = head.with_lines(|head_line| {
        base.with_lines(|base_line| {
            let line = |place: &Place| if head.has(place) { head_line(place) } else { base_line(place) };
            let pair = |room| Pair::new(room, Arc::clone(&base.source), Arc::clone(&head.source));
            defined.iter().map(|room| row(room, &pair(room), &line)).collect()
        })
    });
    if !undeclared.is_empty() {
        let names: Vec<String> = undeclared.iter().map(|room| format!("`{}`", room.about().name)).collect();
        let names = if integration.is_empty() { "any integration".to_owned() } else { names.join(", ") };
        printer.note(&format!(
            "warning: neither base nor head declares {names}\nhint: declare it by a datafile of `/app-sre/integration-1.yml`"
        ));
        rows.extend(undeclared.iter().map(|room| Row::undeclared(&room.about().name)));
    }
    match output {
        FindingsFormat::Text => printer.text(&rows.iter().map(text).collect::<String>())?,
        FindingsFormat::Json => printer.json(&[&serde_json::to_vec_pretty(&rows)?[..], b"\n"].concat())?,
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

fn row(room: &Room, pair: &Pair, line: &dyn Fn(&Place) -> String) -> Row {
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
            let causes = found.causes.iter().map(|cause| {
                let what = match cause.what {
                    What::Datafile | What::Resource | What::Integration => "",
                    What::Types => "the GraphQL types",
                    What::Approval => "the approvals of removals",
                };
                let place = cause.place.as_ref().map(line).unwrap_or_default();
                let gone = if cause.gone { " (gone)" } else { "" };
                format!("{what}{place}{gone}")
            });
            let shards = found.comparison.as_ref().filter(|_| !found.all).map(|comparison| {
                let differing = comparison.shards.iter().map(|(key, differences)| ShardRow {
                    shard: key.to_string(),
                    differs: differences.iter().filter_map(|one| one.place.as_ref()).map(line).collect(),
                    gone: false,
                });
                let gone = comparison.gone.iter().map(|key| ShardRow {
                    shard: key.to_string(),
                    differs: Vec::new(),
                    gone: true,
                });
                differing.chain(gone).collect()
            });
            let rule = found.rule.as_str().to_owned();
            Row { integration, affected: true, declared: true, rule, causes: causes.collect(), shards }
        }
    }
}

/// More of what brought something about is not shown to people.
const MOST_CAUSES: usize = 10;

fn text(row: &Row) -> String {
    let Row { integration, affected, declared, rule, causes, shards } = row;
    if !declared {
        return format!("{integration}: {rule}\n");
    }
    if !affected {
        return format!("{integration}: not affected ({rule})\n");
    }
    let mut text = format!("{integration}: affected ({})\n", shown(rule));
    for cause in causes.iter().take(MOST_CAUSES) {
        text.push_str(&format!("    because of {}\n", shown(cause)));
    }
    if causes.len() > MOST_CAUSES {
        text.push_str(&format!("    and of {} more\n", causes.len() - MOST_CAUSES));
    }
    match shards {
        None => text.push_str("    all shards\n"),
        Some(shards) => {
            for ShardRow { shard, differs, gone } in shards {
                let gone = if *gone { " (gone)" } else { "" };
                text.push_str(&format!("    shard {}{gone}\n", shown(shard)));
                for place in differs {
                    text.push_str(&format!("        --> {}\n", shown(place)));
                }
            }
        }
    }
    text
}
