//! The process form: an executable in any language that responds to JSON requests over stdin and stdout.
//!
//! It is registered in the operator's configuration, never in the data. Its environment is cleared; write
//! credentials are added only when it applies a step, which never happens in a dry run or a sandbox.
//! `docs/specs/process-integration.md` specifies the protocol.

mod exchange;
mod response_memory;
mod wire;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_redaction::Redactor;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::contract::{ApplyResult, ReadContext, RehearsalResult, WriteContext};
use crate::data::Data;
use crate::fault::Fault;
use crate::key::ShardKey;
use crate::meta::{DeclaredQuery, Flag, FlagKind, IntegrationLimits, IntegrationMeta, Patience};
use crate::options::Options;
use crate::plan::Plan;
use crate::run::RunLimits;
use crate::source_location::{SourceLocation, SourceLocations};
use crate::state::DeclaredState;
use crate::type_erasure::{
    AnyCurrentState, AnyDeclaredState, AnyDesiredState, DynIntegration, OpaqueValue, downcast, no_shard,
};
use exchange::{CancelOnDrop, Cancellation, ProgramRequest, exchange, first_line};
use response_memory::{MemoryReservation, ResponseMemory, check_values};

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// Minimum length of the secret values that are redacted.
const MIN_SECRET_BYTES: usize = 4;

/// Maximum length of the reason that is reported for an invalid response.
const MAX_COMPLAINT_CHARS: usize = 400;

/// Time that the runner waits beyond the deadline of a program, so that the error names the program.
const DEADLINE_MARGIN: Duration = Duration::from_secs(30);

/// Time that the runner waits after the end of the grace period of a program.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(2);

/// The environment variable that passes the sandbox directory to programs that support it.
pub const SANDBOX_VARIABLE: &str = "QONTRACT_SANDBOX";

/// Variables in `environment` whose names contain one of these words are treated as secrets.
const SECRET_NAMES: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"];

/// The executable of an integration and its environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name under which the integration is registered.
    pub integration: String,
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// The environment variables.
    pub environment: BTreeMap<String, String>,
    /// Secret variables that are set only for `plan` and `apply`.
    pub secret_environment: BTreeMap<String, String>,
    /// Secret variables that are set only for `apply`.
    pub write_environment: BTreeMap<String, String>,
    /// Timeout of one request.
    pub deadline: Duration,
    /// Time that the program needs to end when it gets `SIGINT` while it applies a step. Without it, a
    /// shutdown lets it finish the step, and interrupts it only if the shutdown is forced.
    pub shutdown: Option<Duration>,
    /// The sandbox directory that replaces its target system. With a sandbox, no secrets or credentials are
    /// passed.
    pub sandbox: Option<PathBuf>,
    /// Receives its stderr.
    pub stderr_log: Option<Arc<dyn StderrLog>>,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            integration: String::new(),
            command: Vec::new(),
            environment: BTreeMap::new(),
            secret_environment: BTreeMap::new(),
            write_environment: BTreeMap::new(),
            deadline: Duration::from_mins(1),
            shutdown: None,
            sandbox: None,
            stderr_log: None,
        }
    }
}

/// Logs the stderr of programs.
pub trait StderrLog: fmt::Debug + Send + Sync {
    /// Logs one line.
    fn line(&self, integration: &str, line: &str);
}

/// Flag names that are reserved for the runner.
const RESERVED_FLAGS: [&str; 35] = [
    "all-shards",
    "base",
    "check-only-affected-shards",
    "color",
    "config",
    "data",
    "detailed-exitcode",
    "dry-run",
    "dump-schemas",
    "early-exit-compare-sha",
    "every",
    "full",
    "gql-sha-url",
    "gql-url-print",
    "help",
    "listen",
    "log-format",
    "log-level",
    "no-dry-run",
    "no-gql-sha-url",
    "no-gql-url-print",
    "no-validate",
    "no-validate-schemas",
    "output",
    "quiet",
    "repo",
    "runs",
    "sandbox",
    "shard-id",
    "shards",
    "trust-head",
    "validate-schemas",
    "verbose",
    "version",
    "wait",
];

/// Whether a flag name is reserved for the runner.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_FLAGS.contains(&name)
}

/// The reason why a flag name is invalid, if it is.
fn flag_name_error(name: &str, others: &[wire::WireFlag]) -> Option<&'static str> {
    let fine = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    let begins = name.starts_with(|one: char| one.is_ascii_lowercase());
    if !begins || !name.chars().all(fine) {
        return Some(
            "must begin with a lowercase letter and consist of lowercase letters, digits and dashes",
        );
    }
    if RESERVED_FLAGS.contains(&name) {
        return Some("is reserved for the runner");
    }
    (others.iter().filter(|flag| flag.name == name).count() > 1).then_some("is defined twice")
}

