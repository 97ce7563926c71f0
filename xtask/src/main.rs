//! The project's own chores, as `cargo xtask COMMAND`. This file only picks the command; each module does one.

mod bench;
mod chaos;
mod cli;
mod command;
mod dist;
mod fuzz;
mod generate;
mod house;
mod new_integration;
mod setup;
mod talk;
mod test;
mod tidy;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&cli::Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            talk::say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &cli::Command) -> anyhow::Result<()> {
    let house = house::House::of_this_checkout()?;
    match command {
        cli::Command::Setup => setup::run(&house.cache, &setup::FOR_TESTS),
        cli::Command::Test(arguments) => test::run(&house, arguments),
        cli::Command::Tidy => tidy::run(&house),
        cli::Command::Generate(arguments) => generate::run(&house, arguments),
        cli::Command::NewIntegration(arguments) => new_integration::run(&house, arguments),
        cli::Command::Bench(arguments) => bench::run(&house, arguments),
        cli::Command::Dist(arguments) => dist::run(&house, arguments),
        cli::Command::Fuzz(arguments) => fuzz::run(&house, arguments),
        cli::Command::Chaos(arguments) => chaos::run(&house, arguments),
    }
}
