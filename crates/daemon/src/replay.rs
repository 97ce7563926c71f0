//! Replays a run: computes its plans from its recorded inputs, without its targets.

use std::sync::Arc;

use anyhow::Context as _;
use qontract_access::{Mode, ReadPermit};
use qontract_bundle::{Bundle, Layout};
use qontract_client_secrets::SecretReader;
use qontract_config::Config;
use qontract_graphql::{Engine, SchemaCache};
use qontract_objects::{ManagedObjects, RecordedObjects};
use qontract_runtime::process::ProcessIntegration;
use qontract_runtime::replay::{Fingerprints, RecordedSecret, Recording, ReplayData, replay};
use qontract_runtime::{Data, Integration, LoadedBundle, Options, PlanDigest, QueryPolicy};

use crate::exit::UsageError;
use crate::input::{InputCheck, InputResolver};
use crate::input_store::{InputStore, StoredRecording};
use crate::registry::Registry;
use crate::run_store::RunStore;
use crate::targets::Targets;

/// A replay of a run.
pub struct Replay<'a> {
    /// The store of run records.
    pub runs: &'a RunStore,
    /// The integrations of this binary.
    pub integrations: Registry,
    /// The resolver that opens `data`.
    pub resolver: InputResolver<'a>,
    /// Data to use in place of a stored bundle. The data must have the sha of that bundle.
    pub data: Option<&'a str>,
    /// A secret store with which the recorded secrets are compared.
    pub secrets: Option<&'a dyn SecretReader>,
}

/// The result of a replay.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayResult {
    /// The replayed plans equal the recorded plans.
    Same {
        /// The digest of the plans of all shards.
        digest: PlanDigest,
        /// Notes about inputs that were not compared.
        notes: Vec<String>,
    },
    /// An input differs or is missing; the text names the input.
    Differs(String),
}

impl Replay<'_> {
    /// Replays the run that a word names. Fails if the word names no run, or if the record cannot be read.
    pub async fn replay(&self, word: &str) -> anyhow::Result<ReplayResult> {
        let folder = self.runs.folder().context("no directory of recorded inputs on this machine")?;
        let inputs = InputStore::new(folder);
        // A run that was killed may have a recording without a record.
        let recorded = self.runs.resolve(word).await;
        let run = match &recorded {
            Ok(record) => record.run.clone(),
            Err(_) => word.to_owned(),
        };
        let is_run = run.chars().all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one));
        let loaded = if is_run { inputs.load(&run) } else { Ok(None) };
        let stored = match (loaded, recorded) {
            (Ok(Some(stored)), _) => stored,
            (Ok(None), Err(error)) => return Err(error),
            (Ok(None), Ok(record)) => {
                return Ok(ReplayResult::Differs(match &record.plan_digest {
                    None => format!(
                        "the run {run} has no plan: none of its shards was planned, or its plan is not known"
                    ),
                    Some(_) => format!("the inputs of the run {run} are not recorded"),
                }));
            }
            (Err(error), _) => return Ok(ReplayResult::Differs(format!("{error:#}"))),
        };
        match self.compare(&stored, &inputs).await {
            Ok(result) => Ok(result),
            Err(error) if error.is::<UsageError>() => Err(error),
            Err(error) => {
                let mut text = format!("{error:#}");
                let version = env!("CARGO_PKG_VERSION");
                if stored.binary != version {
                    text = format!(
                        "the binary: version {} recorded the run, this is {version}; {text}",
                        stored.binary
                    );
                }
                Ok(ReplayResult::Differs(text))
            }
        }
    }

    async fn compare(&self, stored: &StoredRecording, inputs: &InputStore) -> anyhow::Result<ReplayResult> {
        let recording = &stored.recording;
        let mut notes = Vec::new();
        let head = self.bundle(inputs, &recording.head)?;
        let base = recording.base.as_deref().map(|sha| self.bundle(inputs, sha)).transpose()?;
        if let Some(secrets) = self.secrets {
            check_secrets(recording, inputs.fingerprints().as_ref(), secrets).await?;
        }
        let compiled = self.integrations.compiled(&recording.integration, &Targets::none())?;
        let digest = if let Some(integration) = compiled {
            let mut options = Options::default();
            for (flag, values) in &recording.options {
                for value in values {
                    options.add(flag, value.clone());
                }
            }
            let schemas = SchemaCache::default();
            let data = |bundle: Bundle| -> anyhow::Result<Data> {
                let engine = Engine::with_schemas(Arc::new(bundle), &schemas)
                    .context("the GraphQL types are invalid")?;
                let reader = Arc::new(LoadedBundle::new(Arc::new(engine)));
                Ok(Data::new(reader, QueryPolicy::of(integration.meta())))
            };
            let (head, base) = (data(head)?, base.map(data).transpose()?);
            let data = ReplayData { head: &head, base: base.as_ref(), options: &options };
            replay(&integration, recording, Some(data))?
        } else {
            notes.push(format!(
                "the program of `{}` was not started: its declarations and observations come from the recording",
                recording.integration
            ));
            let name = &recording.integration;
            let program = Integration::process(ProcessIntegration::recorded(name));
            let objects = RecordedObjects::new(name);
            let targets = Targets::none();
            let objects = ManagedObjects::new(
                objects,
                Arc::clone(targets.kubernetes()?),
                Arc::clone(targets.lookups()),
            );
            // The inputs of an object program are those of its objects.
            replay(&Integration::staged(objects), recording, None)
                .or_else(|_| replay(&program, recording, None))?
        };
        anyhow::ensure!(
            digest == recording.plan_digest,
            "the shards have the digest {digest}, and the recording has {}",
            recording.plan_digest
        );
        let version = env!("CARGO_PKG_VERSION");
        if stored.binary != version {
            notes.push(format!("version {} recorded the run, this is {version}", stored.binary));
        }
        Ok(ReplayResult::Same { digest, notes })
    }

    /// The bundle with this sha: the data of the command line if it has this sha, otherwise a bundle of the store.
    fn bundle(&self, inputs: &InputStore, sha: &str) -> anyhow::Result<Bundle> {
        let stored = inputs.bundle(sha);
        let (Err(error), Some(spec)) = (&stored, self.data) else { return stored };
        let opened = self.resolver.open(spec, InputCheck::Nothing)?.bundle;
        anyhow::ensure!(
            opened.sha().to_string() == sha,
            "{error:#}, and `{spec}` has the sha {}",
            opened.sha()
        );
        Ok(opened)
    }
}

