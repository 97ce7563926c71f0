//! Directory cache: the entries of directories, valid as long as the stamp of the directory is unchanged.
//!
//! Adding, removing or renaming an entry changes the stamp of its directory, so an unchanged directory need
//! not be read. The content of its files is not covered: each file has its own stamp.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::FileStamp;
use crate::codec::{Decoder, Encoder};

/// Cached directories, by their path in a part of the data repo.
#[derive(Debug, Default)]
pub struct DirCache {
    dirs: HashMap<Arc<str>, CachedDir, RandomState>,
}

/// A cached directory. It has only plain files and directories, no links.
#[derive(Clone, Debug)]
pub(super) struct CachedDir {
    /// The stamp of the directory, which is trustworthy.
    pub file_stamp: FileStamp,
    /// The names of the selected entries of the directory, each terminated by a zero byte; names of
    /// directories end in a slash.
    pub entries: Arc<str>,
}

impl DirCache {
    pub(super) fn new(all: Vec<(Arc<str>, CachedDir)>) -> Self {
        Self { dirs: all.into_iter().collect() }
    }

    /// The cached directory at `path`, if its stamp is equal.
    pub(super) fn find(&self, path: &str, stamp: FileStamp) -> Option<(Arc<str>, CachedDir)> {
        let (path, dir) = self.dirs.get_key_value(path)?;
        (dir.file_stamp == stamp).then(|| (Arc::clone(path), dir.clone()))
    }

    /// Encodes all directories.
    pub(crate) fn encode(&self) -> Encoder {
        let mut packer = Encoder::default();
        let mut all: Vec<(&Arc<str>, &CachedDir)> = self.dirs.iter().collect();
        // The directories are sorted, so that equal caches have equal bytes.
        all.sort_unstable_by_key(|(path, _)| *path);
        packer.list(all.into_iter(), |packer, (path, folder)| {
            packer.text(path);
            folder.file_stamp.encode(packer);
            packer.text(&folder.entries);
        });
        packer
    }

    /// Decodes the directories.
    pub(crate) fn decode(mut unpacker: Decoder<'_>) -> Option<Self> {
        let dirs = unpacker.list(|unpacker| {
            let path = Arc::from(unpacker.text()?);
            let file_stamp = FileStamp::decode(unpacker)?;
            Some((path, CachedDir { file_stamp, entries: Arc::from(unpacker.text()?) }))
        });
        dirs.map(|dirs| Self { dirs })
    }
}
