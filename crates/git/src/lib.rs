//! Reads Git repositories that may be hostile.
//!
//! Every `git` process of the workspace is built and run by this crate. The program is used only to resolve
//! revisions, read packed objects, find common ancestors and count commits (`cat-file`, `ls-tree`,
//! `merge-base` and `rev-list`). Everything that could make `git` run code or use the network is disabled:
//!
//! - The repository is found by `location`, not by `git`, and a bare repository is never discovered.
//! - `git` does not read the repository's configuration, hooks, attributes or grafts. It runs on a private
//!   Git directory (`private_dir`) that has a generated configuration and refers only to the refs and the
//!   objects of the repository.
//! - The environment of `git` is cleared, no transport protocol is allowed, and nothing is fetched lazily.
//! - Revisions and paths are passed on standard input and never as arguments, so `git` cannot interpret them
//!   as options. Arguments are constants and object ids.
//! - Each command has its own process group, a deadline, a memory limit and limits on its output.

mod alternates;
mod command;
mod file;
mod location;
mod object;
mod private_dir;
mod settings;
mod tree;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use command::Git;
use location::RepositoryLocation;

pub use object::{Commit, ObjectId};
pub use tree::{EntryKind, TreeEntry, TreePath};

/// Limits of `git` commands and their output.
#[derive(Clone, Copy, Debug)]
pub struct GitLimits {
    /// Time limit of one command.
    pub deadline: Duration,
    /// Maximum number of bytes of a commit object.
    pub commit_bytes: u64,
    /// Maximum number of entries of a tree, including its subtrees.
    pub entries: usize,
    /// Maximum number of bytes of the listing of a tree.
    pub listing_bytes: u64,
    /// Maximum total number of bytes of the objects that one command reads.
    pub total_bytes: u64,
    /// Maximum memory of the `git` process, excluding mapped files.
    pub memory: u64,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_mins(1),
            commit_bytes: 1 << 20,
            entries: 1_000_000,
            listing_bytes: 256 << 20,
            total_bytes: 1 << 30,
            memory: 1 << 30,
        }
    }
}

/// Errors of reading a Git repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// `git` could not be started.
    #[error("cannot run `git`")]
    Start(#[source] io::Error),
    /// The private Git directory could not be created.
    #[error("cannot create a temporary directory for `git`")]
    PrivateDir(#[source] io::Error),
    /// The directory is not in a Git repository.
    #[error("`{}` is not in a Git repository", .0.display())]
    NoRepository(PathBuf),
    /// The Git repository must not be used.
    #[error("the Git repository at `{}` is refused: {reason}", .git_dir.display())]
    Refused {
        /// The Git directory, or the file that names it.
        git_dir: PathBuf,
        /// The reason, and how to fix it.
        reason: String,
    },
    /// `git` failed.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The subcommand.
        command: &'static str,
        /// The beginning of the standard error of `git`.
        message: String,
    },
    /// `git` took longer than its deadline.
    #[error("`git {command}` took longer than {} s", .deadline.as_secs())]
    TimedOut {
        /// The subcommand.
        command: &'static str,
        /// The deadline of the command.
        deadline: Duration,
    },
    /// The repository exceeds a limit.
    #[error("the Git repository is too large: {0}")]
    TooLarge(String),
    /// The revision does not exist.
    #[error("no such Git revision: `{0}`")]
    NoRevision(String),
    /// The directory does not exist in the revision.
    #[error("no directory `{path}` in the Git revision `{revision}`")]
    NoFolder {
        /// The revision.
        revision: String,
        /// The directory.
        path: String,
    },
    /// The output of `git` does not have the documented format.
    #[error("unexpected output of `git {0}`")]
    Answer(&'static str),
}

/// The lock file that exists while a Git command updates the work tree that contains `folder`; `None` if
/// `folder` is not in a repository. The file need not exist.
pub fn index_lock(folder: &Path) -> Option<PathBuf> {
    Some(location::discover(folder).ok()?.git_dir.join("index.lock"))
}

/// A Git repository, and a directory in it.
#[derive(Clone, Debug)]
pub struct Repository {
    git: Git,
    /// The path of the directory from the top of the repository; empty at the top.
    prefix: String,
}

impl Repository {
    /// The repository whose work tree contains `folder`. A bare repository is never found.
    pub fn discover(folder: &Path) -> Result<Self, GitError> {
        Self::at(&location::discover(folder)?, GitLimits::default())
    }

    /// The repository whose work tree contains `folder`, or the bare repository at `folder`.
    ///
    /// A directory in a work tree is part of that work tree, even if it looks like a bare repository, which a
    /// commit can contain.
    pub fn open(folder: &Path) -> Result<Self, GitError> {
        Self::open_within(folder, GitLimits::default())
    }

    /// Opens a repository as [`Self::open`] does, with these limits.
    pub fn open_within(folder: &Path, limits: GitLimits) -> Result<Self, GitError> {
        match location::discover(folder) {
            Err(GitError::NoRepository(_)) => Self::at(&location::bare(folder)?, limits),
            found => Self::at(&found?, limits),
        }
    }

    fn at(location: &RepositoryLocation, limits: GitLimits) -> Result<Self, GitError> {
        Ok(Self { git: Git::new(location, limits)?, prefix: location.prefix.clone() })
    }

    /// The path of the directory from the top of the repository; empty at the top.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The commit that `revision` names.
    pub fn commit(&self, revision: &str) -> Result<Commit, GitError> {
        object::commit(&self.git, revision)
    }

    /// The best common ancestor of two commits; `None` if none exists, or if the local history does not
    /// contain it.
    pub fn merge_base(&self, one: &Commit, other: &Commit) -> Result<Option<ObjectId>, GitError> {
        object::merge_base(&self.git, &one.id, &other.id)
    }

    /// The number of commits that `base` has and `head` does not; 0 if `base` is an ancestor of `head`. Fails if
    /// the local history is incomplete, as in a shallow clone.
    pub fn missing_commits(&self, base: &Commit, head: &Commit) -> Result<u64, GitError> {
        object::missing_commits(&self.git, &base.id, &head.id)
    }

    /// The tree at `path` of a commit; the whole tree if the path is empty. `revision` is the user's name of
    /// the commit, for errors.
    pub fn tree(&self, commit: &Commit, path: &str, revision: &str) -> Result<ObjectId, GitError> {
        let none = || GitError::NoFolder { revision: revision.to_owned(), path: path.to_owned() };
        object::tree(&self.git, &commit.id, path)?.ok_or_else(none)
    }

    /// Every file, link and submodule of a tree, with its path.
    pub fn list(&self, tree: &ObjectId) -> Result<Vec<(TreePath, TreeEntry)>, GitError> {
        tree::list(&self.git, tree)
    }

    /// The contents of blobs, in order. Fails if an entry is not a blob, or does not have the size that the
    /// listing states.
    pub fn blobs(&self, entries: &[&TreeEntry]) -> Result<Vec<Vec<u8>>, GitError> {
        object::blobs(&self.git, entries)
    }
}
