//! Runs promtool: checks Prometheus rules and runs their unit tests.
//!
//! **Invariant:** unchecked rules never pass: a run of promtool without a verdict is an error.

mod program;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use qontract_access::ReadPermit;
use serde_json::{Map, Value};

pub use program::find;
use run::{InputFile, PromtoolRun};

/// The file of the rules.
const RULES_FILE: &str = "rules.yaml";
/// The file of the test.
const TEST_FILE: &str = "test.yaml";

/// The verdict of promtool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// The rules passed.
    Passed,
    /// The rules failed, with the messages of promtool.
    Failed(String),
}

/// The reason why promtool gave no verdict.
#[derive(Debug, thiserror::Error)]
pub enum PromtoolError {
    /// The program was not found.
    #[error("promtool not found {searched}")]
    Missing {
        /// The location that was searched.
        searched: String,
    },
    /// promtool cannot be started.
    #[error("`{program}` cannot be started: {cause}")]
    Start {
        /// The program.
        program: String,
        /// The cause.
        cause: std::io::Error,
    },
    /// The files of promtool cannot be written or read.
    #[error("cannot write or read the files of promtool: {0}")]
    Files(std::io::Error),
    /// promtool timed out.
    #[error("promtool timed out after {} s", .0.as_secs())]
    TimedOut(Duration),
    /// promtool printed too much.
    #[error("promtool printed more than {0} bytes")]
    OutputTooLarge(u64),
    /// promtool exited without a verdict.
    #[error("promtool ended without a verdict ({status}): {output}")]
    NoVerdict {
        /// The exit code or signal of promtool.
        status: String,
        /// The output of promtool.
        output: String,
    },
}

impl PromtoolError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut(_) => true,
            Self::Missing { .. }
            | Self::Start { .. }
            | Self::Files(_)
            | Self::OutputTooLarge(_)
            | Self::NoVerdict { .. } => false,
        }
    }
}

/// Limits of a run of promtool.
#[derive(Clone, Copy, Debug)]
pub struct PromtoolLimits {
    /// Timeout of a run.
    pub deadline: Duration,
    /// Maximum output in bytes.
    pub output: u64,
}

impl Default for PromtoolLimits {
    fn default() -> Self {
        Self { deadline: Duration::from_mins(1), output: 1 << 20 }
    }
}

/// The program.
#[derive(Clone, Debug)]
pub struct Promtool {
    /// The path of promtool, or the location that was searched.
    program: Result<PathBuf, String>,
    limits: PromtoolLimits,
}

impl Promtool {
    /// A client for the result of [`find`].
    pub fn new(program: Result<PathBuf, String>) -> Self {
        Self { program, limits: PromtoolLimits::default() }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: PromtoolLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Fails if the program was not found.
    pub fn check_available(&self) -> Result<(), PromtoolError> {
        match &self.program {
            Ok(_) => Ok(()),
            Err(searched) => Err(PromtoolError::Missing { searched: searched.clone() }),
        }
    }

    /// Checks rules: `groups` and everything below it.
    pub async fn check_rules(&self, _: &ReadPermit, rules: &Value) -> Result<RuleVerdict, PromtoolError> {
        self.run_promtool(["check", "rules", RULES_FILE], vec![InputFile::new(RULES_FILE, rules)]).await
    }

    /// Runs a unit test on rules. `rule_files` of the test is replaced by these rules, because promtool
    /// ignores a missing file and passes.
    pub async fn test_rules(
        &self,
        _: &ReadPermit,
        rules: &Value,
        test: &Map<String, Value>,
    ) -> Result<RuleVerdict, PromtoolError> {
        let mut test = test.clone();
        test.insert("rule_files".to_owned(), Value::from(vec![RULES_FILE]));
        let files = vec![InputFile::new(RULES_FILE, rules), InputFile::new(TEST_FILE, &Value::Object(test))];
        self.run_promtool(["test", "rules", TEST_FILE], files).await
    }

    async fn run_promtool(
        &self,
        words: [&'static str; 3],
        files: Vec<InputFile>,
    ) -> Result<RuleVerdict, PromtoolError> {
        let program = self.program.clone().map_err(|searched| PromtoolError::Missing { searched })?;
        PromtoolRun { program, words, files, limits: self.limits }.verdict().await
    }
}
