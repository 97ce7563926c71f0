//! The steps of a long install. Each step is printed when it begins, and the output of its commands goes to a
//! log.

use super::folder;
use crate::command::CommandLine;
use crate::console;
use crate::workspace::ToolCache;
use anyhow::{Context as _, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Number of log lines that a failure shows.
const TAIL_LINES: usize = 15;

/// The progress of an install: its tool, log file and start time.
#[derive(Debug)]
pub struct InstallLog {
    tool: &'static str,
    log: PathBuf,
    start: Instant,
}

/// A tool that is fetched into the cache.
#[derive(Debug, Clone, Copy)]
pub struct FetchedTool {
    /// Name of the tool and of its directory in the cache.
    pub name: &'static str,
    /// The directory that `fetch` fills.
    pub folder: &'static str,
    /// The hint if the tool cannot be fetched.
    pub hint: &'static str,
}

impl FetchedTool {
    /// Calls `fetch` with a work directory and moves the result into place when it is complete. The caller
    /// holds the lock of the cache, so no other process uses the directory.
    pub fn install(
        self,
        cache: &ToolCache,
        fetch: impl FnOnce(&Path, &InstallLog) -> Result<()>,
    ) -> Result<()> {
        let home = cache.path(self.name);
        let (work, place) = (home.join("work"), home.join(self.folder));
        for folder in [&work, &place] {
            folder::remove(folder)?;
        }
        fs::create_dir_all(work.join(self.folder))?;
        let steps = InstallLog::create(self.name, home.join("install.log"))?;
        let fetched = fetch(&work, &steps);
        if fetched.is_ok() {
            folder::replace(&work.join(self.folder), &place)?;
        }
        fs::remove_dir_all(&work)?;
        fetched.map_err(|error| anyhow::anyhow!("{error:#}\nhint: {}", self.hint))
    }
}

impl InstallLog {
    /// Creates the log, which replaces an older log.
    pub fn create(of: &'static str, log: PathBuf) -> Result<Self> {
        File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        Ok(Self { tool: of, log, start: Instant::now() })
    }

    /// Prints the current step and the elapsed time.
    pub fn report(&self, what: &str) {
        let (of, seconds) = (self.tool, self.start.elapsed().as_secs());
        console::print(format_args!("setup: {of}: {seconds:>4} s: {what}"));
    }

    /// Prints the step and runs its command. The error of a failure names the step and the log.
    pub fn run(&self, what: &str, line: &CommandLine) -> Result<()> {
        self.report(what);
        let log = File::options().append(true).open(&self.log)?;
        if line.run_logged(&log).with_context(|| format!("{what} failed"))? {
            return Ok(());
        }
        let text = fs::read(&self.log)?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        bail!("{what} failed, see {}; the last lines:\n{end}\n", self.log.display());
    }
}

#[cfg(test)]
mod tests {
    use super::InstallLog;
    use crate::command::CommandLine;

    #[test]
    fn a_failure_names_the_step_and_the_log_and_shows_its_end() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let log = folder.path().join("build.log");
        let steps = InstallLog::create("x", log.clone()).expect("a log");
        steps.run("printing", &CommandLine::new("echo so")).expect("it ends well");
        let error = steps.run("listing", &CommandLine::new("ls /no/such/folder")).expect_err("it fails");
        let error = error.to_string();
        assert!(error.starts_with(&format!("listing failed, see {}", log.display())), "{error}");
        assert!(error.contains("$ echo so\nso\n$ ls /no/such/folder\n"), "{error}");
    }
}