impl Program {
    /// The secret values that are passed to the program.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let plain = self.environment.iter().filter(|(name, _)| is_secret_name(name));
        let all = plain.chain(&self.secret_environment).chain(&self.write_environment);
        all.map(|(_, value)| value.as_str())
    }

    /// A redactor for the secrets that are passed to the program. Strings in the request come from the data
    /// and are not redacted, because redacting them would confirm a secret that was guessed in the data. The
    /// request of `apply` is an exception: it comes from the program's own response to `plan`.
    fn redactor_for(&self, phase: &str, request: &Value) -> Redactor {
        let redactor = Redactor::with_min_bytes(self.secrets(), MIN_SECRET_BYTES);
        if phase == "apply" { redactor } else { redactor.except([request.to_string().as_str()]) }
    }

    /// The limits of its runs. They exceed those that the client of the program enforces, so that the error
    /// names the program.
    fn limits(&self) -> IntegrationLimits {
        let grace = self.shutdown.unwrap_or_default();
        let request = self.deadline + grace + DEADLINE_MARGIN;
        IntegrationLimits {
            phase_timeout: Some(request).filter(|timeout| *timeout > RunLimits::default().phase_timeout),
            step_timeout: Some(request),
            shutdown_timeout: self.shutdown.map(|grace| grace + SHUTDOWN_MARGIN),
            max_shards: None,
        }
    }

    /// Redacts lines that contain a secret that is passed to the program.
    fn redacted(&self, text: &str, phase: &str, request: &Value) -> String {
        self.redactor_for(phase, request).lines(text).into_owned()
    }

    /// Describes a phase of the program for messages.
    fn describe_phase(&self, phase: &str) -> String {
        format!("`{phase}` of `{}` (`{}`)", self.integration, self.command.join(" "))
    }
}

/// Whether the name of a variable suggests a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// The Kubernetes objects that a program declares.
#[derive(Debug)]
pub struct ObjectDeclaration {
    /// The objects, by namespace and caller.
    pub shards: Vec<ObjectShardDeclaration>,
    /// Faults of single shards.
    pub faults: Vec<(ShardKey, Fault)>,
}

/// The objects that a program declares in a namespace, for one caller.
#[derive(Debug)]
pub struct ObjectShardDeclaration {
    /// The cluster, which the data must declare.
    pub cluster: String,
    /// The namespace, which the data must declare.
    pub namespace: String,
    /// The instance of the integration that owns the objects, if it has several.
    pub caller: Option<String>,
    /// The kinds that are managed: undeclared objects of these kinds are removed.
    pub kinds: Vec<String>,
    /// The objects.
    pub objects: Vec<Value>,
    /// The source location.
    pub place: Option<SourceLocation>,
}

/// An integration of the process form.
pub struct ProcessIntegration {
    meta: IntegrationMeta,
    supports_sandbox: bool,
    form: wire::ProgramForm,
    client: Arc<ProgramClient>,
}

/// A program, with the memory limit for its responses.
struct ProgramClient {
    program: Program,
    memory: Arc<ResponseMemory>,
}

type ProcessState = DeclaredState<Value, Value, Value>;

impl ProcessIntegration {
    /// Starts the executable and requests its description. The name in the description must be the registered
    /// name.
    pub fn describe(name: &str, program: Program) -> Result<Self, Fault> {
        let program = Program { integration: name.to_owned(), ..program };
        let client = ProgramClient { program, memory: Arc::default() };
        let response: wire::DescribeResponse =
            client.request_blocking("describe", &json!({}), WriteAccess::No, &Cancellation::default())?.value;
        if response.name != name {
            let text = format!("the program registered as `{name}` describes itself as `{}`", response.name);
            return Err(Fault::operator(text));
        }
        for flag in &response.flags {
            if let Some(why) = flag_name_error(&flag.name, &response.flags) {
                return Err(Fault::operator(format!("the flag `{}` of `{name}` {why}", flag.name)));
            }
        }
        let mut meta = IntegrationMeta::new(response.name, response.about);
        meta.patience = response.patience.map_or(meta.patience, Patience::from);
        meta.limits = client.program.limits();
        meta.queries = response
            .queries
            .into_iter()
            .map(|query| DeclaredQuery { name: query.name, text: query.text })
            .collect();
        meta.flags = response
            .flags
            .into_iter()
            .map(|flag| Flag {
                // Leaked, because flags live as long as this process and each program is described only once.
                name: flag.name.leak(),
                help: flag.help.leak(),
                kind: flag.dimension.map_or(FlagKind::Value, |name| FlagKind::Selects(name.leak())),
                opposite: None,
            })
            .collect();
        let supports_sandbox = response.sandbox || response.form == wire::ProgramForm::Objects;
        Ok(Self { meta, supports_sandbox, form: response.form, client: Arc::new(client) })
    }