/// Compares the values in a secret store with the fingerprints of the secrets that the run has read.
async fn check_secrets(
    recording: &Recording,
    fingerprints: Option<&Fingerprints>,
    secrets: &dyn SecretReader,
) -> anyhow::Result<()> {
    let fingerprints = fingerprints.context("the key of the fingerprints is missing: `inputs/key`")?;
    anyhow::ensure!(
        fingerprints.key_id() == recording.key,
        "the key of the fingerprints in `inputs/key` is not that of the run"
    );
    let permit = ReadPermit::for_targets(Mode::DryRun);
    for RecordedSecret { path, field, version, fingerprint } in
        recording.shards.iter().flat_map(|shard| &shard.secrets)
    {
        let number = version.as_deref().and_then(|version| version.parse().ok());
        let fields = secrets.read_all(&permit, path, number).await;
        let fields = fields.with_context(|| format!("the secret `{path}#{field}` is not available"))?;
        let value =
            fields.get(field).with_context(|| format!("the secret `{path}` has no field `{field}`"))?;
        anyhow::ensure!(
            fingerprints.of(value.expose().as_bytes()) == *fingerprint,
            "the secret `{path}#{field}` has another value"
        );
    }
    Ok(())
}

/// Creates the resolver of the data of a replay.
pub fn resolver(messages: &dyn qontract_diagnostics::MessageSink) -> InputResolver<'_> {
    InputResolver::new(std::path::Path::new("."), Layout::default(), messages)
}

/// Opens the secret store of a configuration or of a sandbox.
pub fn secret_reader(
    config: &Config,
    sandbox: Option<&std::path::Path>,
) -> anyhow::Result<Arc<dyn qontract_client_secrets::Secrets>> {
    let location = crate::targets::SandboxLocation { folder: sandbox, repo: None };
    Ok(Arc::clone(Targets::new(config, location, Mode::DryRun)?.secrets()))
}
