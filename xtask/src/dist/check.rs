//! Checks a release as a user would: checksums, archive, binary and SBOM.

use super::release::Release;
use super::{checksums, sbom, staging};
use crate::command::CommandLine;
use crate::console;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Unpacks the archive into a temporary directory and runs its binary.
pub fn run(workspace: &Workspace, release: &Release, out: &Path) -> Result<()> {
    checksums::check(out)?;
    let elsewhere = tempfile::tempdir()?;
    let archive = out.join(release.archive_name());
    CommandLine::new("tar --extract --gzip --file").args([&archive]).folder(elsewhere.path()).run()?;
    let unpacked = elsewhere.path().join(release.name());
    let program = unpacked.join("bin/qontract");

    check_version(&program, release)?;
    for (name, peer) in staging::PEERS {
        let help = CommandLine::program(&unpacked.join("bin").join(name)).args(["--help"]).output()?;
        let is_peer = String::from_utf8_lossy(&help).starts_with(&format!("{name}: "));
        ensure!(is_peer, "`{name}` is not `qontract peer {peer}`");
    }
    let example = workspace.root.join("examples/app-interface");
    let query = CommandLine::program(&program).args(["query", "{ apps_v1 { name } }", "--data"]);
    let answer: Value = serde_json::from_slice(&query.args([example]).run_for_output()?)?;
    let apps = answer["data"]["apps_v1"].as_array().map_or(0, Vec::len);
    ensure!(apps > 0, "the binary finds no apps in the example: {answer}");
    for (shell, path) in staging::COMPLETIONS {
        let script = fs::read_to_string(unpacked.join(path))?;
        ensure!(script.contains("reconcile"), "the {shell} completions do not contain the commands");
    }
    ensure!(unpacked.join("share/man/man1/qontract-reconcile.1").is_file(), "no manual pages found");
    let listed = fs::read(out.join(release.sbom_name()))?;
    ensure!(sbom::from_binary(workspace, &program)? == listed, "the SBOM does not match the binary");
    let listed: Value = serde_json::from_slice(&listed)?;
    let count = listed["components"].as_array().map_or(0, Vec::len);
    console::print(format_args!("the SBOM lists {count} dependencies"));
    Ok(())
}

/// Checks that the binary prints its version, and the commit if one was compiled in.
fn check_version(program: &Path, release: &Release) -> Result<()> {
    let output = CommandLine::program(program).args(["--version"]).run_for_output()?;
    let output = String::from_utf8(output).context("the version is not UTF-8")?;
    let wanted = format!("qontract {}", Release::VERSION);
    let commit: String = release.commit.chars().take(12).collect();
    ensure!(
        output.starts_with(&wanted) && output.contains(&commit),
        "unexpected version `{}`",
        output.trim()
    );
    console::print(output.trim());
    Ok(())
}
