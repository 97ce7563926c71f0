//! Runs the benchmarks against optimized builds.

use crate::cli::BenchArgs;
use crate::setup;
use crate::workspace::Workspace;
use anyhow::Result;

/// Builds the binary in release mode, because some benchmarks start it, and then runs the benchmarks.
pub fn run(workspace: &Workspace, arguments: &BenchArgs) -> Result<()> {
    let name = arguments.name.as_deref();
    let runs = |bench: &str| name.is_none_or(|name| name == bench);
    workspace.cargo("build --release --package qontract").run()?;
    let mut bench = workspace.cargo("bench --package qontract-benches");
    if runs("graphql") {
        setup::run(&workspace.cache, &[&setup::GRAPHQL_JS])?;
    }
    if runs("server") {
        setup::run(&workspace.cache, &[&setup::APOLLO])?;
        bench = bench.env("QONTRACT_APOLLO", workspace.cache.path("apollo"));
    }
    if runs("kubernetes") {
        setup::run(&workspace.cache, &[&setup::Kubernetes])?;
        let binaries = setup::kubernetes_binaries(&workspace.cache)?.variables();
        bench = binaries.into_iter().fold(bench, |bench, (name, value)| bench.env(name, value));
    }
    match name {
        Some(name) => bench.args(["--bench", name]).run(),
        None => bench.run(),
    }
}
