//! A server process that does not outlive the one who started it.

use crate::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Watches over a server; see there.
const SUPERVISE: &str = include_str!("supervise.sh");
/// How many lines of a log are told.
const LAST_WORDS: usize = 20;

/// A running server. **Invariant:** it ends when this value or this process does, in whichever way.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    log: PathBuf,
    supervisor: Child,
}

impl Process {
    /// Starts a program that says what it has to say into a log in `folder`.
    pub fn start(program: &Path, arguments: &[String], folder: &Path, kept: Kept) -> Result<Self, Error> {
        let failed = |source| Error::Start { program: program.to_owned(), source };
        let name = program.file_name().unwrap_or(program.as_os_str());
        let log = folder.join(name).with_extension("log");
        let output = File::options().create(true).append(true).open(&log).map_err(failed)?;
        let leftover = match kept {
            Kept::Folder => Path::new(""),
            Kept::Nothing => folder,
        };
        let supervisor = Command::new("sh")
            .args(["-c", SUPERVISE, "supervise"])
            .arg(leftover)
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?;
        Ok(Self { program: program.to_owned(), log, supervisor })
    }

    /// Fails if it is not running any more.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.supervisor.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(Error::Ended { program: self.name(), log: self.last_words() }),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The end of what it said.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
    }
}

/// What stays when a server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// All that it wrote.
    Folder,
    /// Nothing: its folder goes with it.
    Nothing,
}

impl Drop for Process {
    fn drop(&mut self) {
        // the supervisor ends its server at the end of its stdin, and then itself
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, Process};
    use crate::{Error, eventually};
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    fn start(script: &str, kept: Kept) -> (tempfile::TempDir, Process) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = ["-c".to_owned(), script.to_owned()];
        let process = Process::start(Path::new("/bin/sh"), &arguments, folder.path(), kept);
        (folder, process.expect("it starts"))
    }

    #[test]
    fn a_server_ends_with_its_value_and_takes_its_folder_along() {
        for kept in [Kept::Folder, Kept::Nothing] {
            let (folder, process) = start("echo $$ > pid.new; mv pid.new pid; exec sleep 600", kept);
            let pid = eventually("it told its pid", || fs::read_to_string(folder.path().join("pid")).ok());
            let alive = || Command::new("kill").args(["-0", pid.trim()]).output().unwrap().status.success();
            assert!(alive());
            drop(process);
            assert!(!alive());
            assert_eq!(folder.path().exists(), kept == Kept::Folder);
        }
    }

    #[test]
    fn a_server_that_ends_by_itself_leaves_its_last_words() {
        let (folder, mut process) = start("echo no such thing; exit 3", Kept::Nothing);
        let error = eventually("it ended", || process.check().err());
        let Error::Ended { program, log } = error else { panic!("it ended: {error}") };
        assert_eq!((program.as_str(), log.as_str()), ("sh", "no such thing"));
        assert!(folder.path().exists());
    }
}