    /// Whether the program only declares Kubernetes objects, so that it has to be run as such: it responds
    /// neither to `plan` nor to `apply`.
    pub fn declares_objects(&self) -> bool {
        self.form == wire::ProgramForm::Objects
    }

    /// The integration's metadata.
    pub fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    /// Requests the objects that the program declares for this data.
    pub fn declare_objects(&self, data: &Data, options: &Options) -> Result<ObjectDeclaration, Fault> {
        let QueryResults { request, places } = self.query_results(data, options)?;
        let response: ParsedResponse<wire::DeclareObjectsResponse> =
            self.client.request_blocking("declare", &request, WriteAccess::No, &Cancellation::default())?;
        let declaration =
            response.value.redacted(|text| self.client.program.redacted(text, "declare", &request));
        Ok(declaration.into_declaration(&places))
    }

    /// Executes the program's queries.
    fn query_results(&self, data: &Data, options: &Options) -> Result<QueryResults, Fault> {
        let mut results = serde_json::Map::new();
        let mut places: BTreeMap<String, SourceLocations> = BTreeMap::new();
        for query in &self.meta.queries {
            let result = data.query_tree(query)?;
            let value =
                serde_json::to_value(&result.data).map_err(|error| Fault::internal(error.to_string()))?;
            results.insert(query.name.clone(), value);
            places.insert(query.name.clone(), result.places);
        }
        let options: BTreeMap<&str, &[String]> = options.iter().collect();
        Ok(QueryResults { request: json!({"answers": results, "options": options}), places })
    }

    /// Whether the program supports a sandbox directory.
    pub fn supports_sandbox(&self) -> bool {
        self.supports_sandbox
    }
}

impl DynIntegration for ProcessIntegration {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Box<dyn AnyDeclaredState>, Fault> {
        let QueryResults { request, places } = self.query_results(data, options)?;
        let response: ParsedResponse<wire::DeclareResponse> =
            self.client.request_blocking("declare", &request, WriteAccess::No, &Cancellation::default())?;
        let declaration =
            response.value.redacted(|text| self.client.program.redacted(text, "declare", &request));
        Ok(Box::new(declaration.into_state(&places)))
    }

    fn resolve<'a>(
        &'a self,
        _: &'a ReadContext,
        _: &'a dyn AnyDeclaredState,
        _: &'a ShardKey,
    ) -> BoxFuture<'a, Result<AnyDesiredState, Fault>> {
        // The executable resolves, observes and plans in one request: see `observe`.
        async { Ok(AnyDesiredState::new(Vec::new(), Box::new(DesiredInput::State))) }.boxed()
    }

    fn nothing_desired(&self) -> AnyDesiredState {
        AnyDesiredState::new(Vec::new(), Box::new(DesiredInput::Nothing))
    }

    fn observe<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
        desired: &'a AnyDesiredState,
    ) -> BoxFuture<'a, Result<AnyCurrentState, Fault>> {
        async move {
            let declared = downcast::<ProcessState>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let state = match downcast::<DesiredInput>(desired.inner()) {
                DesiredInput::State => &shard.state,
                DesiredInput::Nothing => &Value::Null,
            };
            let request = json!({
                "key": wire::WireDimensions::from(key),
                "common": declared.common,
                "target": shard.target,
                "state": state,
            });
            // Secrets that are passed to the program may occur in its response.
            self.client.program.secrets().for_each(|value| read.secrets.record(value));
            let ParsedResponse { value, reservation: held } =
                self.request::<wire::PlanResponse>("plan", request, WriteAccess::No).await?;
            if let Some(problem) = value.problem() {
                return Err(invalid_response("plan", &self.client.program, problem));
            }
            let mut response = value.at(shard.places.get(""));
            let (scopes, facts) = (response.take_scopes(), response.take_facts());
            Ok(AnyCurrentState {
                scopes,
                facts,
                inner: Box::new(PlanObservation { response, _reservation: held }),
            })
        }
        .boxed()
    }

    fn plan(&self, _: &AnyDesiredState, current: &AnyCurrentState) -> Plan<OpaqueValue> {
        downcast::<PlanObservation>(&*current.inner)
            .response
            .plan()
            .map(|action| Box::new(action) as OpaqueValue)
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadContext,
        _: &'a OpaqueValue,
    ) -> BoxFuture<'a, Result<RehearsalResult, Fault>> {
        std::future::ready(Ok(RehearsalResult::Skipped)).boxed()
    }

    fn apply<'a>(
        &'a self,
        write: &'a WriteContext<'a>,
        action: &'a OpaqueValue,
    ) -> BoxFuture<'a, Result<ApplyResult, Fault>> {
        async move {
            let request = json!({"run": write.run, "action": downcast::<Value>(&**action)});
            let effect = self.request::<wire::ApplyResponse>("apply", request, WriteAccess::Yes).await?.value;
            Ok(if effect.stale { ApplyResult::Stale } else { ApplyResult::Done })
        }
        .boxed()
    }
}

