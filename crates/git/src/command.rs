//! Builds and runs `git` commands.

use std::io::{self, BufReader, Read, Write as _};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use qontract_child::{DeadlineReader, ProcessGroup};

use crate::location::RepositoryLocation;
use crate::private_dir::PrivateDir;
use crate::{GitError, GitLimits, alternates};

/// Settings on the command line. They repeat the configuration of the private directory, and they also
/// disable features that files in the object store could enable.
const CONFIG_OVERRIDES: [&str; 8] = [
    // No program of the repository is run.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    // A bare repository is never discovered.
    "safe.bareRepository=explicit",
    // Nothing is fetched, and submodules are ignored.
    "protocol.allow=never",
    "submodule.recurse=false",
    // Objects are not replaced.
    "core.useReplaceRefs=false",
    // `merge-base` reads commits, not the commit-graph file, which may be inconsistent with them.
    "core.commitGraph=false",
];

/// The environment of `git`, besides `PATH` and the variables that name directories.
const ENVIRONMENT: [(&str, &str); 10] = [
    ("LC_ALL", "C"),
    // Configuration and attributes of the machine and of the user are not read.
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Missing objects are not fetched: the only protocol that is allowed does not exist.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    // There is no password prompt, and no file is written.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Maximum number of bytes of standard error that are read.
const MAX_ERROR_BYTES: u64 = 16 << 10;
/// Maximum number of bytes of standard error in an error message.
const MAX_SHOWN_BYTES: usize = 500;
/// Time to wait for standard error after the process has ended.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs `git` on one repository.
#[derive(Clone, Debug)]
pub struct Git {
    private_dir: Arc<PrivateDir>,
    limits: GitLimits,
}

/// The standard output of a running `git`.
pub type GitOutput = BufReader<DeadlineReader<ChildStdout>>;

impl Git {
    /// Prepares the repository at a location; fails if it must not be used.
    pub fn new(location: &RepositoryLocation, limits: GitLimits) -> Result<Self, GitError> {
        alternates::check(location)?;
        Ok(Self { private_dir: Arc::new(PrivateDir::new(location)?), limits })
    }

    /// The limits.
    pub fn limits(&self) -> &GitLimits {
        &self.limits
    }

    /// Runs a subcommand with `input` on its standard input and reads its output with `read`.
    ///
    /// `arguments` are constants and object ids; names from users or data go into `input`.
    pub fn run<T>(
        &self,
        subcommand: &'static str,
        arguments: &[&str],
        input: String,
        read: impl FnOnce(&mut GitOutput) -> Result<T, OutputError>,
    ) -> Result<T, GitError> {
        let deadline = Instant::now() + self.limits.deadline;
        let mut group = self.start(subcommand, arguments).map_err(GitError::Start)?;
        let (stdin, stdout, stderr) = group.take_pipes();
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(GitError::Answer(subcommand));
        };
        // Both threads end no later than the process group. An error is ignored, because a process may end
        // before it has read all of its input.
        thread::spawn(move || stdin.write_all(input.as_bytes()));
        let (sender, errors) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.take(MAX_ERROR_BYTES).read_to_end(&mut bytes);
            sender.send(bytes)
        });
        let timed_out = || GitError::TimedOut { command: subcommand, deadline: self.limits.deadline };
        let mut output = BufReader::new(DeadlineReader::new(stdout, deadline));
        let read = match read(&mut output) {
            Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => return Err(timed_out()),
            Err(OutputError::TooLarge(what)) => return Err(GitError::TooLarge(what)),
            read => read,
        };
        drop(output);
        let status = group.wait_until(deadline).map_err(GitError::Start)?.ok_or_else(timed_out)?;
        match read {
            Ok(value) if status.success() => Ok(value),
            _ if !status.success() => {
                let errors = errors.recv_timeout(STDERR_TIMEOUT).unwrap_or_default();
                Err(GitError::Failed { command: subcommand, message: message(&errors) })
            }
            _ => Err(GitError::Answer(subcommand)),
        }
    }

    fn start(&self, subcommand: &str, arguments: &[&str]) -> io::Result<ProcessGroup> {
        let private_dir = self.private_dir.path();
        let mut command = Command::new("git");
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(ENVIRONMENT);
        command.env("HOME", private_dir).env("GIT_DIR", private_dir);
        command.env("GIT_OBJECT_DIRECTORY", self.private_dir.objects());
        command.current_dir(private_dir);
        command.args(CONFIG_OVERRIDES.iter().flat_map(|setting| ["-c", setting]));
        command.arg("--no-pager").arg(subcommand).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let group = ProcessGroup::start(&mut command)?;
        // If memory cannot be limited, the other limits still apply.
        let _ = group.limit_memory(self.limits.memory);
        Ok(group)
    }
}

/// The reason why output was not read to its end.
#[derive(Debug)]
pub enum OutputError {
    /// The pipe failed, or the deadline passed.
    Io(io::Error),
    /// The output does not have the documented format of the subcommand.
    Format,
    /// The output exceeds a limit.
    TooLarge(String),
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The beginning of standard error, as a string.
fn message(errors: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(errors).trim().to_owned();
    let end = (0..=MAX_SHOWN_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::{MAX_SHOWN_BYTES, message};

    #[test]
    fn a_message_is_truncated_at_a_character_boundary() {
        assert_eq!(message(b" fatal: no\n"), "fatal: no");
        assert_eq!(message("é".repeat(MAX_SHOWN_BYTES).as_bytes()).len(), MAX_SHOWN_BYTES);
        assert_eq!(
            message(format!("x{}", "é".repeat(MAX_SHOWN_BYTES)).as_bytes()).len(),
            MAX_SHOWN_BYTES - 1
        );
    }
}
