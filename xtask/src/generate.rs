//! Makes the Rust types of every committed GraphQL request.

use crate::cli::GenerateArgs;
use crate::house::House;
use anyhow::Result;

/// Runs the generator over this checkout.
pub fn run(house: &House, arguments: &GenerateArgs) -> Result<()> {
    let generator =
        house.cargo("run --quiet --package qontract-graphql --example generate --").args([&house.root]);
    if arguments.check { generator.args(["--check"]).run() } else { generator.run() }
}
