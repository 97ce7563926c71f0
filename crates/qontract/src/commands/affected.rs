//! `qontract affected`: lists the integrations and shards that a change can affect, with the causes.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use qontract_cli::printer::Printer;
use qontract_cli::{AffectedArgs, ReportFormat};
use qontract_config::Config;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::input::{InputCheck, InputResolver};
use qontract_daemon::pinned_data::{self, ComparedData, PinnedData, ReportPlaces};
use qontract_daemon::targets::Targets;
use qontract_report::affected::{self as affected_report, AffectedRow, AffectedShard};
use qontract_report::{FileName, Location};
use qontract_runtime::affected::{self, AffectedVerdict, BundlePair, CauseKind};
use qontract_runtime::{Integration, Options, RunEnd, SourceLocation};

use crate::integrations::REGISTRY;

pub fn run(arguments: AffectedArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let AffectedArgs { base, head, integration: requested, verbose, config, repo, output, layout } =
        arguments;
    let config = Config::find_and_note(config.as_deref(), printer)?;
    let resolver = InputResolver::new(&repo, layout.into(), printer);
    let (base, head) = resolver.base_and_head(base, head)?;
    let mut runtime = None;
    let server = pinned_data::server_of_specs(&config, &[&base, &head], || {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        Ok(runtime.insert(threads.context("cannot start threads")?).handle().clone())
    })?;
    let open = |spec: &str, beside: Option<&PinnedData>| {
        // The data is not validated: the base of a change that corrects the data is invalid, and the effect
        // of the change must still be computed.
        PinnedData::open_or_connect(&resolver, server.as_ref(), spec, InputCheck::Nothing, beside)
            .map_err(|error| error.context(UsageError(format!("cannot open `{spec}`"))))
    };
    let base = open(&base, None)?;
    let head = open(&head, Some(&base))?;
    // The process ends with this command: freeing two bundles, document by document, would take a tenth of
    // its time. Only the bundles are leaked; the temporary directory for Git is removed.
    std::mem::forget([Arc::clone(&base.source), Arc::clone(&head.source)]);
    let integrations = REGISTRY.all(&config, &Targets::none(), printer)?;
    if let Some(unknown) =
        requested.iter().find(|name| integrations.iter().all(|integration| integration.meta().name != **name))
    {
        return Err(REGISTRY.unknown(unknown, &config));
    }
    let is_chosen =
        |integration: &&Integration| requested.is_empty() || requested.contains(&integration.meta().name);
    let chosen: Vec<&Integration> = integrations.iter().filter(is_chosen).collect();
    let defined = affected::defined_integrations(chosen.iter().copied(), &*base.source, &*head.source)?;
    let is_defined =
        |integration: &Integration| defined.iter().any(|known| known.meta().name == integration.meta().name);
    // Integrations that the data does not declare are usually omitted. Data that declares no integration, or
    // not the requested integration, may be incomplete. In that case, integrations are listed as undeclared.
    let undeclared: Vec<&&Integration> = if requested.is_empty() && !defined.is_empty() {
        Vec::new()
    } else {
        chosen.iter().filter(|integration| !is_defined(integration)).collect()
    };
    let pair = |integration| BundlePair::new(integration, Arc::clone(&base.source), Arc::clone(&head.source));
    let sides = ComparedData::new(&base, &head);
    // In text output, file names are relative to the working directory.
    let file_name = |file: &str| match output {
        ReportFormat::Text => head.display(file),
        ReportFormat::Md | ReportFormat::Json => file.to_owned(),
    };
    let names = PlaceNames { sides: &sides, file_name: &file_name };
    let mut rows: Vec<AffectedRow> =
        defined.iter().map(|integration| row(integration, &pair(integration), &names)).collect();
    if !undeclared.is_empty() {
        let names: Vec<String> =
            undeclared.iter().map(|integration| format!("`{}`", integration.meta().name)).collect();
        let names = if requested.is_empty() { "any integration".to_owned() } else { names.join(", ") };
        printer.note(&format!(
            "warning: neither base nor head declares {names}\nhint: declare it with a datafile of schema `/app-sre/integration-1.yml`"
        ));
        rows.extend(undeclared.iter().map(|integration| AffectedRow::undeclared(&integration.meta().name)));
    }
    match output {
        ReportFormat::Text => printer.styled(&affected_report::text(&rows, verbose))?,
        ReportFormat::Md => printer.text(&affected_report::markdown(&rows))?,
        ReportFormat::Json => printer.json(&[&serde_json::to_vec_pretty(&rows)?[..], b"\n"].concat())?,
    }
    Ok(match rows.iter().any(|row| row.affected) {
        true => Exit::Failure,
        false if undeclared.is_empty() => Exit::Ok,
        false => Exit::Run(RunEnd::NotDefined),
    })
}

