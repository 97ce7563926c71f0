//! The process form: an executable in any language that responds to JSON requests over stdin and stdout.
//!
//! The executable is registered in the operator's configuration, never in the data. Its environment is cleared; write
//! credentials are added only when it applies a step, which never happens in a dry run or a sandbox.
//! `docs/specs/process-integration.md` specifies the protocol.

mod client;
mod declaration;
mod exchange;
mod flags;
mod phase;
mod program;
mod response_memory;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_diagnostics::human;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::contract::{ApplyResult, ReadContext, RehearsalResult, WriteContext};
use crate::data::Data;
use crate::fault::Fault;
use crate::fingerprint::Fingerprints;
use crate::flag::FlagKind;
use crate::key::{CALLER_DIMENSION, ShardKey};
use crate::meta::{DeclaredQuery, IntegrationMeta, Patience, QueryPresence, SlotDimensions};
use crate::options::Options;
use crate::plan::Plan;
use crate::source_location::SourceLocations;
use crate::state::DeclaredState;
use crate::trust::TargetAddress;
use crate::type_erasure::{
    AnyCurrentState, AnyDeclaredState, AnyDesiredState, DynIntegration, OpaqueValue, PrintedShard, downcast,
    no_shard, shard_address,
};
use crate::wire_dimensions::WireDimensions;
use client::{ParsedResponse, ProgramClient, invalid_response};
use flags::program_flags;
use phase::ProgramPhase;
use response_memory::MemoryReservation;

pub(crate) use exchange::{CancelOnDrop, Cancellation};
pub(crate) use program::is_secret_name;

pub use declaration::{LocatedShard, ProgramDeclaration, ProgramShard, ShardFault};
pub use flags::is_reserved;
pub use program::{Program, SANDBOX_VARIABLE, StderrLog};
pub use wire::{ResultPointer, ShownTexts};

/// Maximum length of the name of a target in messages.
const MAX_LABEL_CHARS: usize = 200;

/// An integration of the process form.
pub struct ProcessIntegration {
    meta: IntegrationMeta,
    supports_sandbox: bool,
    /// Whether `plan` receives the results of the queries on base.
    reads_base: bool,
    form: wire::ProgramForm,
    client: Arc<ProgramClient>,
}

type ProcessState = DeclaredState<Value, ProgramTarget, Value>;

impl ProcessIntegration {
    /// Starts the executable and requests its description. The name in the description must be the registered
    /// name.
    pub fn describe(name: &str, program: Program) -> Result<Self, Fault> {
        let program = Program { integration: name.to_owned(), ..program };
        let client = ProgramClient::new(program);
        let response: wire::DescribeResponse =
            client.request_blocking(ProgramPhase::Describe, &json!({}))?.value;
        if response.name != name {
            let text = format!("the program registered as `{name}` describes itself as `{}`", response.name);
            return Err(Fault::operator(text));
        }
        let flags = program_flags(response.flags, &client.program().variables).map_err(|why| {
            Fault::operator(format!("the program of `{name}` describes invalid flags: {why}"))
        })?;
        if response.form == wire::ProgramForm::Objects
            && flags.iter().any(|flag| flag.kind == FlagKind::Print)
        {
            let text =
                format!("`{name}` only declares objects, which qontract prints itself: remove `print`");
            return Err(Fault::operator(text));
        }
        let mut meta = IntegrationMeta::new(response.name, response.about);
        if let Some(patience) = response.patience {
            meta.patience = Patience::from(patience);
            // The second round observes the operations that the steps of the first round have started.
            meta.rounds = 2;
        }
        meta.limits = client.program().limits();
        meta.queries = response
            .queries
            .into_iter()
            .map(|query| {
                let presence = if query.if_known { QueryPresence::IfKnown } else { QueryPresence::Required };
                DeclaredQuery { name: query.name, text: query.text, presence }
            })
            .collect();
        meta.flags = flags;
        meta.slot_dimensions = match (response.slots_by, response.form) {
            (Some(dimension), wire::ProgramForm::Objects) if dimension == CALLER_DIMENSION => {
                let text = format!(
                    "`{name}` has `slots_by: {dimension}`, but the callers of a namespace share a process"
                );
                return Err(Fault::operator(text));
            }
            (Some(dimension), _) => SlotDimensions::Only(dimension),
            (None, wire::ProgramForm::Objects) => SlotDimensions::WithoutCaller,
            (None, wire::ProgramForm::Steps) => SlotDimensions::All,
        };
        let reads_base = response.base;
        let supports_sandbox = response.sandbox || response.form == wire::ProgramForm::Objects;
        Ok(Self { meta, supports_sandbox, reads_base, form: response.form, client: Arc::new(client) })
    }

