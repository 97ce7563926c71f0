//! Ownership checks for files in default locations: a file that another user left in a shared
//! directory, such as `/tmp`, is not used.

use std::path::Path;

/// Whether a file belongs to the user or to the owner of the working directory: all files of a checkout in a
/// container have one owner, who might not be the user. The owner of a symbolic link is checked as well,
/// because the link decides which file is read.
#[cfg(unix)]
pub fn is_trusted(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    let directory = Path::new(".").metadata().ok().map(|metadata| metadata.uid());
    [file.symlink_metadata(), file.metadata()]
        .into_iter()
        .all(|about| about.is_ok_and(|about| is_trusted_owner(about.uid(), user, directory)))
}

#[cfg(unix)]
fn is_trusted_owner(owner: u32, user: u32, of_directory: Option<u32>) -> bool {
    owner == user || Some(owner) == of_directory
}

/// Trusts every file, on systems where files have no owners.
#[cfg(not(unix))]
pub fn is_trusted(_file: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_is_not_trusted() {
        assert!(is_trusted_owner(1000, 1000, Some(0)));
        assert!(is_trusted_owner(1000, 0, Some(1000)));
        assert!(!is_trusted_owner(1001, 1000, Some(0)));
        assert!(!is_trusted_owner(1001, 1000, Some(1000)));
        assert!(!is_trusted_owner(1001, 0, None));
    }

    #[test]
    fn an_own_file_is_trusted_and_a_missing_file_is_not() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("file", "");
        assert!(is_trusted(&scratch.path().join("file")));
        assert!(!is_trusted(&scratch.path().join("nowhere")));
    }
}
