//! Opens data repos: a directory with the commit that is checked out, or a Git revision.

use std::path::Path;

use anyhow::Context as _;
use qontract_bundle::build::BuildOutcome;
use qontract_bundle::repo::{GitError, RepoError, Revision, head_stamp};
use qontract_bundle::{BuildOptions, CommitStamp, Layout, Pool, Repo, build_with};

use crate::discovery;
use crate::exit::UsageError;

/// A data repo, with the commit that its bundle names.
pub struct OpenedRepo {
    /// The data repo.
    pub repo: Repo,
    /// The commit that the bundle names.
    pub stamp: CommitStamp,
}

impl OpenedRepo {
    /// Opens the data repo in a directory, with this commit.
    pub fn with_stamp(folder: &Path, layout: Layout, stamp: CommitStamp) -> anyhow::Result<Self> {
        Ok(Self { repo: repo_in_folder(folder, layout)?, stamp })
    }

    /// Opens the data repo in a directory, with the commit that is checked out.
    pub fn in_folder(folder: &Path, layout: Layout) -> anyhow::Result<Self> {
        let repo = repo_in_folder(folder, layout)?;
        let cannot = || UsageError(format!("cannot read the commit of `{}`", folder.display()));
        Ok(Self { repo, stamp: head_stamp(folder).with_context(cannot)? })
    }

    /// Opens the data repo in a Git revision.
    pub fn at_revision(folder: &Path, name: &str, layout: &Layout) -> anyhow::Result<Self> {
        Self::open_revision(folder, name, layout).map_err(|error| revision_error(error, name))
    }

    /// Opens the data repo in the Git revision that `spec` names. The error also states that `spec` is neither a file
    /// nor a directory.
    pub fn resolve_revision(folder: &Path, spec: &str, layout: &Layout) -> anyhow::Result<Self> {
        Self::open_revision(folder, spec, layout).map_err(|error| match error {
            GitError::NoRevision(_) => not_found(spec),
            other => revision_error(other, spec),
        })
    }

    /// Opens the data repo in a Git revision. The error is that of Git.
    pub fn open_revision(folder: &Path, name: &str, layout: &Layout) -> Result<Self, GitError> {
        let revision = Revision::open(&discovery::revision_root(folder, layout), name)?;
        let stamp = revision.stamp().clone();
        Ok(Self { repo: Repo::revision(revision, layout.clone()), stamp })
    }

    /// Bundles the data repo; a missing directory or file of the data repo is a usage error.
    pub fn bundle(&self, pool: &Pool, options: BuildOptions<'_>) -> anyhow::Result<BuildOutcome> {
        build_with(&self.repo, self.stamp.clone(), pool, options).map_err(|error| match error {
            RepoError::Missing { name } => UsageError(match self.repo.folder() {
                Some(folder) => format!("`{}` is not a data repo: `{name}` not found", folder.display()),
                None => format!("`{name}` not found in the revision"),
            })
            .into(),
            other => other.into(),
        })
    }
}

fn repo_in_folder(folder: &Path, layout: Layout) -> anyhow::Result<Repo> {
    if !folder.is_dir() {
        return Err(UsageError(format!("`{}` is not a directory", folder.display())).into());
    }
    let repo = Repo::directory(folder, layout);
    Ok(if discovery::has_relative_names(folder) { repo.displayed_from(Path::new(".")) } else { repo })
}

fn revision_error(error: GitError, name: &str) -> anyhow::Error {
    match error {
        GitError::NoRevision(_) | GitError::NoFolder { .. } => UsageError(error.to_string()).into(),
        GitError::NoRepository(_) | GitError::Failed { .. } => not_found(name),
        other => anyhow::Error::new(other).context(UsageError(format!("cannot open `{name}`"))),
    }
}

fn not_found(spec: &str) -> anyhow::Error {
    if spec.starts_with("http://") || spec.starts_with("https://") {
        return UsageError(format!("`{spec}` is a URL: only `reconcile` can query a server")).into();
    }
    UsageError(format!("`{spec}` is not a file, directory or Git revision")).into()
}
