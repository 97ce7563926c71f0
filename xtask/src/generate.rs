//! Makes what is committed and generated: the Rust types of every GraphQL request, and the configuration reference.

use crate::cli::GenerateArgs;
use crate::house::House;
use anyhow::{Context as _, Result, bail};

/// Runs the generator over this checkout.
pub fn run(house: &House, arguments: &GenerateArgs) -> Result<()> {
    let generator =
        house.cargo("run --quiet --package qontract-graphql --example generate --").args([&house.root]);
    if arguments.check {
        generator.args(["--check"]).run()?;
    } else {
        generator.run()?;
    }
    reference(house, arguments)
}

/// The page of every configuration key and environment variable, which the binary prints.
const REFERENCE: &str = "docs/reference/configuration.md";

fn reference(house: &House, arguments: &GenerateArgs) -> Result<()> {
    let page = house.cargo("run --quiet --package qontract --bin qontract -- config reference").output()?;
    let page = String::from_utf8(page).context("the page is not UTF-8")?;
    let file = house.root.join(REFERENCE);
    if arguments.check {
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        if committed != page {
            bail!("{REFERENCE} is not what the binary prints: run `cargo xtask generate`");
        }
        return Ok(());
    }
    std::fs::create_dir_all(file.parent().unwrap_or(&house.root))?;
    std::fs::write(&file, page).with_context(|| format!("cannot write {REFERENCE}"))
}
