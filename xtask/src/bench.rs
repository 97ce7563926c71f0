//! Runs the benchmarks, against optimised builds.

use crate::cli::BenchArgs;
use crate::house::House;
use crate::setup;
use anyhow::Result;

/// Builds the binary in release mode (some benchmarks start it), then runs the benchmarks.
pub fn run(house: &House, arguments: &BenchArgs) -> Result<()> {
    let name = arguments.name.as_deref();
    let runs = |bench: &str| name.is_none_or(|name| name == bench);
    house.cargo("build --release --package qontract").run()?;
    let mut bench = house.cargo("bench --package qontract-benches");
    if runs("graphql") {
        setup::run(&house.cache, &[&setup::GRAPHQL_JS])?;
    }
    if runs("server") {
        setup::run(&house.cache, &[&setup::APOLLO])?;
        bench = bench.env("QONTRACT_APOLLO", house.cache.path("apollo"));
    }
    if runs("kubernetes") {
        setup::run(&house.cache, &[&setup::Kubernetes])?;
        let binaries = setup::kubernetes_binaries(&house.cache)?.variables();
        bench = binaries.into_iter().fold(bench, |bench, (name, value)| bench.env(name, value));
    }
    match name {
        Some(name) => bench.args(["--bench", name]).run(),
        None => bench.run(),
    }
}
