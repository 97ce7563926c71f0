//! The checksum file, with one line for each file of this version, in the format of `sha256sum`.

use super::release::Release;
use crate::command::CommandLine;
use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::Path;

/// Name of the checksum file.
pub const FILE: &str = "SHA256SUMS";

/// Writes the checksums of every archive and SBOM of this version in the directory, for all targets.
pub fn write(folder: &Path) -> Result<()> {
    let version = format!("qontract-{}-", Release::VERSION);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&version) && entry.file_type()?.is_file() {
            names.push(name);
        }
    }
    names.sort();
    let mut lines = String::new();
    for name in names {
        let bytes = fs::read(folder.join(&name)).with_context(|| format!("cannot read {name}"))?;
        for byte in Sha256::digest(bytes) {
            lines.push_str(&format!("{byte:02x}"));
        }
        lines.push_str(&format!("  {name}\n"));
    }
    Ok(fs::write(folder.join(FILE), lines)?)
}

/// Checks the checksums with `sha256sum`.
pub fn check(folder: &Path) -> Result<()> {
    CommandLine::new("sha256sum --check --strict --quiet").args([FILE]).folder(folder).run()
}

#[cfg(test)]
mod tests {
    use super::{FILE, check, write};
    use crate::dist::release::Release;
    use std::fs;

    #[test]
    fn every_file_of_the_version_has_a_checksum_and_a_change_is_detected() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let name = format!("qontract-{}-here.tar.gz", Release::VERSION);
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        put(&name, "abc");
        put("qontract-0.0.0-here.tar.gz", "an older one");
        fs::create_dir(folder.path().join(format!("qontract-{}-here", Release::VERSION)))
            .expect("a directory");
        write(folder.path()).expect("checksums are written");
        let sums = fs::read_to_string(folder.path().join(FILE)).expect("the sums");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sums, format!("{expected}  {name}\n"));
        check(folder.path()).expect("nothing has changed");
        put(&name, "abd");
        check(folder.path()).expect_err("a changed file");
        fs::remove_file(folder.path().join(&name)).expect("it exists");
        check(folder.path()).expect_err("a missing file");
    }
}
