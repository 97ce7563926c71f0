//! The foreign form: an existing command, such as one of qontract-reconcile's, that is run unchanged.
//!
//! The command is registered in the operator's configuration, never in the data. It gets the environment of the
//! peer's `run-integration` and the address of an endpoint that serves the data of the run. Its plan is not known:
//! the runner reports its exit code and its output, and no guard applies to its changes.

mod output;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use std::{any, fmt, io};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_child::{GRACE_PERIOD, GroupSettings, ProcessGroup, Purpose};
use qontract_redaction::Redactor;

use crate::audit::{IntendedRound, WriteRecord};
use crate::data::BundleReader;
use crate::fault::Fault;
use crate::key::{Scope, ShardKey};
use crate::lazy_lease::LazyLease;
use crate::meta::{IntegrationLimits, IntegrationMeta};
use crate::outcome::{PlanKnowledge, ShardOutcome, ShardState};
use crate::plan::{Change, ChangeKind, ObjectKey};
use crate::process::{CancelOnDrop, Cancellation, StderrLog, is_secret_name};
use crate::run_request::RunRequest;
use crate::step_effect::{result_of, until_forced};
use crate::unplanned::UnplannedItem;
use output::{OutputTail, read_lines};
use qontract_telemetry::activity;

/// Minimum length of the secret values that are redacted. Shorter values are shown.
const MIN_SECRET_BYTES: usize = 4;

/// Time that the runner waits beyond the deadline of a command, so that the timeout error of the client, which
/// names the command, is reported first.
const DEADLINE_MARGIN: Duration = Duration::from_secs(30);

/// Time that the runner waits for a command after its grace period has ended.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(2);

/// The interval at which to check whether the command has ended or the run was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time to wait for the rest of the output after the command has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of lines of the output that are part of the error of a failed command.
const MAX_ERROR_LINES: usize = 20;

/// Environment variables that a command inherits from this process.
const INHERITED_VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// Addresses that a command contacts without a proxy: the data endpoint.
const NO_PROXY: &str = "127.0.0.1,localhost";

/// A command that exists independently of qontract, and its settings.
#[derive(Clone, Debug)]
pub struct ForeignCommand {
    /// The name of the integration, under which the command is registered.
    pub integration: String,
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// Arguments for the peer's `run-integration`, which passes them on to the integration.
    pub arguments: Vec<String>,
    /// The environment variables.
    pub environment: BTreeMap<String, String>,
    /// Secret variables, whose values are redacted.
    pub secret_environment: BTreeMap<String, String>,
    /// Timeout of a run.
    pub deadline: Duration,
    /// Time that the command gets to end after `SIGINT`.
    pub shutdown: Duration,
    /// Receives the output of the command.
    pub log: Option<Arc<dyn StderrLog>>,
}

/// Serves the data of a run to a command.
pub trait DataEndpoint: Send + Sync {
    /// Serves head and base until the returned endpoint is dropped.
    fn open<'a>(
        &'a self,
        head: &'a dyn BundleReader,
        base: Option<&'a dyn BundleReader>,
    ) -> BoxFuture<'a, Result<OpenEndpoint, Fault>>;
}

/// Data that is served to a command.
pub struct OpenEndpoint {
    /// The configuration file for the command: the command's own configuration, with the address and the token of the
    /// endpoint.
    pub config: String,
    /// The strings of the configuration that count as secrets.
    pub secrets: Vec<String>,
    /// Stops serving the data when it is dropped.
    pub guard: Box<dyn any::Any + Send>,
}

/// An integration of the foreign form.
pub struct ForeignIntegration {
    meta: IntegrationMeta,
    command: Arc<ForeignCommand>,
    endpoint: Arc<dyn DataEndpoint>,
}

impl ForeignIntegration {
    /// Creates the integration that runs a command.
    pub fn new(command: ForeignCommand, endpoint: Arc<dyn DataEndpoint>) -> Self {
        let limits = IntegrationLimits {
            phase_timeout: Some(command.deadline + command.shutdown + DEADLINE_MARGIN),
            shutdown_timeout: Some(command.shutdown + SHUTDOWN_MARGIN),
            ..IntegrationLimits::default()
        };
        // The queries of the command are not known, so any change to the data may affect it.
        let meta = Self::meta_of(&command.integration, &command.command).reads_ad_hoc().limits(limits);
        Self { meta, command: Arc::new(command), endpoint }
    }

    /// The metadata of a command, which is known without starting it.
    pub fn meta_of(name: &str, command: &[String]) -> IntegrationMeta {
        let program = command.first().map_or("", String::as_str);
        IntegrationMeta::new(name, format!("An existing command: `{program}`"))
    }

