//! Runs promtool once, with a timeout and an output limit.
//!
//! **Invariant:** the program and its children have their own process group, which is killed when the verdict
//! is known or the caller stops waiting.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use qontract_child::ProcessGroup;
use qontract_concurrency::{CancelOnDrop, Cancellation};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{PromtoolError, PromtoolLimits, RuleVerdict};

/// The environment variables that promtool inherits.
const INHERITED_VARIABLES: [&str; 3] = ["PATH", "LANG", "TZ"];
/// Files for the output of promtool. Unlike pipes, files need no reader, and a child that keeps a file open
/// does not block us.
const OUTPUT_FILES: [&str; 2] = ["stdout", "stderr"];

/// A file that the program reads.
#[derive(Debug)]
pub struct InputFile {
    name: &'static str,
    content: String,
}

impl InputFile {
    /// A file with this value. JSON is valid YAML.
    pub fn new(name: &'static str, value: &Value) -> Self {
        Self { name, content: format!("{value:#}\n") }
    }
}

/// A run of the program in a temporary directory with some files.
#[derive(Debug)]
pub struct PromtoolRun {
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub words: [&'static str; 3],
    /// The files in the working directory of the program.
    pub files: Vec<InputFile>,
    /// The limits of the run.
    pub limits: PromtoolLimits,
}

impl PromtoolRun {
    /// Runs the program on a blocking thread.
    pub async fn verdict(self) -> Result<RuleVerdict, PromtoolError> {
        let caller = CancelOnDrop::default();
        let cancellation = caller.cancellation();
        let verdict = spawn_blocking(move || self.execute(&cancellation)).await;
        drop(caller);
        verdict.map_err(|error| PromtoolError::Files(io::Error::other(error)))?
    }

    fn execute(&self, cancellation: &Cancellation) -> Result<RuleVerdict, PromtoolError> {
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("qontract-promtool-").permissions(private).tempdir();
        let folder = folder.map_err(PromtoolError::Files)?;
        for InputFile { name, content } in &self.files {
            fs::write(folder.path().join(name), content).map_err(PromtoolError::Files)?;
        }
        let status = self.wait(folder.path(), cancellation)?;
        let [stdout, stderr] =
            OUTPUT_FILES.map(|name| read_output(&folder.path().join(name), self.limits.output));
        let output = error_lines(&stdout?, &stderr?);
        match status.code() {
            Some(0) => Ok(RuleVerdict::Passed),
            Some(1) => Ok(RuleVerdict::Failed(output)),
            Some(code) => Err(PromtoolError::NoVerdict { status: format!("exit code {code}"), output }),
            None => {
                let status = format!("signal {}", status.signal().unwrap_or_default());
                Err(PromtoolError::NoVerdict { status, output })
            }
        }
    }

    /// Starts the program and waits for its end. If the function returns early, the program is killed.
    fn wait(&self, folder: &Path, cancellation: &Cancellation) -> Result<ExitStatus, PromtoolError> {
        let mut group = self.start(folder)?;
        let began = Instant::now();
        let is_too_large =
            |name: &&str| fs::metadata(folder.join(name)).is_ok_and(|file| file.len() > self.limits.output);
        let mut failure = None;
        let status = group.wait_while(|| {
            if cancellation.is_cancelled() || began.elapsed() >= self.limits.deadline {
                failure = Some(PromtoolError::TimedOut(self.limits.deadline));
            } else if OUTPUT_FILES.iter().any(is_too_large) {
                failure = Some(PromtoolError::OutputTooLarge(self.limits.output));
            }
            failure.is_none()
        });
        match status.map_err(PromtoolError::Files)? {
            Some(status) => Ok(status),
            None => Err(failure.unwrap_or(PromtoolError::TimedOut(self.limits.deadline))),
        }
    }

    fn start(&self, folder: &Path) -> Result<ProcessGroup, PromtoolError> {
        let [stdout, stderr] =
            OUTPUT_FILES.map(|name| File::create_new(folder.join(name)).map_err(PromtoolError::Files));
        let mut command = Command::new(&self.program);
        command.args(self.words).current_dir(folder).env_clear();
        command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        command.stdin(Stdio::null()).stdout(stdout?).stderr(stderr?);
        ProcessGroup::start(&mut command)
            .map_err(|cause| PromtoolError::Start { program: self.program.display().to_string(), cause })
    }
}

/// Reads an output file, if it is not too large.
fn read_output(file: &Path, limit: u64) -> Result<String, PromtoolError> {
    let mut bytes = Vec::new();
    let file = File::open(file).map_err(PromtoolError::Files)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(PromtoolError::Files)?;
    if bytes.len() as u64 > limit {
        return Err(PromtoolError::OutputTooLarge(limit));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The messages of a verdict: stderr, or stdout if stderr is empty, without status lines and without
/// positions in our temporary files.
fn error_lines(stdout: &str, stderr: &str) -> String {
    let is_message = |line: &&str| {
        let line = line.trim();
        !line.is_empty()
            && line != "FAILED:"
            && line != "SUCCESS"
            && !line.starts_with("Checking ")
            && !line.starts_with("Unit Testing:")
    };
    let messages = |text: &str| {
        let lines: Vec<&str> =
            text.lines().filter(is_message).map(|line| strip_position(line).trim_end()).collect();
        let margin = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
        lines.iter().map(|line| &line[margin..]).collect::<Vec<_>>().join("\n")
    };
    let errors = messages(stderr);
    if errors.is_empty() { messages(stdout) } else { errors }
}

/// Strips a prefix such as `rules.yaml: 5:11: ` from a line.
fn strip_position(line: &str) -> &str {
    let Some(rest) = line.strip_prefix(crate::RULES_FILE).and_then(|rest| rest.strip_prefix(": ")) else {
        return line;
    };
    let is_place = |text: &str| text.chars().all(|letter| letter.is_ascii_digit() || letter == ':');
    match rest.split_once(": ") {
        Some((place, words)) if is_place(place) => words,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::error_lines;

    #[test]
    fn messages_have_no_status_lines_and_no_positions() {
        let check = |stdout, stderr, expect| assert_eq!(error_lines(stdout, stderr), expect);
        check(
            "Checking rules.yaml\n\n",
            "  FAILED:\nrules.yaml: 5:11: group \"a\", rule 1, \"A\": no\nrules.yaml: the group is odd\n",
            "group \"a\", rule 1, \"A\": no\nthe group is odd",
        );
        check(
            "Unit Testing:  test.yaml\n",
            "  FAILED:\n    alertname: A, time: 3m, \n        exp:[], \n",
            "alertname: A, time: 3m,\n    exp:[],",
        );
        check("1 duplicate rule(s) found.\n", "", "1 duplicate rule(s) found.");
    }
}
