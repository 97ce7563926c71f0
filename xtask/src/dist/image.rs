//! Assembles the root file systems of container images. The files in `deploy/images` copy them into an image.
//!
//! A root file system contains only the files that its programs need: the binary, the shared libraries that it is
//! linked with, and certificates. The libraries are those of Debian packages, not those of this machine.

mod check;
mod elf;
mod root_fs;

pub use check::run as check;

use super::staging::PEERS;
use crate::cli::ImageName;
use crate::console;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use root_fs::RootFs;
use std::fs;
use std::path::{Path, PathBuf};

/// The user of the image.
pub const USER: u32 = 65532;

/// Users and groups of the image.
const ACCOUNTS: [(&str, &str); 2] = [
    ("etc/passwd", "root:x:0:0:root:/:/sbin/nologin\nqontract:x:65532:65532:qontract:/tmp:/sbin/nologin\n"),
    ("etc/group", "root:x:0:\nqontract:x:65532:\n"),
];

/// Names of Git that other programs start. All of them are links to `git`.
const GIT_NAMES: [&str; 4] = ["git-receive-pack", "git-upload-archive", "git-upload-pack", "git"];

/// The programs of an image that come from elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Programs<'a> {
    /// The binary.
    pub binary: &'a Path,
    /// Programs that the larger image also contains, in `/usr/local/bin`.
    pub tools: &'a [PathBuf],
}

/// Assembles the root file system of an image in a directory, which is emptied before.
pub fn assemble(workspace: &Workspace, name: ImageName, programs: Programs<'_>, root: PathBuf) -> Result<()> {
    let packages = workspace.cache.image_packages();
    let mut image = RootFs::create(root, &packages)?;
    image.program(programs.binary, "bin/qontract")?;
    for (peer, _) in PEERS {
        image.link(&format!("bin/{peer}"), "qontract")?;
    }
    certificates(&mut image)?;
    for (path, content) in ACCOUNTS {
        image.write(path, content.as_bytes())?;
    }
    image.write("etc/nsswitch.conf", b"hosts: files dns\n")?;
    image.folder("tmp", 0o1777)?;
    // The container runtime mounts these.
    for path in ["dev", "proc", "sys"] {
        image.folder(path, 0o755)?;
    }
    for page in ["LICENSE", "SECURITY.md"] {
        image.write(&format!("usr/share/doc/qontract/{page}"), &fs::read(workspace.root.join(page))?)?;
    }
    match name {
        ImageName::Minimal => {}
        ImageName::Tools => tools(&mut image, programs.tools)?,
    }
    image.describe_packages()?;
    let used: Vec<&str> = image.used_packages().collect();
    console::print(format_args!("files of the packages {}", used.join(", ")));
    Ok(())
}

/// Writes the certificates of public authorities into one file. The package installs them with a script.
fn certificates(image: &mut RootFs<'_>) -> Result<()> {
    let mut bundle = Vec::new();
    for file in image.packaged_files("ca-certificates", "usr/share/ca-certificates/mozilla")? {
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        bundle.extend_from_slice(text.trim_ascii_end());
        bundle.push(b'\n');
    }
    image.write("etc/ssl/certs/ca-certificates.crt", &bundle)
}

/// Adds Git with HTTPS, a shell, promtool, and the given programs.
fn tools(image: &mut RootFs<'_>, more: &[PathBuf]) -> Result<()> {
    image.packaged_program("git", "usr/bin/git")?;
    image.packaged_program("git", "usr/lib/git-core/git-remote-http")?;
    image.link("usr/lib/git-core/git-remote-https", "git-remote-http")?;
    for name in GIT_NAMES {
        image.link(&format!("usr/lib/git-core/{name}"), "../../bin/git")?;
    }
    image.link("usr/bin/git-upload-pack", "git")?;
    image.folder("usr/share/git-core/templates", 0o755)?;
    // Git and Terraform start some commands through a shell.
    image.packaged_program("dash", "bin/dash")?;
    image.link("bin/sh", "dash")?;
    image.packaged_program("prometheus", "usr/bin/promtool")?;
    for tool in more {
        let name = tool.file_name().context("a tool has a file name")?.to_string_lossy();
        image.program(tool, &format!("usr/local/bin/{name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Programs, assemble, check};
    use crate::cli::ImageName;
    use crate::workspace::Workspace;
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    /// The binary next to the directory of this test program.
    fn binary() -> PathBuf {
        let own = std::env::current_exe().expect("a path");
        own.parent().and_then(Path::parent).expect("a target directory").join("qontract")
    }

    /// The path of each file ↦ its mode, and its content or target. The binary is omitted, because it is large.
    fn files(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let (mut pending, mut found) = (vec![root.to_owned()], BTreeMap::new());
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(&folder).expect("a directory") {
                let path = entry.expect("an entry").path();
                let about = fs::symlink_metadata(&path).expect("it exists");
                let content = if about.is_symlink() {
                    fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                } else if about.is_dir() {
                    pending.push(path.clone());
                    Vec::new()
                } else if path.ends_with("bin/qontract") {
                    Vec::new()
                } else {
                    fs::read(&path).expect("a file")
                };
                let name = path.strip_prefix(root).expect("below the root").to_owned();
                found.insert(name, (about.permissions().mode(), content));
            }
        }
        found
    }

    #[test]
    #[ignore = "needs the packages of images and the binary; run by `cargo xtask test`"]
    fn the_programs_of_both_images_run_as_their_user_and_as_process_1() {
        let workspace = Workspace::of_this_checkout().expect("a checkout");
        let (folder, binary) = (tempfile::tempdir().expect("a temporary directory"), binary());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .expect("permissions can be set");
        // Any static program can be added.
        let terraform = PathBuf::from("/usr/local/bin/terraform");
        let tools: Vec<PathBuf> = [terraform].into_iter().filter(|path| path.is_file()).collect();
        if tools.is_empty() {
            qontract_testkit::not_tested("the image with Terraform: no Terraform on this machine");
        }
        let programs = Programs { binary: &binary, tools: &tools };
        for name in [ImageName::Minimal, ImageName::Tools] {
            let root = folder.path().join(name.as_str());
            assemble(&workspace, name, programs, root.clone()).expect("it is assembled");
            let first = files(&root);
            for line in check(&workspace, name, programs, &root).expect("all programs run") {
                crate::console::print(format_args!("image {}: {line}", name.as_str()));
            }
            assert!(files(&root) == first, "a check leaves files in the image {}", name.as_str());
            assemble(&workspace, name, programs, root.clone()).expect("it is assembled again");
            assert!(files(&root) == first, "another assembly of {} gives other files", name.as_str());
        }
    }
}
