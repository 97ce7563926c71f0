//! Makes what is released, and checks it: the archive, the list of what is in the binary, the checksums of both.
//!
//! Everything but the build itself is made by the binary or from it, so that a release can be made again from the same
//! binary to the same bytes.

mod archive;
mod build;
mod check;
mod contents;
mod prefix;
mod release;
mod sums;

use crate::cli::DistArgs;
use crate::house::House;
use crate::{setup, talk};
use anyhow::{Context as _, Result};
use release::Release;
use std::fs;

/// Builds, lays out, packs, lists and sums up; then checks what came of it.
pub fn run(house: &House, arguments: &DistArgs) -> Result<()> {
    setup::run(&house.cache, &setup::FOR_RELEASES)?;
    let mut release = Release::of(house, arguments.target.as_deref())?;
    let target_folder = build::target_folder(house)?;
    let binary = match &arguments.binary {
        Some(binary) => {
            // it was told when it was built
            release.commit.clear();
            binary.clone()
        }
        None => build::run(house, &release, &target_folder, &arguments.profile)?,
    };
    let out = arguments.out.clone().unwrap_or_else(|| target_folder.join("dist"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make the folder {}", out.display()))?;
    let out = fs::canonicalize(out)?;

    let folder = out.join(release.name());
    prefix::lay_out(house, &binary, &folder)?;
    fs::write(out.join(release.archive()), archive::pack(&folder, &release.name(), release.seconds)?)?;
    fs::write(out.join(release.contents()), contents::of_binary(house, &folder.join("bin/qontract"))?)?;
    sums::write(&out)?;

    check::run(house, &release, &out)?;
    talk::say(format_args!("made and checked, in {}:", out.display()));
    talk::say(fs::read_to_string(out.join(sums::FILE))?.trim_end());
    Ok(())
}
