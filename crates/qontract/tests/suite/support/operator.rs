//! The binary as an operator runs it: on the example, with variables, without the user's own configuration.

use std::path::Path;
use std::process::{Command, Output};

use qontract_testkit::{Scratch, example};

/// The example as `repo`, with a journal for real runs.
pub fn operator_fixture() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.init_journal("runs");
    scratch
}

/// The stderr of a command.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the binary with these environment variables, and without the user's own configuration.
pub fn run_with(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(folder)
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("QONTRACT_CONFIG")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}
