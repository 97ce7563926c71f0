//! Directory cache: the entries of directories, valid as long as the stamp of the directory is unchanged.
//!
//! Adding, removing or renaming an entry changes the stamp of its directory, so an unchanged directory need
//! not be read. The content of its files is not covered: each file has its own stamp.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::Sight;
use crate::packed::{Packer, Unpacker};

/// Cached directories, by their path in a part of the data repo.
#[derive(Debug, Default)]
pub struct Folders {
    known: HashMap<Arc<str>, Folder, RandomState>,
}

/// A cached directory. It has only plain files and directories, no links.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// Its stamp, which is trustworthy.
    pub sight: Sight,
    /// The names of its selected entries, each terminated by a zero byte; directory names end in a slash.
    pub entries: Arc<str>,
}

impl Folders {
    pub(super) fn new(all: Vec<(Arc<str>, Folder)>) -> Self {
        Self { known: all.into_iter().collect() }
    }

    /// The cached directory at `path`, if its stamp is equal.
    pub(super) fn find(&self, path: &str, sight: Sight) -> Option<(Arc<str>, Folder)> {
        let (path, folder) = self.known.get_key_value(path)?;
        (folder.sight == sight).then(|| (Arc::clone(path), folder.clone()))
    }

    /// Encodes all directories.
    pub(crate) fn packed(&self) -> Packer {
        let mut packer = Packer::default();
        let mut all: Vec<(&Arc<str>, &Folder)> = self.known.iter().collect();
        // Sorted, so that equal caches have equal bytes.
        all.sort_unstable_by_key(|(path, _)| *path);
        packer.list(all.into_iter(), |packer, (path, folder)| {
            packer.text(path);
            folder.sight.pack(packer);
            packer.text(&folder.entries);
        });
        packer
    }

    /// Decodes the directories.
    pub(crate) fn unpack(mut unpacker: Unpacker<'_>) -> Option<Self> {
        let known = unpacker.list(|unpacker| {
            let path = Arc::from(unpacker.text()?);
            let sight = Sight::unpack(unpacker)?;
            Some((path, Folder { sight, entries: Arc::from(unpacker.text()?) }))
        });
        known.map(|known| Self { known })
    }
}
