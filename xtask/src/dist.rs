//! Builds and checks a release: the archive, the SBOM of the binary, and the checksums of both.
//!
//! Everything except the build itself is produced by the binary or from it, so that packaging the same binary
//! again produces the same bytes.

mod archive;
mod build;
mod check;
mod checksums;
mod image;
mod release;
mod sbom;
mod staging;

use crate::cli::DistArgs;
use crate::workspace::Workspace;
use crate::{console, setup};
use anyhow::{Context as _, Result};
use release::Release;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Builds, stages and packs the binary, writes the SBOM and the checksums, and then checks the result.
pub fn run(workspace: &Workspace, arguments: &DistArgs) -> Result<()> {
    setup::run(&workspace.cache, &setup::FOR_RELEASES)?;
    let mut release = Release::detect(workspace, arguments.target.as_deref())?;
    let target_folder = build::target_folder(workspace)?;
    let binary = match &arguments.binary {
        Some(binary) => {
            // The commit was compiled into this binary when it was built.
            release.commit.clear();
            binary.clone()
        }
        None => build::run(workspace, &release, &target_folder, &arguments.profile)?,
    };
    let out = arguments.out.clone().unwrap_or_else(|| target_folder.join("dist"));
    fs::create_dir_all(&out).with_context(|| format!("cannot create the directory {}", out.display()))?;
    let out = fs::canonicalize(out)?;

    let folder = out.join(release.name());
    staging::stage(workspace, &binary, &folder)?;
    fs::write(out.join(release.archive_name()), archive::pack(&folder, &release.name(), release.seconds)?)?;
    fs::write(out.join(release.sbom_name()), sbom::from_binary(workspace, &folder.join("bin/qontract"))?)?;
    checksums::write(&out)?;

    check::run(workspace, &release, &out)?;
    if !arguments.image.is_empty() {
        images(workspace, arguments, &folder.join("bin/qontract"), &out)?;
    }
    console::print(format_args!("release built and checked, in {}:", out.display()));
    console::print(fs::read_to_string(out.join(checksums::FILE))?.trim_end());
    Ok(())
}

/// Assembles and checks the root file systems of images, from the newest packages.
fn images(workspace: &Workspace, arguments: &DistArgs, binary: &Path, out: &Path) -> Result<()> {
    setup::renew(&workspace.cache, &setup::ImagePackages)?;
    let programs = image::Programs { binary, tools: &arguments.tool };
    for name in arguments.image.iter().copied().collect::<BTreeSet<_>>() {
        let root = out.join("images").join(name.as_str());
        image::assemble(workspace, name, programs, root.clone())?;
        for line in image::check(workspace, name, programs, &root)? {
            console::print(format_args!("image {}: {line}", name.as_str()));
        }
    }
    Ok(())
}
