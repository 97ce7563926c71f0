//! `qontract runs`: lists and shows past runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qontract_access::Mode;
use qontract_runtime::{RunRecord, RunState};

use qontract_cli::printer::{PipeState, Printer};
use qontract_cli::since;
use qontract_cli::{RecordFormat, RunsAction, RunsArgs as Arguments, RunsListArgs, RunsReplayArgs, variable};
use qontract_config::Config;
use qontract_daemon::exit::Exit;
use qontract_daemon::journal::OpenJournal;
use qontract_daemon::replay::{self, Replay, ReplayResult};
use qontract_daemon::run_entry::{self, HEADER, RecordOutput, RunEntry};
use qontract_daemon::run_store::{ListedRun, RunFilter, RunStore};
use qontract_journal::RunId;
use qontract_report::table;

use qontract_daemon::run_text::explain;

use crate::integrations::REGISTRY;

/// Interval at which `--follow` polls for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub fn run(arguments: Arguments, printer: &Printer) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_action(arguments, printer))
}

async fn run_action(arguments: Arguments, printer: &Printer) -> anyhow::Result<Exit> {
    let Arguments { directory, config, output, action } = arguments;
    let runs = open(directory, config.as_deref())?;
    match action.unwrap_or_else(|| RunsAction::List(RunsListArgs::default())) {
        RunsAction::Show { run } => show(&runs.resolve(&run).await?, output, printer)?,
        RunsAction::Replay(replayed) => return replay(&runs, &replayed, output, printer).await,
        RunsAction::List(list) => {
            let filter = filter(&list)?;
            let known = if list.follow { runs.ids(&filter).await? } else { BTreeSet::new() };
            let found = runs.list(&filter, list.last).await?;
            if found.has_more {
                printer.note("note: older runs are not listed; `--last N` lists more");
            }
            match (output, list.follow) {
                (RecordFormat::Text, _) => {
                    printer.styled(&run_entry::runs_table(&found.runs))?;
                    if !list.failed && !list.held && list.since.is_none() && !list.follow {
                        printer.text(&run_entry::idle_lines(&runs.idle()?, list.integration.as_deref()))?;
                    }
                }
                (RecordFormat::Json, false) => {
                    let records = read_all(&runs, &found.runs).await;
                    let entries: Vec<RunEntry> = records.iter().map(RunEntry::from).collect();
                    printer.json(&[&serde_json::to_vec_pretty(&entries)?[..], b"\n"].concat())?;
                }
                (RecordFormat::Json, true) => {
                    printer.json(lines(&read_all(&runs, &found.runs).await)?.as_bytes())?;
                }
            }
            if list.follow {
                follow(&runs, &filter, known, output, printer).await?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// The run store in `folder`; without a folder, the run store in the configured bucket and in the directory
/// of this machine.
pub fn open(folder: Option<PathBuf>, config: Option<&Path>) -> anyhow::Result<Arc<RunStore>> {
    if let Some(folder) = folder {
        return Ok(Arc::new(RunStore::new(Some(folder))?));
    }
    let folder = variable("QONTRACT_RUNS").map(PathBuf::from);
    Ok(OpenJournal::new(&Config::find(config)?, None, folder, Mode::DryRun)?.runs)
}

/// The records of these runs. A record that was removed after the listing, or that cannot be read, is
/// omitted.
async fn read_all(runs: &RunStore, listed: &[ListedRun]) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for one in listed {
        records.extend(runs.read(&one.run).await);
    }
    records
}

/// Shows one run.
pub fn show(record: &RunRecord, output: RecordFormat, printer: &Printer) -> anyhow::Result<()> {
    match output {
        RecordFormat::Text => printer.text(&explain(record)),
        RecordFormat::Json => {
            let output = RecordOutput::from(record);
            printer.json(&[&serde_json::to_vec_pretty(&output)?[..], b"\n"].concat())
        }
    }
}

/// Replays a run, and prints the digest of its plans, or the first input that differs.
async fn replay(
    runs: &RunStore,
    arguments: &RunsReplayArgs,
    output: RecordFormat,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let RunsReplayArgs { run, data, sandbox, secrets } = arguments;
    let secrets = if *secrets || sandbox.is_some() {
        Some(replay::secret_reader(&Config::find(None)?, sandbox.as_deref())?)
    } else {
        None
    };
    let replay = Replay {
        runs,
        integrations: REGISTRY,
        resolver: replay::resolver(printer),
        data: data.as_deref(),
        secrets: secrets.as_deref().map(|secrets| secrets as _),
    };
    let (is_same, digest, difference, notes) = match replay.replay(run).await? {
        ReplayResult::Same { digest, notes } => (true, Some(digest), None, notes),
        ReplayResult::Differs(difference) => (false, None, Some(difference), Vec::new()),
    };
    for note in notes {
        printer.note(&format!("note: {note}"));
    }
    match output {
        RecordFormat::Json => {
            let result =
                serde_json::json!({"same": is_same, "plan_digest": digest, "difference": difference});
            printer.json(&[&serde_json::to_vec_pretty(&result)?[..], b"\n"].concat())?;
        }
        RecordFormat::Text => {
            if let Some(digest) = digest {
                printer.text(&format!("{digest}\n"))?;
            }
            if let Some(text) = difference {
                printer.note(&format!("error: the run cannot be replayed: {text}"));
            }
        }
    }
    Ok(if is_same { Exit::Ok } else { Exit::Failure })
}

fn filter(list: &RunsListArgs) -> anyhow::Result<RunFilter> {
    let mut states = Vec::new();
    if list.failed {
        states.extend([RunState::Failed, RunState::Interrupted]);
    }
    let since = list.since.as_deref().map(|text| since::parse(text, jiff::Timestamp::now())).transpose()?;
    Ok(RunFilter {
        integration: list.integration.clone(),
        states,
        held: list.held,
        since,
        unaffected: list.all,
    })
}

/// Prints new records until the reader closes the pipe or the process ends. `known` are the ids of older
/// records.
async fn follow(
    runs: &RunStore,
    filter: &RunFilter,
    mut known: BTreeSet<RunId>,
    output: RecordFormat,
    printer: &Printer,
) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let mut listed = Vec::new();
        for run in runs.ids(filter).await? {
            if known.insert(run.clone()) {
                listed.extend(runs.listed(&run, filter).await);
            }
        }
        if listed.is_empty() {
            continue;
        }
        let reader = match output {
            RecordFormat::Text => {
                let rows: Vec<Vec<String>> = listed.iter().map(run_entry::row).collect();
                let text = table::to_text(&HEADER.map(str::to_owned), &rows);
                printer.print_streaming(text.split_once('\n').map_or("", |(_, rows)| rows))?
            }
            RecordFormat::Json => printer.print_streaming(&lines(&read_all(runs, &listed).await)?)?,
        };
        if reader == PipeState::Closed {
            return Ok(());
        }
    }
}

fn lines(records: &[RunRecord]) -> anyhow::Result<String> {
    let mut text = String::new();
    for record in records {
        text.push_str(&serde_json::to_string(&RunEntry::from(record))?);
        text.push('\n');
    }
    Ok(text)
}