    /// Creates an integration whose program is not available: it can only replay recorded plans.
    pub fn recorded(name: &str) -> Self {
        let client =
            Arc::new(ProgramClient::new(Program { integration: name.to_owned(), ..Program::default() }));
        let meta = IntegrationMeta::new(name, "A process integration");
        Self { meta, supports_sandbox: true, reads_base: false, form: wire::ProgramForm::Steps, client }
    }

    /// Whether the program only declares objects and does not respond to `plan` and `apply`, so that it must
    /// run in an integration that manages these objects.
    pub fn declares_objects(&self) -> bool {
        self.form == wire::ProgramForm::Objects
    }

    /// The integration's metadata.
    pub fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    /// Requests the shards that the program declares for this data, in the form that the managing integration
    /// defines.
    pub fn declare_shards<S: ProgramShard>(
        &self,
        data: &Data,
        options: &Options,
    ) -> Result<ProgramDeclaration<S>, Fault> {
        let QueryResults { request, places } = self.declare_request(data, options)?;
        let response: ParsedResponse<wire::DeclareShardsResponse<S>> =
            self.client.request_blocking(ProgramPhase::Declare, &request)?;
        let redact = |text: &str| self.client.program().redacted(text, ProgramPhase::Declare, &request);
        Ok(response.value.redacted(redact).into_declaration(&places))
    }

    /// The request for `declare`. The request depends only on the options and the results of the queries.
    fn declare_request(&self, data: &Data, options: &Options) -> Result<QueryResults, Fault> {
        let QueryResults { request: answers, places } = self.query_results(data)?;
        let options: BTreeMap<&str, &[String]> = options.iter().collect();
        Ok(QueryResults { request: json!({"answers": answers, "options": options}), places })
    }

    /// Executes the program's queries.
    fn query_results(&self, data: &Data) -> Result<QueryResults, Fault> {
        let mut results = serde_json::Map::new();
        let mut places: BTreeMap<String, SourceLocations> = BTreeMap::new();
        for query in &self.meta.queries {
            let Some(result) = data.query_declared(query)? else {
                results.insert(query.name.clone(), Value::Null);
                continue;
            };
            let value =
                serde_json::to_value(&result.data).map_err(|error| Fault::internal(error.to_string()))?;
            results.insert(query.name.clone(), value);
            places.insert(query.name.clone(), result.places);
        }
        Ok(QueryResults { request: Value::Object(results), places })
    }

    /// The request for `plan` and `print`.
    fn shard_request(
        &self,
        read: &ReadContext,
        declared: &ProcessState,
        key: &ShardKey,
        state: &Value,
    ) -> Result<ShardRequest, Fault> {
        let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
        let mut request = json!({
            "key": WireDimensions::from(key),
            "common": declared.common,
            "target": shard.target.whole,
            "state": state,
            "now": read.now,
            "commit": read.data.commit(),
        });
        let (trusted, refused): (Vec<ProgramAddress<'_>>, Vec<ProgramAddress<'_>>) =
            shard.target.addresses().partition(|one| read.trust.trusts(&one.address));
        let has_refused = !refused.is_empty();
        if !shard.target.parts.is_empty() {
            request["targets"] = trusted.into_iter().map(|one| one.target.clone()).collect();
            request["refused"] = refused.iter().map(|one| Value::from(one.address.label())).collect();
        }
        if let Some(base) = &read.base {
            request["base_commit"] = json!(base.commit());
            if self.reads_base {
                // A base that cannot be queried, for example because its types lack a field, is not passed to the
                // program.
                request["base"] = self.query_results(base).map_or(Value::Null, |base| base.request);
            }
        }
        // Secrets that are passed to the program may occur in its response.
        self.client.program().secrets().for_each(|value| read.secrets.record(value));
        Ok(ShardRequest { request, has_refused })
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
        let QueryResults { request, places } = self.declare_request(data, options)?;
        let response: ParsedResponse<wire::DeclareResponse> =
            self.client.request_blocking(ProgramPhase::Declare, &request)?;
        let declaration = response
            .value
            .redacted(|text| self.client.program().redacted(text, ProgramPhase::Declare, &request));
        Ok(Box::new(declaration.into_state(&places)))
    }

