//! Generated files in memory, by path.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// The files of a data repo: relative path and content.
#[derive(Default)]
pub struct CorpusTree {
    files: BTreeMap<String, String>,
}

impl CorpusTree {
    /// Adds a file.
    ///
    /// # Panics
    ///
    /// If there already is a file at `path`.
    pub fn add(&mut self, path: String, content: String) {
        if let Some(other) = self.files.insert(path, content) {
            panic!("two files with one path, the first began with {:?}", other.lines().nth(1));
        }
    }

    /// The files below a directory, ordered by path.
    pub fn under<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .range(folder.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(folder))
            .map(|(path, content)| (path.as_str(), content.as_str()))
    }

    /// Whether a file exists at `path`.
    pub fn contains(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Total size of all files in bytes.
    pub fn bytes(&self) -> usize {
        self.files.values().map(String::len).sum()
    }

    /// A hash of all paths and contents (FNV-1a).
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (path, content) in &self.files {
            for byte in path.bytes().chain([0]).chain(content.bytes()).chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }

    /// Writes all files below `root`.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        let mut folder = None;
        for (path, content) in &self.files {
            let file = root.join(path);
            let parent = file.parent().map(Path::to_owned);
            if parent != folder {
                if let Some(parent) = &parent {
                    fs::create_dir_all(parent)?;
                }
                folder = parent;
            }
            fs::write(file, content)?;
        }
        Ok(())
    }
}
