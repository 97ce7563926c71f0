//! The sandbox directory: its default location, and the lock that allows only one process at a time to write.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use qontract_bundle::{Layout, Sha256};
use qontract_config::Config;
use qontract_diagnostics::MessageSink;
use qontract_files::{lock, private_files};

use crate::discovery;
use crate::exit::UsageError;
use crate::run_store::state_folder;

/// The note of a plan against a sandbox that does not exist.
pub const MISSING: &str = "the sandbox does not exist: every object is planned as new";

/// The default sandbox of a data repo. Each data repo has a separate default.
pub fn default_for(repo: &Path) -> anyhow::Result<PathBuf> {
    let folder = state_folder()
        .ok_or_else(|| UsageError("no directory for the sandbox: pass `--sandbox`".to_owned()))?;
    let repo = std::path::absolute(repo).context("the working directory does not exist")?;
    let repo = repo.canonicalize().unwrap_or(repo);
    let name = repo.file_name().map_or_else(|| "repo".into(), |name| name.to_string_lossy().into_owned());
    let own = Sha256::of(repo.as_os_str().as_encoded_bytes()).to_string();
    Ok(folder.join("sandbox").join(format!("{name}-{}", &own[..8])))
}

/// The sandbox of `up`: `requested`, otherwise the configured sandbox, and otherwise the default; `None` for real
/// targets. `config_file` is the configuration that the command line names.
pub fn of_up(
    requested: Option<&Path>,
    config: &Config,
    config_file: Option<&Path>,
    repo: &Path,
) -> anyhow::Result<Option<PathBuf>> {
    if let Some(folder) = config.sandbox_folder(requested) {
        return Ok(Some(folder.to_owned()));
    }
    // Real targets are used only if the command line names the configuration; naming it in the environment is
    // not enough.
    if config.kubernetes.is_some() && config_file.is_some() {
        return Ok(None);
    }
    default_for(repo).map(Some)
}

/// The sandbox of `plan`: `requested` or, if it is not set and the configuration has no targets, the sandbox that
/// `up` created for the data repo.
pub fn of_plan(
    requested: Option<&Path>,
    config: &Config,
    repo: &Path,
    messages: &dyn MessageSink,
) -> Option<PathBuf> {
    if requested.is_some() || config.sandbox.is_some() || config.kubernetes.is_some() {
        return requested.map(Path::to_owned);
    }
    let repo = discovery::revision_root(repo, &Layout::default());
    let folder = default_for(&repo).ok().filter(|folder| folder.is_dir())?;
    let shown = folder.display();
    messages.note(&format!("note: no target is configured; planning against the sandbox {shown}"));
    Some(folder)
}

/// Whether a sandbox is used whose directory does not exist.
pub fn is_missing(requested: Option<&Path>, config: &Config) -> bool {
    config.sandbox_folder(requested).is_some_and(|folder| !folder.is_dir())
}

/// Refuses a directory among the files of a data repo, because its objects would become part of the data.
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

/// Locks a sandbox for this process until the returned file is closed.
pub fn lock(folder: &Path) -> anyhow::Result<File> {
    let file = folder.join(".lock");
    private_files::create_folder(folder, folder)
        .with_context(|| format!("cannot create `{}`", folder.display()))?;
    let locked = lock::try_acquire(&file).with_context(|| format!("cannot lock `{}`", file.display()))?;
    locked.ok_or_else(|| {
        let text = format!("another `qontract up` uses `{}`: pass `--sandbox`", folder.display());
        UsageError(text).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_locked_once() {
        let scratch = qontract_testkit::Scratch::new();
        let held = lock(scratch.path()).expect("a lock");
        let error = lock(scratch.path()).expect_err("a second lock").to_string();
        assert!(error.starts_with("another `qontract up` uses `"), "{error}");
        drop(held);
        lock(scratch.path()).expect("a lock");
    }

    #[test]
    fn real_targets_are_used_only_if_the_command_line_names_them() {
        let repo = Path::new("repo");
        let config = |text: &str| toml::from_str::<Config>(text).expect("a configuration");
        let real = config("[kubernetes]\n");
        let (file, folder) = (Some(Path::new("c.toml")), Some(Path::new("box")));
        let of = |requested, config, file| of_up(requested, config, file, repo).expect("a sandbox");
        assert_eq!(of(None, &real, file), None);
        assert_eq!(of(folder, &real, file).as_deref(), folder);
        let own = config("[sandbox]\ndirectory = \"own\"\n[kubernetes]\n");
        assert_eq!(of(None, &own, file).as_deref(), Some(Path::new("own")));
        assert_eq!(of(folder, &own, file).as_deref(), folder);
    }
}