/// The results of a program's queries, as the request for `declare`, and their source locations.
struct QueryResults {
    request: Value,
    places: BTreeMap<String, SourceLocations>,
}

/// The response to `plan`, with its memory reservation.
struct PlanObservation {
    response: wire::PlanResponse,
    _reservation: MemoryReservation,
}

/// The desired state that is passed to the program.
enum DesiredInput {
    /// The declared state.
    State,
    /// Nothing, because the shard exists only in base.
    Nothing,
}

/// Whether an executable gets write credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteAccess {
    Yes,
    No,
}

impl ProcessIntegration {
    async fn request<T: DeserializeOwned + wire::ShownTexts + Send + 'static>(
        &self,
        phase: &'static str,
        request: Value,
        writing: WriteAccess,
    ) -> Result<ParsedResponse<T>, Fault> {
        let client = Arc::clone(&self.client);
        // If the run is cancelled, this guard is dropped, which terminates the executable.
        let (_cancel_guard, cancellation) = CancelOnDrop::new();
        let exchange = move || client.request_blocking(phase, &request, writing, &cancellation);
        tokio::task::spawn_blocking(exchange).await.map_err(|error| Fault::internal(error.to_string()))?
    }
}

/// A parsed response, with its memory reservation.
struct ParsedResponse<T> {
    value: T,
    reservation: MemoryReservation,
}

impl ProgramClient {
    fn request_blocking<T: DeserializeOwned + wire::ShownTexts>(
        &self,
        phase: &str,
        request: &Value,
        writing: WriteAccess,
        cancellation: &Cancellation,
    ) -> Result<ParsedResponse<T>, Fault> {
        let Self { program, memory } = self;
        let mut request = request.clone();
        request["protocol"] = PROTOCOL.into();
        let program_request = ProgramRequest {
            phase,
            request: &request,
            writing: writing == WriteAccess::Yes,
            cancellation,
            memory,
        };
        let response = exchange(program, program_request)?;
        // A parse error quotes the response.
        let redact = |text: &str| program.redacted(text, phase, &request);
        let refused = |why: String| invalid_response(phase, program, redact(&why));
        // Check before parsing: small values take more memory than their JSON.
        check_values(&response).map_err(refused)?;
        let held = memory.reserve(&response).map_err(refused)?;
        // serde accepts a list in place of an object, and assigns the fields in order.
        if response.bytes().trim_ascii_start().first() == Some(&b'[') {
            return Err(refused("it is not a JSON object".to_owned()));
        }
        let value = serde_json::from_slice(response.bytes()).map_err(|error| {
            if error.is_data() {
                return refused(error.to_string());
            }
            not_json(
                &program.describe_phase(phase),
                &error,
                &redact(&String::from_utf8_lossy(response.bytes())),
            )
        })?;
        wire::check_texts(&value).map_err(refused)?;
        Ok(ParsedResponse { value, reservation: held })
    }
}

/// The fault of a response that violates the protocol.
fn invalid_response(phase: &str, program: &Program, why: impl Display) -> Fault {
    let why = truncate(&why.to_string());
    Fault::operator(format!("the response to {} is invalid: {why}", program.describe_phase(phase)))
}

/// The fault of a response that is not JSON. It quotes the first line of the output.
fn not_json(phase: &str, error: &serde_json::Error, text: &str) -> Fault {
    let printed = match first_line(text) {
        line if line.is_empty() => "stdout is empty".to_owned(),
        line => format!("stdout begins with `{line}`"),
    };
    Fault::operator(format!("the response to {phase} is not JSON: {error}; {printed}"))
        .hint("stdout must contain only the response: print everything else to stderr")
}

/// The beginning of a string.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_COMPLAINT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    #[test]
    fn variables_are_secret_by_their_names() {
        for name in ["GITHUB_TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY", "API_KEY", "X_CREDENTIALS"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["HOME", "DNS_SERVER", "WORLD", "LOG_LEVEL", ""] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
