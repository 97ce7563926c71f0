//! Runs the binary as a user does.

use std::path::Path;
use std::process::{Command, Output};

/// Runs the binary in `folder`, without colours and without the user's environment.
pub fn qontract(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(folder)
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .output()
        .expect("the binary runs")
}

/// The output as a user sees it: exit code, stdout, stderr.
pub fn seen(folder: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = qontract(folder, arguments);
    format!(
        "$ qontract {}\nexit: {}\n--- stdout\n{}--- stderr\n{}",
        arguments.join(" "),
        status.code().map_or_else(|| "killed".to_owned(), |code| code.to_string()),
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    )
}
