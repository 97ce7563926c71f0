//! The executable of an integration: its command, its environment and its secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qontract_redaction::Redactor;
use serde_json::Value;

use super::phase::ProgramPhase;
use crate::meta::IntegrationLimits;
use crate::run_request::RunLimits;

/// Minimum length of the secret values that are redacted.
const MIN_SECRET_BYTES: usize = 4;

/// Time that the runner waits beyond the deadline of a program, so that the timeout error of the client, which
/// names the program, is reported first.
const DEADLINE_MARGIN: Duration = Duration::from_secs(30);

/// Time that the runner waits for a program after its grace period has ended.
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
    /// The names of all environment variables that may be passed to the program, including those that are not set.
    pub variables: BTreeSet<String>,
    /// Secret variables that are set only for `plan` and `apply`.
    pub secret_environment: BTreeMap<String, String>,
    /// Secret variables that are set only for `apply`.
    pub write_environment: BTreeMap<String, String>,
    /// Timeout of one request.
    pub deadline: Duration,
    /// Time that the program needs to exit after `SIGINT` while it applies a step. If this is not set, a
    /// shutdown waits for the step and interrupts the program only when the shutdown is forced.
    pub shutdown: Option<Duration>,
    /// The sandbox directory that replaces the target system of the program. If it is set, no secrets or credentials
    /// are passed.
    pub sandbox: Option<PathBuf>,
    /// Receives the program's stderr.
    pub stderr_log: Option<Arc<dyn StderrLog>>,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            integration: String::new(),
            command: Vec::new(),
            environment: BTreeMap::new(),
            variables: BTreeSet::new(),
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

impl Program {
    /// The secret values that are passed to the program.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let plain = self.environment.iter().filter(|(name, _)| is_secret_name(name));
        let all = plain.chain(&self.secret_environment).chain(&self.write_environment);
        all.map(|(_, value)| value.as_str())
    }

    /// Creates a redactor for the secrets that are passed to the program. Strings in the request come from the data
    /// and are not redacted, because redacting them would confirm a secret that was guessed in the data. The request
    /// of `apply` is an exception: it comes from the program's own response to `plan`.
    pub(super) fn redactor_for(&self, phase: ProgramPhase, request: &Value) -> Redactor {
        let redactor = Redactor::with_min_bytes(self.secrets(), MIN_SECRET_BYTES);
        match phase {
            ProgramPhase::Apply => redactor,
            ProgramPhase::Describe | ProgramPhase::Declare | ProgramPhase::Plan | ProgramPhase::Print => {
                redactor.except([request.to_string().as_str()])
            }
        }
    }

    /// The limits of the integration's runs. They exceed the limits that the client of the program enforces, so that
    /// the client's error, which names the program, is reported.
    pub(super) fn limits(&self) -> IntegrationLimits {
        let grace = self.shutdown.unwrap_or_default();
        let request = self.deadline + grace + DEADLINE_MARGIN;
        IntegrationLimits {
            phase_timeout: Some(request).filter(|timeout| *timeout > RunLimits::default().phase_timeout),
            step_timeout: Some(request),
            shutdown_timeout: self.shutdown.map(|grace| grace + SHUTDOWN_MARGIN),
            max_shards: None,
        }
    }

    /// Redacts the lines of a text that contain a secret that is passed to the program.
    pub(super) fn redacted(&self, text: &str, phase: ProgramPhase, request: &Value) -> String {
        self.redactor_for(phase, request).lines(text).into_owned()
    }

    /// Describes a phase of the program for messages.
    pub(super) fn describe_phase(&self, phase: ProgramPhase) -> String {
        format!("`{phase}` of `{}` (`{}`)", self.integration, self.command.join(" "))
    }
}

/// Whether the name of a variable suggests a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
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
