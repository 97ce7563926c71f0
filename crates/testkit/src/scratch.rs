//! A temporary directory for a test, removed when the test ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A temporary directory with methods to fill it.
pub struct Scratch {
    folder: tempfile::TempDir,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// An empty directory.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("qontract-test-").tempdir();
        Self { folder: folder.expect("a temporary directory") }
    }

    /// A directory with a copy of all files below `from`.
    pub fn copy_of(from: &Path) -> Self {
        let scratch = Self::new();
        copy(from, scratch.path());
        scratch
    }

    /// Copies all files below `from` into a subdirectory.
    pub fn copy(&self, from: &Path, to: &str) {
        let folder = self.path().join(to);
        fs::create_dir_all(&folder).expect("directories can be created");
        copy(from, &folder);
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and creates its parent directories.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory"))
            .expect("directories can be created");
        fs::write(&path, content).expect("a file can be written");
        path
    }

    /// Creates an empty journal, as `qontract journal init` does, in a sandbox whose files the test writes
    /// itself.
    pub fn init_journal(&self, sandbox: &str) {
        self.write(&format!("{sandbox}/journal/format.blob"), r#"{"format": 1, "ledgers": []}"#);
    }

    /// Reads a file as text.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("a text file")
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).expect("a file to remove");
    }

    /// Creates a symbolic link.
    pub fn link(&self, name: &str, target: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a link is in a directory"))
            .expect("directories can be created");
        std::os::unix::fs::symlink(target, path).expect("a link can be created");
    }

    /// Runs `git` in the directory and returns its output.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.path())
            .args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .env("GIT_AUTHOR_DATE", "1700000000 +0000")
            .env("GIT_COMMITTER_DATE", "1700000000 +0000")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits all files, and initialises the Git repository if needed; returns the commit.
    pub fn commit_all(&self, message: &str) -> String {
        if !self.path().join(".git").exists() {
            self.git(&["init", "--quiet", "--initial-branch=main"]);
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            fs::create_dir_all(&target).expect("directories can be created");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
