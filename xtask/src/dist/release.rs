//! The name of a release, and the commit from which it is built.

use crate::command::CommandLine;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use std::env;

/// One release for one target.
#[derive(Debug)]
pub struct Release {
    /// The target triple.
    pub target: String,
    /// The commit compiled into the binary: hash and date, or `modified` instead of the date; may be empty.
    pub commit: String,
    /// Modification time of all files in the archive, in seconds since 1970.
    pub seconds: u64,
}

impl Release {
    /// The version of every package of this workspace.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Reads the commit and the time from the environment, otherwise from Git. Both are empty if neither
    /// source has them.
    pub fn detect(workspace: &Workspace, target: Option<&str>) -> Result<Self> {
        let git = |words: &str, format: &str| {
            let output = CommandLine::new(words).args([format]).folder(&workspace.root).output().ok()?;
            Some(String::from_utf8_lossy(&output).trim().to_owned())
        };
        let log = "git log -1 --no-show-signature";
        let commit = env::var("QONTRACT_COMMIT").ok().or_else(|| {
            let is_clean = git("git status", "--porcelain")?.is_empty();
            git(log, if is_clean { "--format=%H %cs" } else { "--format=%H modified" })
        });
        let seconds = match env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => Some(text),
            Err(_) => git(log, "--format=%ct"),
        };
        let seconds = seconds.map(|text| text.parse()).transpose().context("cannot parse the commit time")?;
        let target = match target {
            Some(target) => target.to_owned(),
            None => host_target(workspace)?,
        };
        Ok(Self { target, commit: commit.unwrap_or_default(), seconds: seconds.unwrap_or_default() })
    }

    /// The common name of the directory and the files.
    pub fn name(&self) -> String {
        format!("qontract-{}-{}", Self::VERSION, self.target)
    }

    /// File name of the archive.
    pub fn archive_name(&self) -> String {
        format!("{}.tar.gz", self.name())
    }

    /// File name of the SBOM.
    pub fn sbom_name(&self) -> String {
        format!("{}.cdx.json", self.name())
    }
}

/// The target triple of this machine.
fn host_target(workspace: &Workspace) -> Result<String> {
    let output = workspace.cargo("--version --verbose").output()?;
    let output = String::from_utf8_lossy(&output).into_owned();
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`cargo --version` has no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Release;
    use crate::workspace::Workspace;
    use std::fs;

    #[test]
    fn files_are_named_by_version_and_target() {
        let release = Release { target: "a-b-c".to_owned(), commit: String::new(), seconds: 0 };
        let version = Release::VERSION;
        assert_eq!(release.archive_name(), format!("qontract-{version}-a-b-c.tar.gz"));
        assert_eq!(release.sbom_name(), format!("qontract-{version}-a-b-c.cdx.json"));
    }

    /// Only this test ensures that the toolchain file and the Containerfiles agree.
    #[test]
    fn images_use_the_toolchain_of_the_checkout_and_a_numeric_user() {
        let workspace = Workspace::of_this_checkout().expect("a checkout");
        let read =
            |name: &str| fs::read_to_string(workspace.root.join(name)).expect("a file of the checkout");
        let toolchain = read("rust-toolchain.toml");
        let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).expect("a channel");
        let builder = format!("ARG BUILDER=rust:{}", channel.trim_matches('"'));
        for name in ["from-source", "minimal", "tools"] {
            let image = read(&format!("deploy/images/{name}.Containerfile"));
            assert_eq!(image.lines().any(|line| line == builder), name == "from-source", "{builder}");
            let user = format!("USER {0}:{0}", crate::dist::image::USER);
            assert!(image.lines().any(|line| line == user), "{name}: {user}");
            // No file is fetched and no program is run, unless the binary is built there.
            let has_files = image.lines().any(|line| line == format!("COPY images/{name}/ /"));
            assert_eq!(has_files, name != "from-source", "{name}");
        }
    }
}
