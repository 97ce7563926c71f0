//! Checks a release as the one who gets it would: sums, archive, binary, the list of what is in it.

use super::release::Release;
use super::{contents, prefix, sums};
use crate::command::CommandLine;
use crate::house::House;
use crate::talk;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Unpacks the archive elsewhere, and uses what is in it.
pub fn run(house: &House, release: &Release, out: &Path) -> Result<()> {
    sums::check(out)?;
    let elsewhere = tempfile::tempdir()?;
    let archive = out.join(release.archive());
    CommandLine::new("tar --extract --gzip --file").args([&archive]).folder(elsewhere.path()).run()?;
    let unpacked = elsewhere.path().join(release.name());
    let program = unpacked.join("bin/qontract");

    version(&program, release)?;
    for (name, peer) in prefix::PEERS {
        let help = CommandLine::program(&unpacked.join("bin").join(name)).args(["--help"]).output()?;
        let wanted = format!("qontract peer {peer}");
        ensure!(String::from_utf8_lossy(&help).contains(&wanted), "`{name}` is not `{wanted}`");
    }
    let example = house.root.join("examples/app-interface");
    let query = CommandLine::program(&program).args(["query", "{ apps_v1 { name } }", "--data"]);
    let answer: Value = serde_json::from_slice(&query.args([example]).run_for_output()?)?;
    let apps = answer["data"]["apps_v1"].as_array().map_or(0, Vec::len);
    ensure!(apps > 0, "the example has apps, and the binary finds none: {answer}");
    for (shell, path) in prefix::COMPLETIONS {
        let script = fs::read_to_string(unpacked.join(path))?;
        ensure!(script.contains("reconcile"), "the completions for {shell} do not know the commands");
    }
    ensure!(unpacked.join("share/man/man1/qontract-reconcile.1").is_file(), "there are no manual pages");
    let listed = fs::read(out.join(release.contents()))?;
    ensure!(contents::of_binary(house, &program)? == listed, "the list is not that of the binary");
    let listed: Value = serde_json::from_slice(&listed)?;
    let count = listed["components"].as_array().map_or(0, Vec::len);
    talk::say(format_args!("the binary tells its {count} dependencies"));
    Ok(())
}

/// It says its version, and the commit if it was told one.
fn version(program: &Path, release: &Release) -> Result<()> {
    let said = CommandLine::program(program).args(["--version"]).run_for_output()?;
    let said = String::from_utf8(said).context("a version is text")?;
    let wanted = format!("qontract {}", Release::VERSION);
    let commit: String = release.commit.chars().take(12).collect();
    ensure!(said.starts_with(&wanted) && said.contains(&commit), "it says that it is `{}`", said.trim());
    talk::say(said.trim());
    Ok(())
}
