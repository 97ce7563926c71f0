//! Runs the fuzz targets in `fuzz/` with the stable toolchain.
//!
//! The sanitizers that cargo-fuzz enables are unstable compiler flags, so `RUSTC_BOOTSTRAP=1` unlocks them
//! for this one build. Builds and corpora stay in the cache directory; a crashing input is left in
//! `fuzz/artifacts/`, which Git ignores.

mod report;

use crate::cli::FuzzArgs;
use crate::workspace::Workspace;
use crate::{console, setup};
use anyhow::{Context as _, Result, bail};
use report::FuzzReport;
use std::fs;

/// Runs one target or all targets. Fails if a target crashes.
pub fn run(workspace: &Workspace, arguments: &FuzzArgs) -> Result<()> {
    setup::run(&workspace.cache, &[&setup::FUZZ])?;
    let all = targets(workspace)?;
    let chosen = match &arguments.target {
        Some(name) if !all.contains(name) => {
            bail!("unknown fuzz target `{name}`; known targets: {}", all.join(", "))
        }
        Some(name) => vec![name.clone()],
        None => all,
    };
    let mut reports = Vec::new();
    for target in &chosen {
        reports.push(run_target(workspace, target, arguments.seconds)?);
    }
    console::print(report::table(&reports));
    let crashed: Vec<&str> =
        reports.iter().filter(|report| !report.survived).map(|report| report.target.as_str()).collect();
    if !crashed.is_empty() {
        bail!("failed: {}; the inputs are in fuzz/artifacts", crashed.join(", "));
    }
    Ok(())
}

fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let names = workspace.cargo("fuzz list").folder(&workspace.root.join("fuzz")).output()?;
    Ok(String::from_utf8(names)?.split_whitespace().map(str::to_owned).collect())
}

fn run_target(workspace: &Workspace, target: &str, seconds: u64) -> Result<FuzzReport> {
    let folder = workspace.root.join("fuzz");
    let corpus = workspace.cache.path("fuzz-corpus").join(target);
    fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
    let seeds = folder.join("seeds").join(target);
    let mut line = workspace
        .cargo("fuzz run")
        .args([target, "--target-dir"])
        .args([workspace.cache.path("fuzz-target"), corpus])
        .env("RUSTC_BOOTSTRAP", "1")
        .folder(&folder);
    // New inputs are written to the first directory; the other directories are only read.
    if seeds.is_dir() {
        line = line.args([seeds]);
    }
    let limit = format!("-max_total_time={seconds}");
    line = line.args(["--", &limit, "-rss_limit_mb=4096", "-print_final_stats=1"]);
    let mut report = FuzzReport::new(target);
    report.survived = line.run_streaming(|text| {
        console::print(text);
        report.parse_line(text);
    })?;
    Ok(report)
}
