//! An operator's access to the state store of integrations: reads keys and values, and changes them with lines in the
//! audit log.
//!
//! **Invariant:** a change is made only if the stored value has not changed since it was compared. A value that
//! equals the stored value is not written.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use qontract_access::{Mode, Permits};
use qontract_client_blobs::{AddCondition, BlobsError, NewValue, StateStore, StoredValue};
use qontract_config::Config;
use qontract_diagnostics::sanitize;
use qontract_runtime::Fault;
use qontract_telemetry::log::{Level, LineFormat, LogLine};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::exit::UsageError;
use crate::run_settings::{RunSettings, TargetLocation};
use crate::run_store::RunStore;
use crate::targets::{SandboxLocation, Targets};

/// Maximum size of a value that is written, in bytes.
const MAX_VALUE_BYTES: u64 = 16 << 20;

/// The state of one integration.
pub struct StateAccess {
    integration: String,
    store: StateStore,
    permits: Permits,
    runtime: Runtime,
}

/// The effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// The key was added.
    Created,
    /// The value of the key was changed.
    Changed,
    /// The key already had the value.
    Unchanged,
    /// The key was removed.
    Removed,
}

impl StateChange {
    /// The name of the effect in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Removed => "removed",
        }
    }

    /// The sign of the effect, as in plans.
    fn sign(self) -> char {
        match self {
            Self::Created => '+',
            Self::Changed => '~',
            Self::Unchanged => '=',
            Self::Removed => '-',
        }
    }
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl StateAccess {
    /// Opens the state of an integration, in a sandbox or in the configured store. In dry-run mode, the state cannot
    /// be changed.
    pub fn open(
        config: &Config,
        sandbox: SandboxLocation<'_>,
        integration: &str,
        mode: Mode,
    ) -> anyhow::Result<Self> {
        let is_name = !integration.trim_matches('/').is_empty() && !integration.starts_with('/');
        ensure!(is_name, UsageError(format!("`{integration}` is not the name of an integration")));
        let location = TargetLocation::of(config.sandbox_folder(sandbox.folder));
        let bounds = RunSettings::write_bounds(config, location)?.map(Arc::new);
        #[expect(clippy::disallowed_methods, reason = "an operator changes one key; nothing else is written")]
        let permits = qontract_access::mint_within(mode, bounds);
        let store = Targets::new(config, sandbox, mode)?.state(integration)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start threads")?;
        Ok(Self { integration: integration.to_owned(), store, permits, runtime })
    }

    /// The keys of the integration, sorted.
    pub fn keys(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.runtime.block_on(self.store.ls(&self.permits.read))?)
    }

    /// The value of a key, in the format that qontract-reconcile writes.
    pub fn get(&self, key: &str) -> anyhow::Result<String> {
        let stored = self.stored(key)?.with_context(|| {
            format!("`{}` not found in the state of `{}`", display_key(key), self.integration)
        })?;
        Ok(qontract_python_json::to_string(&stored.value))
    }

    /// Writes a value, unless the key already has this value. The metadata of the key is not changed.
    pub fn set(&self, key: &str, value: Value, runs: &RunStore) -> anyhow::Result<StateChange> {
        let stored = self.stored(key)?;
        let (change, condition, metadata) = match stored {
            None => (StateChange::Created, AddCondition::IfAbsent, None),
            Some(stored) if is_same(&stored.value, &value) => return Ok(StateChange::Unchanged),
            Some(stored) => (StateChange::Changed, AddCondition::IfMatch(stored.etag), Some(stored.metadata)),
        };
        let Some(write) = &self.permits.write else { return Ok(change) };
        let new = NewValue { value, metadata: metadata.unwrap_or_default() };
        self.audited(key, change, runs, || {
            self.runtime.block_on(self.store.add(write, key, &new, condition)).map(drop)
        })
    }

    /// Removes a key, which must exist. The value is not read, so that a damaged value can be removed.
    pub fn remove(&self, key: &str, runs: &RunStore) -> anyhow::Result<StateChange> {
        let head = self.runtime.block_on(self.store.head(&self.permits.read, key))?;
        head.with_context(|| {
            format!("`{}` not found in the state of `{}`", display_key(key), self.integration)
        })?;
        let Some(write) = &self.permits.write else { return Ok(StateChange::Removed) };
        self.audited(key, StateChange::Removed, runs, || {
            self.runtime.block_on(self.store.rm(&self.permits.read, write, key))
        })
    }

    fn stored(&self, key: &str) -> anyhow::Result<Option<StoredValue>> {
        match self.runtime.block_on(self.store.get(&self.permits.read, key)) {
            Err(error @ BlobsError::Malformed { .. }) => {
                let (integration, key) = (&self.integration, display_key(key));
                let hint = format!("restore it, or remove it with `qontract state rm {integration} {key}`");
                Err(Fault::operator(error.to_string()).hint(hint).into())
            }
            stored => Ok(stored?),
        }
    }

    /// Writes a line to the audit log, makes a change, and writes a second line. If the second line is missing, the
    /// change may have been made.
    fn audited(
        &self,
        key: &str,
        change: StateChange,
        runs: &RunStore,
        write: impl FnOnce() -> Result<(), BlobsError>,
    ) -> anyhow::Result<StateChange> {
        let line = |level, status: &str, is_done: bool| {
            let text = format!("{} state `{}`{status}", change.sign(), display_key(key));
            let line = LogLine::new(level, text).with("integration", self.integration.as_str());
            line.with_detail("done", is_done).format(LineFormat::Json, jiff::Timestamp::now())
        };
        // If the audit log cannot be written, nothing is changed.
        runs.append_audit(&line(Level::Info, ": begun", false))?;
        let outcome = write();
        let end = match &outcome {
            Ok(()) => line(Level::Info, "", true),
            Err(error) => {
                let status = format!(": failed, and may be changed: {}", sanitize(&error.to_string()));
                line(Level::Warning, &status, false)
            }
        };
        runs.append_audit(&end)?;
        outcome?;
        Ok(change)
    }
}

