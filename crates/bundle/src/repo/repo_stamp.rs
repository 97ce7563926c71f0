//! Detects changes below the directories of a data repo by names and file stamps, without reading files.
//!
//! This walk is separate from that of a listing (`directory`). A listing fails if a part is missing, ignores
//! files by their names, and has a maximum depth; a stamp covers every entry, even if a listing would not
//! read it.

use std::fs::{self, DirEntry};
use std::path::PathBuf;
use std::time::SystemTime;

use super::FileStamp;
use crate::digest::Sha256;

/// The names and file stamps of all files below some directories, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepoStamp {
    /// Digest of all names and stamps; equal as long as nothing changed.
    pub digest: Sha256,
    /// Number of files.
    pub files: usize,
}

impl RepoStamp {
    /// Walks the directories. **Invariant:** two equal stamps mean that nothing changed between the two
    /// walks. A file that was written shortly before `now` could be written again without a new stamp, so a
    /// stamp that includes such a file never equals another stamp.
    pub fn of(mut folders: Vec<PathBuf>, now: SystemTime) -> Self {
        let (mut text, mut files) = (String::new(), 0);
        while let Some(folder) = folders.pop() {
            let mut entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
            entries.sort_by_key(DirEntry::file_name);
            for entry in entries {
                let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
                if about.is_dir() {
                    folders.push(path);
                    continue;
                }
                // The stamp of a link is that of its target. A link to a directory is not followed: its
                // target is walked if it is in the data repo.
                let about = if about.is_symlink() { fs::metadata(&path).unwrap_or(about) } else { about };
                let signature = FileStamp::of(&about);
                text.push_str(&format!("{} {signature:?}\n", path.display()));
                if !signature.is_some_and(|signature| signature.is_trustworthy(now)) {
                    text.push_str(&format!("{now:?}\n"));
                }
                files += 1;
            }
        }
        Self { digest: Sha256::of(text.as_bytes()), files }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::RepoStamp;

    #[test]
    fn stamps_differ_when_a_file_is_added_removed_or_changed() {
        let folder = tempfile::tempdir().unwrap();
        // This time is later than all writes in this test, so that all stamps are trustworthy.
        let later = SystemTime::now() + Duration::from_mins(1);
        let stamp = || RepoStamp::of(vec![folder.path().to_owned()], later);
        let empty = stamp();
        assert_eq!((empty.files, stamp()), (0, empty));
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/x.yml"), "1").unwrap();
        let first = stamp();
        assert_eq!((first.files, stamp()), (1, first));
        assert_ne!(first.digest, empty.digest);
        fs::write(folder.path().join("a/x.yml"), "22").unwrap();
        let second = stamp();
        assert_ne!(second.digest, first.digest);
        fs::rename(folder.path().join("a/x.yml"), folder.path().join("a/y.yml")).unwrap();
        assert_ne!(stamp().digest, second.digest);
        fs::remove_file(folder.path().join("a/y.yml")).unwrap();
        assert_eq!(stamp(), empty);
    }

    #[test]
    fn the_stamp_of_a_file_that_was_just_written_equals_no_other() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.yml"), "1").unwrap();
        let stamp = |now| RepoStamp::of(vec![folder.path().to_owned()], now);
        let now = SystemTime::now();
        assert_ne!(stamp(now), stamp(now + Duration::from_millis(1)));
        let later = now + Duration::from_mins(1);
        assert_eq!(stamp(later), stamp(later + Duration::from_millis(1)));
    }
}
