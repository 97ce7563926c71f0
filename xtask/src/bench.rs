//! Runs the benchmarks, against optimised builds.

use crate::cli::BenchArgs;
use crate::house::House;
use anyhow::Result;

/// Builds the binary in release mode (some benchmarks start it), then runs the benchmarks.
pub fn run(house: &House, arguments: &BenchArgs) -> Result<()> {
    house.cargo("build --release --package qontract").run()?;
    let bench = house.cargo("bench --package qontract-benches");
    match &arguments.name {
        Some(name) => bench.args(["--bench", name]).run(),
        None => bench.run(),
    }
}
