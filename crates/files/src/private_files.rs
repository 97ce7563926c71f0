//! Directories and files that only their owner may read: run records, sandboxes, state and caches contain parts
//! of the data and of target systems.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Creates `folder`, which is `root` or below it, with mode 0700. Removes the permissions of other users from
/// existing directories below `root`; an existing `root` is not changed, because another user may own it.
pub fn create_folder(root: &Path, folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for part in folder.ancestors().take_while(|part| *part != root && part.starts_with(root)) {
        let mode = fs::metadata(part)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(part, Permissions::from_mode(mode & 0o700))?;
        }
    }
    Ok(())
}

/// Options to open a file, and to create it with mode 0600 if it is missing.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_below_the_root_become_private_and_the_root_is_not_changed() {
        let scratch = qontract_testkit::Scratch::new();
        let root = scratch.path().join("root");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::create_dir_all(root.join("old")).unwrap();
        for path in [&root, &root.join("old")] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        create_folder(&root, &root.join("old/new")).unwrap();
        assert_eq!(
            (mode(&root), mode(&root.join("old")), mode(&root.join("old/new"))),
            (0o755, 0o700, 0o700)
        );
        create_folder(&root, &root).unwrap();
        assert_eq!(mode(&root), 0o755);
        let made = scratch.path().join("a/b");
        create_folder(&made, &made).unwrap();
        assert_eq!((mode(&made), mode(&scratch.path().join("a"))), (0o700, 0o700));
    }
}
