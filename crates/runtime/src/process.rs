//! The process form: an executable in any language, asked in JSON over stdin and stdout.
//!
//! It is registered by the operator's configuration and never by data. Its environment is scrubbed, and what it needs
//! to write is in it only when it applies a step, which never happens in a dry run. The protocol is described in
//! `docs/specs/process-integration.md`.

mod exchange;
mod memory;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_redaction::Redactor;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::about::{About, Flag, FlagKind, Query};
use crate::contract::{Applied, Read, Rehearsed, Write};
use crate::data::Data;
use crate::erased::{AnyDeclared, Dynamic, Found, Opaque, Wants, no_shard, own};
use crate::fault::Fault;
use crate::key::ShardKey;
use crate::options::Options;
use crate::place::Places;
use crate::plan::Plan;
use crate::state::Declared;
use exchange::{Given, Question, Waiting, exchange};
use memory::{AnswerMemory, Held, check_values};

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// Values of variables that are shorter than this are not searched for.
const MIN_GIVEN_BYTES: usize = 4;

/// How an executable is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable and its arguments.
    pub command: Vec<String>,
    /// Names and values of its environment.
    pub environment: BTreeMap<String, String>,
    /// What is added to it for `apply`.
    pub write_environment: BTreeMap<String, String>,
    /// How long one answer may take.
    pub deadline: Duration,
}

/// Names that flags of an integration cannot have: they are the runner's own.
const RESERVED: [&str; 27] = [
    "all-shards",
    "base",
    "check-only-affected-shards",
    "config",
    "data",
    "dry-run",
    "dump-schemas",
    "early-exit-compare-sha",
    "every",
    "gql-sha-url",
    "gql-url-print",
    "help",
    "listen",
    "log-format",
    "log-level",
    "no-dry-run",
    "no-gql-sha-url",
    "no-gql-url-print",
    "no-validate-schemas",
    "output",
    "repo",
    "runs",
    "sandbox",
    "shard-id",
    "shards",
    "trust-head",
    "validate-schemas",
];

/// Why a flag cannot have a name.
fn bad_name(name: &str, others: &[wire::Flag]) -> Option<&'static str> {
    let fine = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    let begins = name.starts_with(|one: char| one.is_ascii_lowercase());
    if !begins || !name.chars().all(fine) {
        return Some("is not a word of small letters, digits and dashes");
    }
    if RESERVED.contains(&name) {
        return Some("is one of the runner's own");
    }
    (others.iter().filter(|flag| flag.name == name).count() > 1).then_some("is there twice")
}

impl Program {
    /// A text without the lines that contain a value of what the executable was given: it may be a secret.
    fn redacted(&self, text: &str) -> String {
        let values = self.environment.values().chain(self.write_environment.values());
        Redactor::with_min_bytes(values.map(String::as_str), MIN_GIVEN_BYTES).lines(text).into_owned()
    }

    /// The executable, for messages.
    fn name(&self) -> String {
        format!("`{}`", self.command.first().map_or("", String::as_str))
    }
}

/// An integration of the process form.
pub struct Process {
    about: About,
    asking: Arc<Asking>,
}

/// A program, and what its answers may take.
struct Asking {
    program: Program,
    memory: Arc<AnswerMemory>,
}

type State = Declared<Value, Value, Value>;

impl Process {
    /// Starts the executable and asks what it is. Its name must be the one it is registered under.
    pub fn describe(name: &str, program: Program) -> Result<Self, Fault> {
        let asking = Asking { program, memory: Arc::default() };
        let answer: wire::Description =
            asking.ask("describe", &json!({}), (Writing::No, &Given::default()))?.value;
        if answer.name != name {
            let text = format!("the program registered as `{name}` calls itself `{}`", answer.name);
            return Err(Fault::operator(text));
        }
        for flag in &answer.flags {
            if let Some(why) = bad_name(&flag.name, &answer.flags) {
                return Err(Fault::operator(format!("the flag `{}` of `{name}` {why}", flag.name)));
            }
        }
        let mut about = About::new(answer.name, answer.about);
        about.queries =
            answer.queries.into_iter().map(|query| Query { name: query.name, text: query.text }).collect();
        about.flags = answer
            .flags
            .into_iter()
            .map(|flag| Flag {
                // Flags live as long as the program, and a process describes itself once.
                name: flag.name.leak(),
                help: flag.help.leak(),
                kind: flag.dimension.map_or(FlagKind::Value, |name| FlagKind::Selects(name.leak())),
                opposite: None,
            })
            .collect();
        Ok(Self { about, asking: Arc::new(asking) })
    }
}

