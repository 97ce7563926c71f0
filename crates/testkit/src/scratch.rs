//! A folder of a test's own, gone when the test ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A temporary folder with ways to fill it.
pub struct Scratch {
    folder: tempfile::TempDir,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// An empty folder.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("qontract-test-").tempdir();
        Self { folder: folder.expect("a temporary folder") }
    }

    /// A folder with a copy of all files below `from`.
    pub fn copy_of(from: &Path) -> Self {
        let scratch = Self::new();
        copy(from, scratch.path());
        scratch
    }

    /// Copies all files below `from` into a folder of this one.
    pub fn copy(&self, from: &Path, to: &str) {
        let folder = self.path().join(to);
        fs::create_dir_all(&folder).expect("folders can be made");
        copy(from, &folder);
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
        fs::write(&path, content).expect("a file can be written");
        path
    }

    /// Gives a sandbox that a test fills by hand a journal that remembers nothing, as `qontract journal init` does.
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

    /// Makes a symbolic link.
    pub fn link(&self, name: &str, target: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a link is in a folder")).expect("folders can be made");
        std::os::unix::fs::symlink(target, path).expect("a link can be made");
    }

    /// Runs `git` in the folder and returns what it prints.
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

    /// Makes the folder a Git repository with one commit of all that is in it; returns the commit.
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
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            fs::create_dir_all(&target).expect("folders can be made");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
