//! Runs the benchmarks, against optimised builds.

use crate::cli::BenchArgs;
use crate::house::House;
use crate::setup;
use anyhow::Result;

/// Builds the binary in release mode (some benchmarks start it), then runs the benchmarks.
pub fn run(house: &House, arguments: &BenchArgs) -> Result<()> {
    if arguments.name.as_deref().is_none_or(|name| name == "graphql") {
        setup::run(&house.cache, &[&setup::GraphqlJs])?;
    }
    house.cargo("build --release --package qontract").run()?;
    let bench = house.cargo("bench --package qontract-benches");
    let bench = bench.env("QONTRACT_GRAPHQL_JS", house.cache.path("graphql-js"));
    match &arguments.name {
        Some(name) => bench.args(["--bench", name]).run(),
        None => bench.run(),
    }
}
