//! Development tasks of the project, run as `cargo xtask COMMAND`. This file only dispatches; each command is
//! a module.

mod bench;
mod chaos;
mod cli;
mod command;
mod console;
mod dist;
mod fuzz;
mod generate;
mod new_integration;
mod setup;
mod test;
mod tidy;
mod workspace;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&cli::Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::print(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &cli::Command) -> anyhow::Result<()> {
    let workspace = workspace::Workspace::of_this_checkout()?;
    match command {
        cli::Command::Setup => setup::run(&workspace.cache, &setup::FOR_TESTS),
        cli::Command::Test(arguments) => test::run(&workspace, arguments),
        cli::Command::Tidy => tidy::run(&workspace),
        cli::Command::Generate(arguments) => generate::run(&workspace, arguments),
        cli::Command::NewIntegration(arguments) => new_integration::run(&workspace, arguments),
        cli::Command::Bench(arguments) => bench::run(&workspace, arguments),
        cli::Command::Dist(arguments) => dist::run(&workspace, arguments),
        cli::Command::Fuzz(arguments) => fuzz::run(&workspace, arguments),
        cli::Command::Chaos(arguments) => chaos::run(&workspace, arguments),
    }
}
