//! What was in folders, and how they looked then: a folder that looks the same has the same in it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::Sight;
use crate::packed::{Packer, Unpacker};

/// Folders that were listed, by their paths in a part of the data repo.
#[derive(Debug, Default)]
pub struct Folders {
    known: HashMap<Arc<str>, Folder, RandomState>,
}

/// A folder that has nothing but files and folders in it.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// How it looked, which tells it from every other state of it.
    pub sight: Sight,
    /// The names of what was asked for in it, each with a zero byte behind; those of folders end in a slash.
    pub entries: Arc<str>,
}

impl Folders {
    pub(super) fn new(all: Vec<(Arc<str>, Folder)>) -> Self {
        Self { known: all.into_iter().collect() }
    }

    /// What is in the folder at `path`, if it looks like this and that is known.
    pub(super) fn find(&self, path: &str, sight: Sight) -> Option<(Arc<str>, Folder)> {
        let (path, folder) = self.known.get_key_value(path)?;
        (folder.sight == sight).then(|| (Arc::clone(path), folder.clone()))
    }

    /// All of them, packed.
    pub(crate) fn packed(&self) -> Packer {
        let mut packer = Packer::default();
        let mut all: Vec<(&Arc<str>, &Folder)> = self.known.iter().collect();
        // In order: the same knowledge has the same bytes.
        all.sort_unstable_by_key(|(path, _)| *path);
        packer.list(all.into_iter(), |packer, (path, folder)| {
            packer.text(path);
            folder.sight.pack(packer);
            packer.text(&folder.entries);
        });
        packer
    }

    /// Those that were packed.
    pub(crate) fn unpack(mut unpacker: Unpacker<'_>) -> Option<Self> {
        let known = unpacker.list(|unpacker| {
            let path = Arc::from(unpacker.text()?);
            let sight = Sight::unpack(unpacker)?;
            Some((path, Folder { sight, entries: Arc::from(unpacker.text()?) }))
        });
        known.map(|known| Self { known })
    }
}