    pub(crate) fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    /// Runs the command once, for the slot of this process. The command itself selects the shards of the slot.
    pub(crate) async fn run(&self, request: &RunRequest, lease: &LazyLease<'_>) -> ShardOutcome {
        let mut shard = ShardOutcome::new(ShardState::Ran);
        shard.rounds = 1;
        shard.plan = PlanKnowledge::NotKnown;
        if request.mode == Mode::DryRun {
            let name = &self.command.integration;
            let text =
                format!("`{name}`: the command does not report its changes; they are made after the merge");
            shard.unplanned.push(UnplannedItem::new(text));
        }
        let output = Arc::<Mutex<OutputTail>>::default();
        // The command is a single step: it runs to its end even if the lease is lost while it runs.
        let ended = match lease.check().await {
            Ok(()) => self.execute(request, &output).await,
            Err(fault) => Err(fault),
        };
        shard.faults.extend(ended.err());
        shard.output = std::mem::take(&mut *output.lock()).into_lines();
        shard
    }

    async fn execute(&self, request: &RunRequest, output: &Arc<Mutex<OutputTail>>) -> Result<(), Fault> {
        let endpoint = self.endpoint.open(&*request.head, request.base.as_deref()).await?;
        let command = &self.command;
        let change = self.change(request.mode);
        let what = change.to_string();
        let wait = command.shutdown + SHUTDOWN_MARGIN;
        // A dry run also counts as a step, because it may hold locks that it must release.
        let Some(step) = request.shutdown.begin_long_step(&what, wait) else {
            return Err(Fault::interrupted(format!("{what} was not started: shutting down")));
        };
        let _activity = activity::phase("apply", what.clone());
        let shard = ShardKey::default();
        let mut round = None;
        if request.mode == Mode::Real {
            round = Some(request.audit.begin_round(&IntendedRound::of_change(&change)).await);
        }
        let (_cancel_guard, cancellation) = CancelOnDrop::new();
        let execution = Execution {
            environment: environment(command, &endpoint, request),
            redactor: Arc::new(redactor(command, &endpoint)),
            output: Arc::clone(output),
            command: Arc::clone(command),
            cancellation,
        };
        let working = async {
            let ended = tokio::task::spawn_blocking(move || execution.run()).await;
            ended.map_err(|error| Fault::internal(error.to_string()))?
        };
        let ended = until_forced(&request.shutdown, working).await;
        let is_interrupted = ended.as_ref().is_err_and(|fault| fault.is_interrupted);
        if let Some(round) = round {
            let (fault, changes) = (ended.as_ref().err(), std::slice::from_ref(&change));
            request.audit.record_write(&WriteRecord { run: &request.run, shard: &shard, changes, fault });
            let tried = Change { result: result_of(&ended), ..change.clone() };
            request.audit.end_round(round, &[tried]).await;
        }
        if !is_interrupted {
            step.finish();
            return ended;
        }
        // Dropping the step records it as abandoned; a dry run changes nothing.
        match request.mode {
            Mode::Real => Err(Fault::interrupted(format!("interrupted: {what} may be partially applied"))),
            Mode::DryRun => {
                step.finish();
                Err(Fault::interrupted(format!("interrupted: {what}")))
            }
        }
    }

    /// Describes the run of the command as a change, for logs and the audit trail.
    fn change(&self, mode: Mode) -> Change {
        let name = self.command.integration.clone();
        let object = ObjectKey { scope: Scope::default(), kind: "Command".to_owned(), name };
        let verb = match mode {
            Mode::DryRun => "dry-run",
            Mode::Real => "run",
        };
        Change::new(ChangeKind::Change, object, verb)
    }
}

impl fmt::Debug for ForeignIntegration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignIntegration").field("command", &self.command).finish_non_exhaustive()
    }
}

/// The environment of a command, as the peer's `run-integration` sets it. The variables of the runner replace those
/// of the configuration, so that no variable can turn a dry run into a real run.
fn environment(
    command: &ForeignCommand,
    endpoint: &OpenEndpoint,
    request: &RunRequest,
) -> BTreeMap<String, OsString> {
    let inherited = INHERITED_VARIABLES.iter();
    let mut all: BTreeMap<String, OsString> =
        inherited.filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?))).collect();
    let given = command.environment.iter().chain(&command.secret_environment);
    all.extend(given.map(|(name, value)| (name.clone(), value.into())));
    let mut set = |name: &str, value: &str| drop(all.insert(name.to_owned(), value.into()));
    set("INTEGRATION_NAME", &command.integration);
    set("CONFIG", &endpoint.config);
    set("QONTRACT_CONFIG", &endpoint.config);
    let mode = match request.mode {
        Mode::DryRun => "--dry-run",
        Mode::Real => "--no-dry-run",
    };
    set("DRY_RUN", mode);
    set("RUN_ONCE", "true");
    set("PROMETHEUS_PORT", "0");
    set("INTEGRATION_EXTRA_ARGS", &command.arguments.join(" "));
    set("SHARDS", &request.slot.count().to_string());
    set("SHARD_ID", &request.slot.index().to_string());
    for name in ["NO_PROXY", "no_proxy"] {
        let own = command.environment.get(name).map(|own| format!("{own},")).unwrap_or_default();
        set(name, &format!("{own}{NO_PROXY}"));
    }
    if let Some(base) = &request.base {
        set("EARLY_EXIT_COMPARE_SHA", base.sha());
        if request.only_affected {
            set("CHECK_ONLY_AFFECTED_SHARDS", "true");
        }
    }
    all
}

