//! Stages the install prefix of a release: a directory tree to unpack into `/usr/local` or `~/.local`.

use crate::command::CommandLine;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// Names of the peer tools, each with the `qontract peer` command that replaces it.
pub const PEERS: [(&str, &str); 5] = [
    ("qontract-bundler", "bundler"),
    ("qontract-reconcile", "reconcile"),
    ("qontract-server", "server"),
    ("qontract-validator", "validator"),
    ("run-integration", "run-integration"),
];

/// Documents that are installed with the binary.
const PAGES: [&str; 4] = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"];

/// Completion path of each shell, below the prefix.
pub const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "share/bash-completion/completions/qontract"),
    ("elvish", "share/elvish/lib/qontract.elv"),
    ("fish", "share/fish/vendor_completions.d/qontract.fish"),
    ("powershell", "share/powershell/qontract.ps1"),
    ("zsh", "share/zsh/site-functions/_qontract"),
];

/// Empties the directory, and fills it with the files of the release.
pub fn stage(workspace: &Workspace, binary: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let bin = folder.join("bin");
    fs::create_dir_all(&bin)?;
    let program = bin.join("qontract");
    fs::copy(binary, &program).with_context(|| format!("cannot copy {}", binary.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    for (name, _) in PEERS {
        symlink("qontract", bin.join(name))?;
    }
    // The user's configuration is ignored, because it may name more integrations, which would appear in the
    // release.
    let command = |words: [&str; 2]| CommandLine::program(&program).args(words).env("QONTRACT_CONFIG", "");
    for (shell, path) in COMPLETIONS {
        write(&folder.join(path), &command(["completions", shell]).output()?)?;
    }
    let manual = folder.join("share/man/man1");
    command(["man", &manual.to_string_lossy()]).output()?;
    for (name, peer) in PEERS {
        write(&manual.join(format!("{name}.1")), format!(".so man1/qontract-peer-{peer}.1\n").as_bytes())?;
    }
    for page in PAGES {
        let text = fs::read(workspace.root.join(page)).with_context(|| format!("cannot read {page}"))?;
        write(&folder.join("share/doc/qontract").join(page), &text)?;
    }
    Ok(())
}

/// Writes a file and creates its parent directories.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
