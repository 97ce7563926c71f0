//! The sandbox directory: its default location, and the lock that allows one writing process at a time.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use qontract_bundle::{Layout, Sha256};

use crate::exit::UsageError;
use crate::private_files;
use crate::run_store::state_folder;

/// The default sandbox of a data repo: each data repo has its own.
pub fn default_for(repo: &Path) -> anyhow::Result<PathBuf> {
    let folder = state_folder()
        .ok_or_else(|| UsageError("no directory for the sandbox: pass `--sandbox`".to_owned()))?;
    let repo = std::path::absolute(repo).context("the working directory does not exist")?;
    let repo = repo.canonicalize().unwrap_or(repo);
    let name = repo.file_name().map_or_else(|| "repo".into(), |name| name.to_string_lossy().into_owned());
    let own = Sha256::of(repo.as_os_str().as_encoded_bytes()).to_string();
    Ok(folder.join("sandbox").join(format!("{name}-{}", &own[..8])))
}

/// Refuses a directory that belongs to the files of a data repo: its objects would become part of the data.
pub fn check(folder: &Path) -> Result<(), UsageError> {
    let layout = Layout::default();
    let Ok(full) = std::path::absolute(folder) else { return Ok(()) };
    // The directory and its parents may not exist yet.
    let existing = full.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    let Some((part, real)) = existing else { return Ok(()) };
    let real = full.strip_prefix(part).map_or_else(|_| real.clone(), |rest| real.join(rest));
    for repo in real.ancestors().filter(|folder| folder.join(&layout.graphql).is_file()) {
        let kinds = [&layout.data, &layout.resources, &layout.schemas];
        if let Some(kind) = kinds.into_iter().find(|kind| real.starts_with(repo.join(kind))) {
            let text = format!(
                "`{}` cannot be a sandbox: it is part of `{kind}` of the data repo `{}`",
                folder.display(),
                repo.display()
            );
            return Err(UsageError(text));
        }
    }
    Ok(())
}

/// Locks a sandbox for this process, until the file is closed.
pub fn lock(folder: &Path) -> anyhow::Result<File> {
    let file = folder.join(".lock");
    private_files::create_folder(folder, folder)
        .with_context(|| format!("cannot create `{}`", folder.display()))?;
    let opened = private_files::options().write(true).truncate(false).open(&file);
    let lock = opened.with_context(|| format!("cannot write `{}`", file.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let text = format!("another `qontract up` uses `{}`: pass `--sandbox`", folder.display());
            Err(UsageError(text).into())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock `{}`", file.display()))
        }
    }
}