/// Creates a redactor for the secrets that are passed to a command. Each line of a multi-line secret is a separate
/// secret, because the output is redacted line by line.
fn redactor(command: &ForeignCommand, endpoint: &OpenEndpoint) -> Redactor {
    let named = command.environment.iter().filter(|(name, _)| is_secret_name(name));
    let given = named.chain(&command.secret_environment).map(|(_, value)| value);
    let secrets = given.chain(&endpoint.secrets).flat_map(|secret| secret.lines()).map(str::trim);
    Redactor::with_min_bytes(secrets, MIN_SECRET_BYTES)
}

/// One execution of a command.
struct Execution {
    command: Arc<ForeignCommand>,
    environment: BTreeMap<String, OsString>,
    redactor: Arc<Redactor>,
    output: Arc<Mutex<OutputTail>>,
    cancellation: Cancellation,
}

impl Execution {
    /// Runs the command to its end, its deadline or its cancellation.
    fn run(&self) -> Result<(), Fault> {
        let ForeignCommand { integration, deadline, .. } = &*self.command;
        let mut child = self.start()?;
        let (_, stdout, stderr) = child.take_pipes();
        let readers: Vec<_> = [stdout.map(boxed), stderr.map(boxed)]
            .into_iter()
            .flatten()
            .map(|stream| {
                let sink = self.sink();
                thread::spawn(move || read_lines(stream, sink))
            })
            .collect();
        let began = Instant::now();
        let status = loop {
            let waited = child.wait_until(Instant::now() + POLL_INTERVAL);
            let error =
                |error: io::Error| Fault::internal(format!("cannot wait for `{integration}`: {error}"));
            if let Some(status) = waited.map_err(error)? {
                break status;
            }
            if self.cancellation.is_cancelled() {
                let _ = child.terminate_within(GRACE_PERIOD);
                return Err(Fault::internal(format!("the command of `{integration}` was cancelled")));
            }
            if began.elapsed() >= *deadline {
                let _ = child.terminate();
                let within = deadline.as_secs();
                return Err(Fault::remote(format!(
                    "the command of `{integration}` took longer than {within} s"
                )));
            }
        };
        // A process outside the process group may still hold the output open, so the wait for the rest of the output
        // is limited.
        let until = Instant::now() + OUTPUT_TIMEOUT;
        while readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
        self.judge(status)
    }

    fn start(&self) -> Result<ProcessGroup, Fault> {
        let ForeignCommand { integration, command, shutdown, .. } = &*self.command;
        let Some((executable, words)) = command.split_first() else {
            return Err(Fault::operator(format!("`foreign.{integration}` has no `command`")));
        };
        let mut command = Command::new(executable);
        command.args(words).env_clear().envs(&self.environment);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A dry run may hold locks, which the command releases only if it is interrupted instead of killed.
        let settings = GroupSettings { purpose: Purpose::InterruptibleWrite, grace: *shutdown };
        ProcessGroup::start_for(&mut command, settings).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => {
                Fault::interrupted(format!("the command of `{integration}` was not started: shutting down"))
            }
            _ => Fault::operator(format!(
                "the command of `{integration}` (`{executable}`) cannot be started: {error}"
            )),
        })
    }

    /// Returns a function that redacts, logs and keeps a line of the output.
    fn sink(&self) -> impl Fn(&str) + Send + 'static {
        let (redactor, output) = (Arc::clone(&self.redactor), Arc::clone(&self.output));
        let command = Arc::clone(&self.command);
        move |line| {
            let line = redactor.lines(line);
            if let Some(log) = &command.log {
                log.line(&command.integration, &line);
            }
            output.lock().push(&line);
        }
    }

    /// Converts an exit status into a result.
    fn judge(&self, status: ExitStatus) -> Result<(), Fault> {
        let integration = &self.command.integration;
        if status.success() {
            return Ok(());
        }
        if qontract_child::is_stopping(Purpose::InterruptibleWrite) {
            return Err(Fault::interrupted(format!("the command of `{integration}` was interrupted")));
        }
        let details = self.output.lock().last(MAX_ERROR_LINES);
        let fault = match status.code() {
            Some(code) => {
                Fault::author(format!("the command of `{integration}` ended with exit code {code}"))
            }
            None => Fault::remote(format!("the command of `{integration}` was killed ({status})")),
        };
        let fault = match status.code() {
            Some(4 | 5) => fault.hint(
                "qontract-reconcile ends with 4 if the data does not define the integration, with 5 if it reads a forbidden schema, and in sharded dry runs with the number of failed shards",
            ),
            Some(_) | None => fault,
        };
        Err(if details.is_empty() { fault } else { fault.details(&details) })
    }
}

fn boxed(stream: impl io::Read + Send + 'static) -> Box<dyn io::Read + Send> {
    Box::new(stream)
}
