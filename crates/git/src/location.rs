//! Finds the Git repository of a directory.
//!
//! `git` also treats a directory with the right files as a bare repository, and a commit can contain such
//! files. This module accepts only a `.git`, which a commit cannot contain.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::{GitError, file, settings};

/// The location of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryLocation {
    /// The directory with `HEAD`; each linked work tree has its own.
    pub git_dir: PathBuf,
    /// The directory with the refs, the objects and the configuration.
    pub common_dir: PathBuf,
    /// The path of the directory from the top of the repository; empty at the top.
    pub prefix: String,
}

/// The repository whose work tree contains `folder`.
///
/// As in `git`, the search stops at the boundary of a file system and at the directories in
/// `GIT_CEILING_DIRECTORIES`.
pub fn discover(folder: &Path) -> Result<RepositoryLocation, GitError> {
    let none = || GitError::NoRepository(folder.to_owned());
    let folder = folder.canonicalize().map_err(|_| none())?;
    let ceilings = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
    let ceilings: Vec<PathBuf> = std::env::split_paths(&ceilings).filter(|path| path.is_absolute()).collect();
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    let own_device = device(&folder);
    for top in folder.ancestors() {
        let is_beyond = top != folder && (ceilings.iter().any(|one| one == top) || device(top) != own_device);
        if is_beyond {
            break;
        }
        let Some((git_dir, common_dir)) = git_dirs(top)? else { continue };
        // If `folder` is in the Git directory itself, it stands for the top of the work tree.
        let below = if folder.starts_with(&git_dir) { top } else { &folder };
        let prefix = below.strip_prefix(top).ok().and_then(Path::to_str);
        let Some(prefix) = prefix else {
            return Err(refused(git_dir, "the path of the directory is not UTF-8"));
        };
        return Ok(RepositoryLocation { git_dir, common_dir, prefix: prefix.to_owned() });
    }
    Err(none())
}

/// The bare repository at `folder`.
pub fn bare(folder: &Path) -> Result<RepositoryLocation, GitError> {
    let none = || GitError::NoRepository(folder.to_owned());
    let git_dir = folder.canonicalize().map_err(|_| none())?;
    if !is_git_dir(&git_dir, &git_dir) {
        return Err(none());
    }
    Ok(RepositoryLocation { common_dir: git_dir.clone(), git_dir, prefix: String::new() })
}

/// The Git directory and the common directory of the work tree at `top`, if there is a `.git` in it.
fn git_dirs(top: &Path) -> Result<Option<(PathBuf, PathBuf)>, GitError> {
    let dot_git = top.join(".git");
    let Ok(metadata) = dot_git.symlink_metadata() else { return Ok(None) };
    if metadata.is_dir() {
        return Ok(is_git_dir(&dot_git, &dot_git).then(|| (dot_git.clone(), dot_git)));
    }
    if metadata.is_symlink() {
        return Err(refused(dot_git, "it is a symbolic link"));
    }
    if !metadata.is_file() {
        return Err(refused(dot_git, "it is neither a directory nor a file"));
    }
    named_by_file(top, &dot_git).map(Some)
}

/// The directories that a `.git` file names. Anyone can write such a file, so the Git directory must also
/// name the work tree.
fn named_by_file(top: &Path, dot_git: &Path) -> Result<(PathBuf, PathBuf), GitError> {
    let refuse = |reason: &str| refused(dot_git.to_owned(), reason);
    let line = file::first_line(dot_git).map_err(|error| refuse(&error.to_string()))?;
    let named = line.strip_prefix("gitdir:").ok_or_else(|| refuse("it does not name a Git directory"))?;
    let git_dir = top.join(named.trim_start()).canonicalize();
    let git_dir = git_dir.map_err(|_| refuse("the Git directory that it names does not exist"))?;
    let common_dir = match file::first_line(&git_dir.join("commondir")) {
        Ok(common) => linked_work_tree(dot_git, &git_dir, &common)?,
        Err(_) => separate_git_dir(top, dot_git, &git_dir)?,
    };
    if !is_git_dir(&git_dir, &common_dir) {
        return Err(refuse("the path that it names is not a Git directory"));
    }
    Ok((git_dir, common_dir))
}

/// The common directory of a linked work tree, whose `gitdir` file names the `.git` file.
fn linked_work_tree(dot_git: &Path, git_dir: &Path, common: &str) -> Result<PathBuf, GitError> {
    let refuse = |reason: &str| refused(dot_git.to_owned(), reason);
    let back = file::first_line(&git_dir.join("gitdir")).unwrap_or_default();
    if git_dir.join(&back).canonicalize().ok().as_deref() != Some(dot_git) {
        return Err(refuse(
            "the Git directory that it names belongs to another work tree (`git worktree repair`)",
        ));
    }
    let common_dir = git_dir.join(common).canonicalize();
    let common_dir = common_dir.map_err(|_| refuse("the repository of the work tree does not exist"))?;
    if git_dir.parent() != Some(&common_dir.join("worktrees")) {
        return Err(refuse("its Git directory is not in the repository's `worktrees` directory"));
    }
    Ok(common_dir)
}

/// The Git directory of a submodule or of a separate Git directory, whose `core.worktree` names the work
/// tree.
fn separate_git_dir(top: &Path, dot_git: &Path, git_dir: &Path) -> Result<PathBuf, GitError> {
    let config = file::read(&git_dir.join("config")).unwrap_or_default();
    let work_tree = settings::parse(&String::from_utf8_lossy(&config)).work_tree;
    let is_same = |path: String| git_dir.join(path).canonicalize().is_ok_and(|path| path == top);
    if !work_tree.is_some_and(is_same) {
        let (git_dir, top) = (git_dir.display(), top.display());
        let reason = format!(
            "the Git directory that it names does not point back to this work tree (`git --git-dir={git_dir} config core.worktree {top}`)"
        );
        return Err(refused(dot_git.to_owned(), &reason));
    }
    Ok(git_dir.to_owned())
}

/// Whether these directories contain a repository.
fn is_git_dir(git_dir: &Path, common_dir: &Path) -> bool {
    git_dir.join("HEAD").symlink_metadata().is_ok()
        && common_dir.join("objects").is_dir()
        && common_dir.join("refs").is_dir()
}

/// The error for a repository that must not be used.
pub fn refused(git_dir: PathBuf, reason: &str) -> GitError {
    GitError::Refused { git_dir, reason: reason.to_owned() }
}
