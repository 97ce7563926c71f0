//! Builds the release binary with an embedded dependency list and without paths of this machine.

use super::release::Release;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};

/// The target directory of this checkout.
pub fn target_folder(workspace: &Workspace) -> Result<PathBuf> {
    let metadata = workspace.cargo("metadata --format-version 1 --no-deps").output()?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let folder = metadata["target_directory"].as_str().context("`cargo metadata` has no target directory")?;
    Ok(PathBuf::from(folder))
}

/// Builds the binary and returns its path.
pub fn run(workspace: &Workspace, release: &Release, target_folder: &Path, profile: &str) -> Result<PathBuf> {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home =
        cargo_home.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("no home directory")?;
    // The directories are ordered from the outermost to the innermost, because they may be nested and the
    // last match wins.
    let mut folders =
        [(workspace.root.as_path(), "qontract"), (&cargo_home, "cargo"), (target_folder, "target")];
    folders.sort_by_key(|(folder, _)| folder.components().count());
    let flags = |option: &str| folders.map(|(folder, name)| format!("{option}={}={name}", folder.display()));
    workspace
        .cargo("auditable build --locked --package qontract")
        .args(["--profile", profile, "--target", &release.target])
        .env("QONTRACT_COMMIT", &release.commit)
        .env("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix").join("\u{1f}"))
        .env("CFLAGS", flags("-ffile-prefix-map").join(" "))
        .run()?;
    // `dev` is the only profile whose directory has a different name.
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target_folder.join(&release.target).join(folder).join("qontract"))
}
