//! Reproducible archive: the same files produce the same bytes, on any machine and at any time.
//!
//! **Invariant:** the order, owners, permissions and times of the entries do not depend on the machine. A
//! file is executable or not, every directory can be entered, and every entry belongs to user and group 0.

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use std::fs;
use std::io::{Write, empty};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Packs a directory under this name. Every entry gets this modification time.
pub fn pack(folder: &Path, name: &str, seconds: u64) -> Result<Vec<u8>> {
    let mut archive = Builder::new(GzBuilder::new().write(Vec::new(), Compression::best()));
    add(&mut archive, folder, name, seconds).with_context(|| format!("cannot pack {}", folder.display()))?;
    Ok(archive.into_inner()?.finish()?)
}

fn add<W: Write>(archive: &mut Builder<W>, path: &Path, name: &str, seconds: u64) -> Result<()> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        let mut header = header(EntryType::Symlink, 0o777, 0, seconds);
        archive.append_link(&mut header, name, fs::read_link(path)?)?;
    } else if about.is_dir() {
        let mut header = header(EntryType::Directory, 0o755, 0, seconds);
        archive.append_data(&mut header, format!("{name}/"), empty())?;
        let mut names = fs::read_dir(path)?
            .map(|entry| entry?.file_name().into_string().ok().context("a file name that is not UTF-8"))
            .collect::<Result<Vec<String>>>()?;
        names.sort();
        for child in names {
            add(archive, &path.join(&child), &format!("{name}/{child}"), seconds)?;
        }
    } else {
        let mode = if about.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
        let mut header = header(EntryType::Regular, mode, about.len(), seconds);
        archive.append_data(&mut header, name, fs::File::open(path)?)?;
    }
    Ok(())
}

fn header(kind: EntryType, mode: u32, size: u64, seconds: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use super::pack;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    /// A directory with these files, created in this order and with this mode.
    fn folder(names: &[&str], mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a file is in a directory"))
                .expect("directories can be created");
            fs::write(&path, name).expect("a file can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions can be set");
        }
        symlink("qontract", folder.path().join("bin/qontract-server")).expect("a link can be created");
        folder
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let first = folder(&["bin/qontract", "share/a", "share/b/c"], 0o700);
        let second = folder(&["share/b/c", "share/a", "bin/qontract"], 0o755);
        let packed = pack(first.path(), "qontract-1", 1_700_000_000).expect("it packs");
        assert_eq!(packed, pack(second.path(), "qontract-1", 1_700_000_000).expect("it packs"));
        fs::write(second.path().join("share/a"), "B").expect("a file can be written");
        assert_ne!(packed, pack(second.path(), "qontract-1", 1_700_000_000).expect("it packs"));
    }

    #[test]
    fn the_archive_has_the_packed_files() {
        let source = folder(&["bin/qontract", "share/b/c"], 0o755);
        let packed = pack(source.path(), "qontract-1", 1_700_000_000).expect("it packs");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let names: Vec<String> = archive
            .entries()
            .expect("an archive")
            .map(|entry| {
                let entry = entry.expect("an entry");
                let header = entry.header();
                assert_eq!((header.uid().ok(), header.gid().ok()), (Some(0), Some(0)));
                assert_eq!(header.mtime().ok(), Some(1_700_000_000));
                let name = entry.path().expect("a path").display().to_string();
                let link = entry.link_name().expect("a link").map(|link| format!(" -> {}", link.display()));
                format!("{:o} {name}{}", header.mode().expect("a mode"), link.unwrap_or_default())
            })
            .collect();
        assert_eq!(
            names,
            [
                "755 qontract-1/",
                "755 qontract-1/bin/",
                "755 qontract-1/bin/qontract",
                "777 qontract-1/bin/qontract-server -> qontract",
                "755 qontract-1/share/",
                "755 qontract-1/share/b/",
                "755 qontract-1/share/b/c",
            ]
        );
    }

    #[test]
    fn the_error_names_a_missing_directory() {
        let error = pack(Path::new("nowhere"), "qontract-1", 0).expect_err("nothing to pack");
        assert_eq!(error.to_string(), "cannot pack nowhere");
    }
}