/// Formats source locations for the output.
struct PlaceNames<'a> {
    sides: &'a ComparedData<'a>,
    file_name: FileName<'a>,
}

impl PlaceNames<'_> {
    /// `file:line` of the difference at a location; `causes` are all changes that affect the integration.
    fn line(&self, place: &SourceLocation, causes: &[SourceLocation]) -> String {
        let at = Location::parse(&self.sides.line(place, causes));
        Location { file: (self.file_name)(&at.file), ..at }.to_string()
    }

    /// The previous name of a renamed file.
    fn old_file(&self, place: &SourceLocation, old: &str) -> String {
        (self.file_name)(&self.sides.file(&SourceLocation { path: old.into(), ..place.clone() }))
    }
}

fn row(integration: &Integration, pair: &BundlePair, names: &PlaceNames<'_>) -> AffectedRow {
    let name = integration.meta().name.clone();
    match affected::affected(integration, pair, &Options::default()) {
        AffectedVerdict::Unaffected(rule) => AffectedRow {
            integration: name,
            affected: false,
            declared: true,
            rule: rule.as_str().to_owned(),
            causes: Vec::new(),
            shards: Some(Vec::new()),
        },
        AffectedVerdict::Unknown(fault) => {
            let rule = fault.to_string();
            AffectedRow {
                integration: name,
                affected: true,
                declared: true,
                rule,
                causes: Vec::new(),
                shards: None,
            }
        }
        AffectedVerdict::Affected(found) => {
            let places: Vec<SourceLocation> =
                found.causes.iter().filter_map(|cause| cause.place.clone()).collect();
            names.sides.prefetch(&places, |report| {
                let ReportPlaces { changes, .. } = report;
                let collect = |place: &SourceLocation| {
                    changes.lock().insert(place.clone());
                    String::new()
                };
                causes(&found, &collect, names);
                shards(&found, &collect);
            });
            let line = |place: &SourceLocation| names.line(place, &places);
            AffectedRow {
                integration: name,
                affected: true,
                declared: true,
                rule: found.rule.as_str().to_owned(),
                causes: causes(&found, &line, names),
                shards: shards(&found, &line),
            }
        }
    }
}

/// The causes, without duplicate lines.
fn causes(
    found: &affected::Impact,
    line: &dyn Fn(&SourceLocation) -> String,
    names: &PlaceNames<'_>,
) -> Vec<String> {
    let causes = found.causes.iter().map(|cause| {
        let what = match cause.what {
            CauseKind::Datafile | CauseKind::Resource | CauseKind::Integration => "",
            CauseKind::Types => "the GraphQL types",
            CauseKind::Approval => "the approvals of removals",
        };
        let place = cause.place.as_ref().map(line).unwrap_or_default();
        let removed = if cause.gone { " (removed)" } else { "" };
        let renamed = cause.place.as_ref().zip(cause.renamed_from.as_deref());
        let renamed = renamed.map(|(place, old)| format!(" (renamed from {})", names.old_file(place, old)));
        format!("{what}{place}{removed}{}", renamed.unwrap_or_default())
    });
    deduplicated(causes)
}

/// The affected shards, without duplicate lines; `None` if all shards are affected.
fn shards(found: &affected::Impact, line: &dyn Fn(&SourceLocation) -> String) -> Option<Vec<AffectedShard>> {
    let comparison = found.comparison.as_ref().filter(|_| !found.all)?;
    let differing = comparison.shards.iter().map(|(key, differences)| AffectedShard {
        shard: key.to_string(),
        differs: deduplicated(differences.iter().filter_map(|one| one.place.as_ref()).map(line)),
        gone: false,
    });
    let gone = comparison.gone.iter().map(|key| AffectedShard {
        shard: key.to_string(),
        differs: Vec::new(),
        gone: true,
    });
    Some(differing.chain(gone).collect())
}

fn deduplicated(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert(line.clone())).collect()
}
