//! Builds the binary of a release: with the list of its dependencies inside, and without the paths of this machine.

use super::release::Release;
use crate::house::House;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};

/// Where cargo puts what it builds for this checkout.
pub fn target_folder(house: &House) -> Result<PathBuf> {
    let metadata = house.cargo("metadata --format-version 1 --no-deps").output()?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let folder = metadata["target_directory"].as_str().context("cargo does not tell its target folder")?;
    Ok(PathBuf::from(folder))
}

/// Builds it and tells where it is.
pub fn run(house: &House, release: &Release, target_folder: &Path, profile: &str) -> Result<PathBuf> {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home =
        cargo_home.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("no home folder")?;
    // the later ones win, and folders may lie within each other: from the outermost to the innermost
    let mut folders = [(house.root.as_path(), "qontract"), (&cargo_home, "cargo"), (target_folder, "target")];
    folders.sort_by_key(|(folder, _)| folder.components().count());
    let flags = |option: &str| folders.map(|(folder, name)| format!("{option}={}={name}", folder.display()));
    house
        .cargo("auditable build --locked --package qontract")
        .args(["--profile", profile, "--target", &release.target])
        .env("QONTRACT_COMMIT", &release.commit)
        .env("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix").join("\u{1f}"))
        .env("CFLAGS", flags("-ffile-prefix-map").join(" "))
        .run()?;
    // the one profile whose folder has another name
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target_folder.join(&release.target).join(folder).join("qontract"))
}
