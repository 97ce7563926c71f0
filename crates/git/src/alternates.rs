//! Checks the alternate object stores of a repository.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::location::{RepositoryLocation, refused};
use crate::{GitError, file};

/// Fails if the object store of a repository, or one of its alternates, is outside its common directory.
pub fn check(location: &RepositoryLocation) -> Result<(), GitError> {
    let RepositoryLocation { common_dir, .. } = location;
    let refuse = |reason: String| refused(common_dir.clone(), &reason);
    let inside = common_dir.canonicalize().map_err(|error| refuse(error.to_string()))?;
    let (mut stores, mut seen) = (vec![common_dir.join("objects")], BTreeSet::new());
    while let Some(store) = stores.pop() {
        let shown = store.display().to_string();
        let Ok(store) = store.canonicalize() else {
            return Err(refuse(format!("its objects are in `{shown}`, which does not exist")));
        };
        if !store.starts_with(&inside) {
            return Err(refuse(format!(
                "its objects are also in `{shown}`, outside of it (`git repack -a -d && rm objects/info/alternates`)"
            )));
        }
        if !seen.insert(store.clone()) {
            continue;
        }
        match file::read(&store.join("info/alternates")) {
            Ok(bytes) => stores.extend(paths(&bytes).map(|path| store.join(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refuse(format!("`objects/info/alternates`: {error}"))),
        }
    }
    Ok(())
}

/// The paths in an `alternates` file.
fn paths(bytes: &[u8]) -> impl Iterator<Item = &Path> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
    lines.map(|line| Path::new(OsStr::from_bytes(line)))
}
