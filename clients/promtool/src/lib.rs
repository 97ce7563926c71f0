//! Runs promtool on texts: whether rules of Prometheus can be read, and whether they do what their tests say.
//!
//! **Invariant:** what was not checked is never told to be fine: whatever keeps promtool from its verdict is an error.

mod program;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use qontract_access::ReadPermit;
use serde_json::{Map, Value};

pub use program::find;

/// The file of the rules.
const RULES: &str = "rules.yaml";
/// The file of the test.
const TEST: &str = "test.yaml";

/// What promtool says about a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is fine.
    Passed,
    /// It is not, in promtool's words.
    Failed(String),
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum PromtoolError {
    /// There is no such program.
    #[error("promtool not found {looked}")]
    Missing {
        /// Where it was looked for.
        looked: String,
    },
    /// It cannot be started.
    #[error("`{program}` cannot be started: {cause}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        cause: std::io::Error,
    },
    /// Its files cannot be written or read.
    #[error("the files of promtool cannot be used: {0}")]
    Files(std::io::Error),
    /// It took too long.
    #[error("promtool took longer than {} s", .0.as_secs())]
    Late(Duration),
    /// It said too much.
    #[error("promtool said more than {0} bytes")]
    Loud(u64),
    /// It ended without a verdict.
    #[error("promtool ended without a verdict ({how}): {said}")]
    Broken {
        /// How it ended.
        how: String,
        /// What it said.
        said: String,
    },
}

impl PromtoolError {
    /// Whether it may work the next time.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Late(_) => true,
            Self::Missing { .. }
            | Self::Start { .. }
            | Self::Files(_)
            | Self::Loud(_)
            | Self::Broken { .. } => false,
        }
    }
}

/// What a run of promtool may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub deadline: Duration,
    /// How many bytes it may say.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_mins(1), output: 1 << 20 }
    }
}

/// The program.
#[derive(Clone, Debug)]
pub struct Promtool {
    /// Where it is, or where it was looked for.
    program: Result<PathBuf, String>,
    limits: Limits,
}

impl Promtool {
    /// The program at a path, or none, with the words for where it was looked for.
    pub fn new(program: Result<PathBuf, String>) -> Self {
        Self { program, limits: Limits::default() }
    }

    /// The same with other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether there is a program.
    pub fn ready(&self) -> Result<(), PromtoolError> {
        match &self.program {
            Ok(_) => Ok(()),
            Err(looked) => Err(PromtoolError::Missing { looked: looked.clone() }),
        }
    }

    /// Whether rules can be read: `groups` and all below it.
    pub async fn check_rules(&self, _: &ReadPermit, rules: &Value) -> Result<Verdict, PromtoolError> {
        self.ask(["check", "rules", RULES], &[(RULES, rules)]).await
    }

    /// Whether rules do what a test says. Whatever the test has as `rule_files`, it is these rules that are tested: promtool
    /// itself takes a file that is not there for no rules at all, and is content.
    pub async fn test_rules(
        &self,
        _: &ReadPermit,
        rules: &Value,
        test: &Map<String, Value>,
    ) -> Result<Verdict, PromtoolError> {
        let mut test = test.clone();
        test.insert("rule_files".to_owned(), Value::from(vec![RULES]));
        self.ask(["test", "rules", TEST], &[(RULES, rules), (TEST, &Value::Object(test))]).await
    }

    async fn ask(&self, words: [&str; 3], files: &[(&str, &Value)]) -> Result<Verdict, PromtoolError> {
        match &self.program {
            Ok(program) => run::run(program, words, files, self.limits).await,
            Err(looked) => Err(PromtoolError::Missing { looked: looked.clone() }),
        }
    }
}