    fn addresses(&self, declared: &dyn AnyDeclaredState, key: &ShardKey) -> Vec<TargetAddress> {
        let shards = &downcast::<ProcessState>(declared.as_any()).shards;
        match shards.get(key).map(|shard| &shard.target) {
            Some(target) if !target.parts.is_empty() => target.addresses().map(|one| one.address).collect(),
            Some(_) | None => shard_address(declared, key),
        }
    }

    fn resolve<'a>(
        &'a self,
        _: &'a ReadContext,
        _: &'a dyn AnyDeclaredState,
        _: &'a ShardKey,
    ) -> BoxFuture<'a, Result<AnyDesiredState, Fault>> {
        // The executable resolves, observes and plans in one request; see `observe`.
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
            let ShardRequest { request, has_refused } = self.shard_request(read, declared, key, state)?;
            let ParsedResponse { value, reservation: held } =
                self.client.request::<wire::PlanResponse>(ProgramPhase::Plan, request).await?;
            if let Some(problem) = value.problem() {
                return Err(invalid_response(ProgramPhase::Plan, self.client.program(), problem));
            }
            let mut response = value.at(shard.places.get(""));
            let (scopes, facts) = (response.take_scopes(has_refused), response.take_facts());
            Ok(AnyCurrentState {
                scopes,
                facts,
                // A program does not report incarnations.
                incarnations: BTreeSet::new(),
                inner: Box::new(PlanObservation { response, _reservation: held }),
            })
        }
        .boxed()
    }

    fn print<'a>(
        &'a self,
        read: &'a ReadContext,
        declared: &'a dyn AnyDeclaredState,
        key: &'a ShardKey,
        _: &'a AnyDesiredState,
    ) -> BoxFuture<'a, Result<PrintedShard, Fault>> {
        async move {
            let declared = downcast::<ProcessState>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let ShardRequest { request, .. } = self.shard_request(read, declared, key, &shard.state)?;
            let response =
                self.client.request::<wire::PrintResponse>(ProgramPhase::Print, request).await?.value;
            let faults = response.faults(shard.places.get(""));
            Ok(PrintedShard { text: response.text, faults })
        }
        .boxed()
    }

    fn plan(&self, _: &AnyDesiredState, current: &AnyCurrentState) -> Plan<OpaqueValue> {
        downcast::<PlanObservation>(&*current.inner)
            .response
            .plan()
            .map(|action| Box::new(action) as OpaqueValue)
    }

    fn record_inputs(
        &self,
        _: &AnyDesiredState,
        current: &AnyCurrentState,
        _: &Fingerprints,
    ) -> Option<Value> {
        serde_json::to_value(&downcast::<PlanObservation>(&*current.inner).response).ok()
    }

    fn replay_plan(&self, inputs: &Value) -> Option<Plan<OpaqueValue>> {
        let response = wire::PlanResponse::deserialize(inputs).ok()?;
        Some(response.plan().map(|action| Box::new(action) as OpaqueValue))
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
            if let Some(bounds) = write.permit.bounds() {
                let text = format!("a program is not started: the write permit of this run allows {bounds}");
                return Err(Fault::guard(text));
            }
            let action = downcast::<Value>(&**action);
            let request = json!({"run": write.run, "now": write.now, "action": action});
            let effect =
                self.client.request::<wire::ApplyResponse>(ProgramPhase::Apply, request).await?.value;
            Ok(if effect.stale { ApplyResult::Stale } else { ApplyResult::Done })
        }
        .boxed()
    }
}

/// The request for one shard, for `plan` or `print`.
struct ShardRequest {
    request: Value,
    /// Whether an address of the shard's target was refused.
    has_refused: bool,
}

/// The results of a program's queries, as part of a request, and the source locations of the results.
struct QueryResults {
    request: Value,
    places: BTreeMap<String, SourceLocations>,
}

/// The target of a shard of a program: one value, or several addresses, each of which is trusted independently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct ProgramTarget {
    whole: Value,
    parts: Vec<Value>,
}

/// One address of a target that has several.
struct ProgramAddress<'t> {
    target: &'t Value,
    address: TargetAddress,
}

impl ProgramTarget {
    /// The parts of the target as addresses.
    fn addresses(&self) -> impl Iterator<Item = ProgramAddress<'_>> {
        self.parts.iter().map(|target| {
            let label = target.as_str().map_or_else(|| target.to_string(), str::to_owned);
            let address = TargetAddress::of(human::shortened(&label, MAX_LABEL_CHARS), target);
            ProgramAddress { target, address }
        })
    }
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
    /// No state, because the shard exists only in base.
    Nothing,
}
