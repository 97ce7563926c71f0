//! Builds, prints and runs command lines.
//!
//! All output of a command goes to stderr, so that its lines stay in order.

use crate::console;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Interval at which a command with a timeout is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A program, its arguments, its working directory and extra environment variables.
#[derive(Debug, Clone)]
pub struct CommandLine {
    words: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    folder: Option<PathBuf>,
}

/// The outcome of a command with a timeout.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// The command exited with code 0.
    Success,
    /// The command exited with a different code or by a signal.
    Failure,
    /// The command was killed at the timeout.
    TimedOut,
}

impl CommandLine {
    /// A command line from words separated by spaces.
    pub fn new(words: &str) -> Self {
        let words = words.split_whitespace().map(OsString::from).collect();
        Self { words, environment: Vec::new(), folder: None }
    }

    /// A command line that runs the program at this path, which may contain spaces.
    pub fn program(path: &Path) -> Self {
        Self { words: vec![path.into()], environment: Vec::new(), folder: None }
    }

    /// Adds arguments verbatim.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.words.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable for this command.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Prints the command and runs it. Fails if the command fails.
    pub fn run(&self) -> Result<()> {
        console::print(format_args!("$ {self}"));
        let status = self.build().status().with_context(|| format!("cannot start `{self}`"))?;
        if !status.success() {
            bail!("`{self}` failed ({status})");
        }
        Ok(())
    }

    /// Prints the command and runs it for at most `limit`.
    pub fn run_with_timeout(&self, limit: Duration) -> Result<CommandStatus> {
        console::print(format_args!("$ {self}"));
        let mut child = self.build().spawn().with_context(|| format!("cannot start `{self}`"))?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { CommandStatus::Success } else { CommandStatus::Failure });
            }
            if start.elapsed() >= limit {
                child.kill()?;
                child.wait()?;
                return Ok(CommandStatus::TimedOut);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Prints the command, runs it, and passes every line of its stderr to `line`. Returns whether the
    /// command succeeded.
    pub fn run_streaming(&self, mut line: impl FnMut(&str)) -> Result<bool> {
        console::print(format_args!("$ {self}"));
        let mut child =
            self.build().stderr(Stdio::piped()).spawn().with_context(|| format!("cannot start `{self}`"))?;
        if let Some(stderr) = child.stderr.take() {
            for bytes in BufReader::new(stderr).split(b'\n') {
                line(&String::from_utf8_lossy(&bytes?));
            }
        }
        Ok(child.wait()?.success())
    }

    /// Runs the command and appends the command line and all output to a log. Returns whether the command
    /// succeeded.
    pub fn run_logged(&self, mut log: &File) -> Result<bool> {
        writeln!(log, "$ {self}")?;
        let status = self.build().stdout(log.try_clone()?).stderr(log.try_clone()?).status();
        Ok(status.with_context(|| format!("cannot start `{self}`"))?.success())
    }

    /// Whether the command starts and succeeds. Prints nothing.
    pub fn succeeds(&self) -> bool {
        let quiet = self.build().stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    }

    /// Prints the command, runs it, and returns its stdout. Its stderr is passed through.
    pub fn run_for_output(&self) -> Result<Vec<u8>> {
        console::print(format_args!("$ {self}"));
        let output = self
            .build()
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start `{self}`"))?;
        if !output.status.success() {
            bail!("`{self}` failed ({})", output.status);
        }
        Ok(output.stdout)
    }

    /// Runs the command and returns its stdout. If the command fails, its stderr is part of the error.
    pub fn output(&self) -> Result<Vec<u8>> {
        let output = self
            .build()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .with_context(|| format!("cannot start `{self}`"))?;
        if !output.status.success() {
            bail!("`{self}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output.stdout)
    }

    fn build(&self) -> Command {
        let (program, arguments) = self.words.split_first().expect("a command line has a program");
        let mut command = Command::new(program);
        command.args(arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(io::stderr());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words.iter().enumerate() {
            let word = word.to_string_lossy();
            let space = if index == 0 { "" } else { " " };
            if word.is_empty() || word.contains([' ', '<', '>', '*', '\'', '"', '$']) {
                write!(f, "{space}{word:?}")?;
            } else {
                write!(f, "{space}{word}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandLine, CommandStatus};
    use std::time::Duration;

    #[test]
    fn a_command_line_is_printed_as_one_would_type_it() {
        let line = CommandLine::new("cargo test").args(["a b", "c"]);
        assert_eq!(line.to_string(), r#"cargo test "a b" c"#);
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = CommandLine::new("false").run().expect_err("it fails");
        assert!(error.to_string().starts_with("`false` failed"), "{error}");
    }

    #[test]
    fn a_command_is_stopped_at_its_time_limit() {
        let limit = Duration::ZERO;
        assert_eq!(
            CommandLine::new("sleep 60").run_with_timeout(limit).expect("it starts"),
            CommandStatus::TimedOut
        );
    }

    #[test]
    fn the_output_of_a_command_can_be_read() {
        assert_eq!(CommandLine::new("echo a b").output().expect("it runs"), b"a b\n");
        assert_eq!(CommandLine::new("echo a b").run_for_output().expect("it runs"), b"a b\n");
        let mut lines = Vec::new();
        let ended = CommandLine::new("ls /no/such/folder").run_streaming(|line| lines.push(line.to_owned()));
        assert!(!ended.expect("it starts"));
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    #[test]
    fn a_missing_program_does_not_succeed() {
        assert!(!CommandLine::new("qontract-no-such-program").succeeds());
    }
}