impl Dynamic for Process {
    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Box<dyn AnyDeclared>, Fault> {
        let mut answers = serde_json::Map::new();
        let mut places: BTreeMap<String, Places> = BTreeMap::new();
        for query in &self.about.queries {
            let answered = data.declared(query)?;
            let value = serde_json::to_value(&answered.data).map_err(|error| Fault::us(error.to_string()))?;
            answers.insert(query.name.clone(), value);
            places.insert(query.name.clone(), answered.places);
        }
        let options: BTreeMap<&str, &[String]> = options.iter().collect();
        let request = json!({"answers": answers, "options": options});
        let answer: Parsed<wire::Declaration> =
            self.asking.ask("declare", &request, (Writing::No, &Given::default()))?;
        Ok(Box::new(answer.value.into_state(&places)))
    }

    fn resolve<'a>(
        &'a self,
        _: &'a Read,
        _: &'a dyn AnyDeclared,
        _: &'a ShardKey,
    ) -> BoxFuture<'a, Result<Wants, Fault>> {
        // The executable resolves, observes and plans in one answer: see `observe`.
        async { Ok(Wants::new(Vec::new(), Box::new(Wanting::State))) }.boxed()
    }

    fn nothing(&self) -> Wants {
        Wants::new(Vec::new(), Box::new(Wanting::Nothing))
    }

    fn observe<'a>(
        &'a self,
        _: &'a Read,
        declared: &'a dyn AnyDeclared,
        key: &'a ShardKey,
        wants: &'a Wants,
    ) -> BoxFuture<'a, Result<Found, Fault>> {
        async move {
            let declared = own::<State>(declared.as_any());
            let shard = declared.shards.get(key).ok_or_else(|| no_shard(key))?;
            let state = match own::<Wanting>(wants.inner()) {
                Wanting::State => &shard.state,
                Wanting::Nothing => &Value::Null,
            };
            let request = json!({
                "key": wire::Parts::from(key),
                "common": declared.common,
                "target": shard.target,
                "state": state,
            });
            let Parsed { value, held } = self.ask::<wire::Planned>("plan", request, Writing::No).await?;
            if let Some(problem) = value.problem() {
                return Err(unfit("plan", &self.asking.program, problem));
            }
            let mut answer = value.at(shard.places.get(""));
            let (scopes, facts) = (answer.take_scopes(), answer.take_facts());
            Ok(Found { scopes, facts, inner: Box::new(Observation { answer, _held: held }) })
        }
        .boxed()
    }

    fn plan(&self, _: &Wants, found: &Found) -> Plan<Opaque> {
        own::<Observation>(&*found.inner).answer.plan().map(|action| Box::new(action) as Opaque)
    }

    fn rehearse<'a>(&'a self, _: &'a Read, _: &'a Opaque) -> BoxFuture<'a, Result<Rehearsed, Fault>> {
        std::future::ready(Ok(Rehearsed::NotAsked)).boxed()
    }

    fn apply<'a>(
        &'a self,
        write: &'a Write<'a>,
        action: &'a Opaque,
    ) -> BoxFuture<'a, Result<Applied, Fault>> {
        async move {
            let request = json!({"run": write.run, "action": own::<Value>(&**action)});
            let effect = self.ask::<wire::Effect>("apply", request, Writing::Yes).await?.value;
            Ok(if effect.stale { Applied::Stale } else { Applied::Done })
        }
        .boxed()
    }
}

/// The answer to `plan`, and the memory that it takes.
struct Observation {
    answer: wire::Planned,
    _held: Held,
}

/// What is wanted in a shard.
enum Wanting {
    /// What is declared.
    State,
    /// Nothing: only base has the shard.
    Nothing,
}

/// Whether an executable may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    Yes,
    No,
}

impl Process {
    async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        phase: &'static str,
        request: Value,
        writing: Writing,
    ) -> Result<Parsed<T>, Fault> {
        let asking = Arc::clone(&self.asking);
        // A run that is ended drops this, and the executable ends with it.
        let (_waiting, given) = Waiting::new();
        let asking = move || asking.ask(phase, &request, (writing, &given));
        tokio::task::spawn_blocking(asking).await.map_err(|error| Fault::us(error.to_string()))?
    }
}

/// An answer that was parsed, and the memory that it takes.
struct Parsed<T> {
    value: T,
    held: Held,
}

impl Asking {
    fn ask<T: DeserializeOwned>(
        &self,
        phase: &str,
        request: &Value,
        (writing, given): (Writing, &Given),
    ) -> Result<Parsed<T>, Fault> {
        let Self { program, memory } = self;
        let mut request = request.clone();
        request["protocol"] = PROTOCOL.into();
        let question = Question { phase, request: &request, writing: writing == Writing::Yes, given, memory };
        let answer = exchange(program, question)?;
        // Before anything is made of it: small values take more memory than their text.
        check_values(&answer).map_err(|why| unfit(phase, program, why))?;
        let held = memory.hold(&answer).map_err(|why| unfit(phase, program, why))?;
        let value = serde_json::from_slice(answer.bytes()).map_err(|error| unfit(phase, program, error))?;
        Ok(Parsed { value, held })
    }
}

fn unfit(phase: &str, program: &Program, why: impl Display) -> Fault {
    Fault::operator(format!("`{phase}` of {} did not answer as it should: {why}", program.name()))
}
