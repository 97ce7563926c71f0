//! Sets the commit that the binary is built from: `QONTRACT_COMMIT`, else the commit of the checkout, else
//! none.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QONTRACT_COMMIT");
    let pinned = std::env::var("QONTRACT_COMMIT").ok().map(|commit| (commit, Vec::new()));
    let (commit, watched) = pinned.or_else(|| checkout(Path::new("."))).unwrap_or_default();
    for path in watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=QONTRACT_VERSION={}", version(env!("CARGO_PKG_VERSION"), &commit));
    println!(
        "cargo::rustc-env=QONTRACT_BUILD_COMMIT={}",
        commit.split_whitespace().next().unwrap_or_default()
    );
}

/// The version with the commit, which is `COMMIT DATE`, `COMMIT`, or empty.
pub fn version(version: &str, commit: &str) -> String {
    let mut words = commit.split_whitespace();
    match (words.next(), words.next()) {
        (Some(commit), Some(date)) => format!("{version} (commit {commit:.12}, {date})"),
        (Some(commit), None) => format!("{version} (commit {commit:.12})"),
        (None, _) => version.to_owned(),
    }
}

/// Commit and date of the checkout that contains this package, and the files that change with the next
/// commit.
pub fn checkout(folder: &Path) -> Option<(String, Vec<PathBuf>)> {
    // A source archive may be unpacked inside an unrelated repository.
    if git(folder, &["rev-parse", "--show-prefix"])? != "crates/qontract/" {
        return None;
    }
    let place = |name: &str| Some(folder.join(git(folder, &["rev-parse", "--git-path", name])?));
    let branch = place(&git(folder, &["rev-parse", "--symbolic-full-name", "HEAD"])?)?;
    let mut watched = vec![place("HEAD")?];
    if !branch.exists() {
        // The ref is packed, and the next commit creates a file for it, which changes the folder.
        watched.push(place("packed-refs")?);
    }
    watched.extend(branch.ancestors().find(|path| path.exists()).map(Path::to_owned));
    Some((git(folder, &["log", "-1", "--no-show-signature", "--format=%H %cs"])?, watched))
}

/// The output of a Git command; `None` if it fails or Git is not installed.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
    let answer = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(answer.trim().to_owned())
}
