//! What a release is called, and from which commit it is made.

use crate::command::CommandLine;
use crate::house::House;
use anyhow::{Context as _, Result};
use std::env;

/// One release for one target.
#[derive(Debug)]
pub struct Release {
    /// For what it is built, as rustc names it.
    pub target: String,
    /// What the binary is told of its commit: hash and day, or `modified` in place of the day; may be empty.
    pub commit: String,
    /// The time of all files in the archive, in seconds since 1970.
    pub seconds: u64,
}

impl Release {
    /// The version of every package of this workspace.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// What the environment says, else what Git says, else a release that knows nothing of its commit.
    pub fn of(house: &House, target: Option<&str>) -> Result<Self> {
        let git = |words: &str, format: &str| {
            let output = CommandLine::new(words).args([format]).folder(&house.root).output().ok()?;
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
        let seconds = seconds.map(|text| text.parse()).transpose().context("the time of the commit")?;
        let target = match target {
            Some(target) => target.to_owned(),
            None => host(house)?,
        };
        Ok(Self { target, commit: commit.unwrap_or_default(), seconds: seconds.unwrap_or_default() })
    }

    /// The name of the folder and of the files.
    pub fn name(&self) -> String {
        format!("qontract-{}-{}", Self::VERSION, self.target)
    }

    /// The name of the archive.
    pub fn archive(&self) -> String {
        format!("{}.tar.gz", self.name())
    }

    /// The name of the list of what is in the binary.
    pub fn contents(&self) -> String {
        format!("{}.cdx.json", self.name())
    }
}

/// The target of this machine.
fn host(house: &House) -> Result<String> {
    let said = house.cargo("--version --verbose").output()?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("cargo does not tell the target of this machine")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Release;
    use crate::house::House;
    use std::fs;

    #[test]
    fn files_are_named_by_version_and_target() {
        let release = Release { target: "a-b-c".to_owned(), commit: String::new(), seconds: 0 };
        let version = Release::VERSION;
        assert_eq!(release.archive(), format!("qontract-{version}-a-b-c.tar.gz"));
        assert_eq!(release.contents(), format!("qontract-{version}-a-b-c.cdx.json"));
    }

    /// What keeps the two files together that nothing else does.
    #[test]
    fn the_image_is_built_by_the_toolchain_of_the_checkout_and_runs_as_a_number() {
        let house = House::of_this_checkout().expect("a checkout");
        let read = |name: &str| fs::read_to_string(house.root.join(name)).expect("a file of the checkout");
        let toolchain = read("rust-toolchain.toml");
        let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).expect("a channel");
        let image = read("Containerfile");
        let builder = format!("ARG BUILDER=rust:{}", channel.trim_matches('"'));
        assert!(image.lines().any(|line| line == builder), "{builder}");
        let user = image.lines().find_map(|line| line.strip_prefix("USER ")).expect("a user");
        assert!(user.split(':').all(|number| number.parse::<u32>().is_ok_and(|number| number > 0)), "{user}");
    }
}