/// The form in which listings show a key.
pub fn display_key(key: &str) -> String {
    format!("/{}", key.trim_start_matches('/'))
}

/// Whether both values are written as the same JSON.
fn is_same(one: &Value, other: &Value) -> bool {
    qontract_python_json::to_string(one) == qontract_python_json::to_string(other)
}

/// Parses the value of `state set`: JSON, or `-` for JSON on stdin.
pub fn parse_value(text: &str, stdin: impl Read) -> anyhow::Result<Value> {
    let read = || {
        let mut text = String::new();
        stdin
            .take(MAX_VALUE_BYTES + 1)
            .read_to_string(&mut text)
            .context("cannot read the value from stdin")?;
        anyhow::Ok(text)
    };
    let text = if text == "-" { read()? } else { text.to_owned() };
    ensure!(
        text.len() as u64 <= MAX_VALUE_BYTES,
        UsageError(format!("the value has more than {MAX_VALUE_BYTES} bytes"))
    );
    // The error does not quote the value, because the value may be confidential.
    let value = serde_json::from_str(&text);
    value.map_err(|_| UsageError("the value is not JSON: write a string as `'\"text\"'`".to_owned()).into())
}

#[cfg(test)]
mod tests {
    use qontract_testkit::Scratch;
    use serde_json::json;

    use super::*;

    fn open(scratch: &Scratch, mode: Mode) -> StateAccess {
        let sandbox = SandboxLocation { folder: Some(scratch.path()), repo: None };
        StateAccess::open(&Config::default(), sandbox, "promoter", mode).unwrap()
    }

    fn runs(scratch: &Scratch) -> RunStore {
        RunStore::new(Some(scratch.path().join("runs"))).unwrap()
    }

    #[test]
    fn a_value_is_written_once_and_each_change_is_audited() {
        let (sandbox, records) = (Scratch::new(), Scratch::new());
        let (state, runs) = (open(&sandbox, Mode::Real), runs(&records));
        let set = |value: Value| state.set("a/b", value, &runs).unwrap();
        assert_eq!(set(json!({"b": 1, "a": "é"})), StateChange::Created);
        assert_eq!(set(json!({"a": "é", "b": 1})), StateChange::Unchanged);
        assert_eq!(state.get("/a/b").unwrap(), r#"{"a": "\u00e9", "b": 1}"#);
        assert_eq!(set(json!(null)), StateChange::Changed);
        assert_eq!(state.keys().unwrap(), ["/a/b"]);
        assert_eq!(state.remove("a/b", &runs).unwrap(), StateChange::Removed);
        assert_eq!(
            state.remove("a/b", &runs).unwrap_err().to_string(),
            "`/a/b` not found in the state of `promoter`"
        );
        let lines = records.read("runs/trail.jsonl");
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let shown: Vec<String> =
            lines.iter().map(|line| format!("{} {}", line["message"], line["done"])).collect();
        assert_eq!(
            shown,
            [
                "\"+ state `/a/b`: begun\" false",
                "\"+ state `/a/b`\" true",
                "\"~ state `/a/b`: begun\" false",
                "\"~ state `/a/b`\" true",
                "\"- state `/a/b`: begun\" false",
                "\"- state `/a/b`\" true",
            ]
        );
        assert!(lines.iter().all(|line| line["integration"] == "promoter"), "{lines:?}");
    }

    #[test]
    fn a_dry_run_changes_nothing() {
        let (sandbox, records) = (Scratch::new(), Scratch::new());
        let (state, runs) = (open(&sandbox, Mode::DryRun), runs(&records));
        assert_eq!(state.set("a", json!(1), &runs).unwrap(), StateChange::Created);
        assert_eq!(std::fs::read_dir(sandbox.path()).unwrap().count(), 0);
        open(&sandbox, Mode::Real).set("a", json!(1), &runs).unwrap();
        assert_eq!(state.set("a", json!(2), &runs).unwrap(), StateChange::Changed);
        assert_eq!(state.set("a", json!(1), &runs).unwrap(), StateChange::Unchanged);
        assert_eq!(state.remove("a", &runs).unwrap(), StateChange::Removed);
        assert_eq!(state.get("a").unwrap(), "1");
        assert_eq!(records.read("runs/trail.jsonl").lines().count(), 2);
    }

    #[test]
    fn a_value_is_json_and_is_not_quoted_in_errors() {
        assert_eq!(parse_value("-", &b"[1]\n"[..]).unwrap(), json!([1]));
        assert_eq!(parse_value("\"a\"", std::io::empty()).unwrap(), json!("a"));
        for text in ["c4nary", "", "{\"a\": c4nary}", "NaN"] {
            let error = parse_value(text, std::io::empty()).unwrap_err();
            assert!(error.is::<UsageError>() && !format!("{error:#}").contains("c4nary"), "{error:#}");
        }
    }

    #[test]
    fn the_state_of_all_integrations_is_not_that_of_one() {
        let scratch = Scratch::new();
        let sandbox = SandboxLocation { folder: Some(scratch.path()), repo: None };
        for name in ["", "/", "/a"] {
            let error = StateAccess::open(&Config::default(), sandbox, name, Mode::DryRun).err().unwrap();
            assert!(error.is::<UsageError>(), "{error:#}");
        }
    }
}
