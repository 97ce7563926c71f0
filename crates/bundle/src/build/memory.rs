//! What a build remembers for the next one: what it made of each file, and how the file looked.
//!
//! **Invariant:** a build that remembers makes what one does that remembers nothing. A file that looks as it did is taken to be
//! as it was, by Git's rule: not if it was written shortly before it was read, because it can be written again within the same
//! moment. Every other file is read; if its bytes are the same, what was made of it is used again.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::datafiles::Read;
use super::encode::Mark;
use super::{Ground, Patches};
use crate::digest::Sha256;
use crate::model::{Bundle, Resource};
use crate::repo::{Bytes, File, Folders, Sight};

/// The number of files from which on caching and more threads pay off: fewer files are read as fast as what is cached of them.
pub const MIN_CACHED_FILES: usize = 2_000;

/// What is remembered of one data repo.
#[derive(Debug)]
pub struct Memory {
    pub(super) clock: fn() -> SystemTime,
    /// What everything else depends on: the layout of the repo, its schemas and its types.
    pub(super) ground: Option<Sha256>,
    pub(super) known: Recollection,
    /// What is on disk: the ground, and how many files.
    pub(super) saved: Option<(Sha256, usize)>,
    /// How many files the last build had to look into.
    pub(super) read: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self::by(SystemTime::now)
    }
}

/// What the last build made.
#[derive(Debug, Default)]
pub(super) struct Recollection {
    /// Of datafiles, by path.
    pub datafiles: Known<Read>,
    /// Of resources, by path.
    pub resources: Known<Resource>,
    /// Of the folders of datafiles, and of those of resources.
    pub folders: [Folders; 2],
    /// Of all of them.
    pub last: Option<Bundle>,
    /// What else it is made of, if nothing was found and no file is a link.
    pub whole: Option<Whole>,
}

/// What a bundle is made of besides the files of the data repo, one by one.
#[derive(Debug)]
pub(super) struct Whole {
    pub ground: Ground,
    pub patches: Patches,
    /// Where its name can be made from, if nothing before changes.
    pub marks: Vec<Mark>,
}

impl Recollection {
    /// How many datafiles and resources there are.
    pub fn len(&self) -> (usize, usize) {
        (self.datafiles.len(), self.resources.len())
    }
}

/// What was made of files.
#[derive(Debug)]
pub(super) struct Known<T> {
    /// By path, ascending.
    files: Vec<(Arc<str>, Kept<T>)>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { files: Vec::new() }
    }
}

impl<T> Known<T> {
    /// Of these files. They must be ascending by path, each once.
    pub fn new(files: Vec<(Arc<str>, Kept<T>)>) -> Self {
        debug_assert!(files.is_sorted_by(|a, b| a.0 < b.0), "files are ascending");
        Self { files }
    }

    /// All of them, by path.
    pub fn files(&self) -> &[(Arc<str>, Kept<T>)] {
        &self.files
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Where the file at `path` is, or would be.
    pub fn place(&self, path: &str) -> Result<usize, usize> {
        self.files.binary_search_by(|(known, _)| (**known).cmp(path))
    }

    /// Where the file at `path` is; otherwise, whether it is a folder of files.
    pub fn find(&self, path: &str) -> Result<usize, bool> {
        self.place(path).map_err(|next| {
            let folder = format!("{path}/");
            // Behind it, and behind files whose names go on with something less than a slash.
            let within = self.files[next..].partition_point(|(other, _)| **other < *folder);
            self.files.get(next + within).is_some_and(|(other, _)| other.starts_with(&folder))
        })
    }

    /// The file at `path`, which is probably about there.
    pub fn about(&self, place: usize, path: &str) -> Option<&(Arc<str>, Kept<T>)> {
        let near =
            [place, place.wrapping_sub(1), place + 1].into_iter().filter_map(|place| self.files.get(place));
        near.into_iter()
            .find(|(known, _)| **known == *path)
            .or_else(|| Some(&self.files[self.place(path).ok()?]))
    }

    /// Remembers something else of the file at a place.
    pub fn set(&mut self, place: usize, kept: Kept<T>) {
        self.files[place].1 = kept;
    }
}

/// What was made of a file.
#[derive(Debug)]
pub(super) struct Kept<T> {
    /// How the file looked, if that tells it from every other state of it.
    pub sight: Option<Sight>,
    /// The digest of its bytes.
    pub sum: Sha256,
    pub what: Arc<T>,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self { sight: self.sight, sum: self.sum, what: Arc::clone(&self.what) }
    }
}

impl Memory {
    /// Nothing yet. Files that changed shortly before the clock's time are not taken to be as they look.
    pub fn by(clock: fn() -> SystemTime) -> Self {
        Self { clock, ground: None, known: Recollection::default(), saved: None, read: 0 }
    }

    /// Whether the next process would do much again that this one did: one of fifty files, and not just a few.
    pub fn is_worth_saving(&self) -> bool {
        let (datafiles, resources) = self.known.len();
        let files = datafiles + resources;
        let stale = match self.saved {
            Some((ground, saved)) if self.ground == Some(ground) => {
                self.read + saved.abs_diff(files) > files / 50
            }
            _ => true,
        };
        files >= MIN_CACHED_FILES && stale
    }

    pub(super) fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// All that it remembers, if that stands on this ground. Nothing is remembered until it is put back.
    pub(super) fn take(&mut self, ground: Sha256) -> Recollection {
        let known = std::mem::take(&mut self.known);
        if self.ground.replace(ground) == Some(ground) { known } else { Recollection::default() }
    }

    /// Remembers what was made now, on the ground of the last time it was asked.
    pub(super) fn put(&mut self, known: Recollection, news: News) {
        (self.known, self.read) = (known, news.read);
    }
}

/// How much of what a build needed was not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// Files that are new or have other bytes.
    pub changed: usize,
    /// Files that had to be read.
    pub read: usize,
}

impl News {
    /// Counts a file: whether it is as it was, and how it looks and looked.
    pub fn count(&mut self, same: bool, looks: Option<Sight>, looked: Option<Sight>) {
        self.changed += usize::from(!same);
        self.read += usize::from(!same || looks != looked);
    }
}

/// What came of a file.
pub(super) enum Found<T> {
    /// What was made of it before.
    Kept(Kept<T>),
    /// Its bytes are new.
    New(Vec<u8>, Sha256, Option<Sight>),
}

/// Why a file was not read.
pub(super) enum Unread {
    /// It has so many bytes, which is too many.
    TooLarge(u64),
    Failed(io::Error),
}

/// Looks at a file, and reads it if it may have changed. Without `begun`, the time before anything was read, nothing is remembered, and
/// it is read.
pub(super) fn look<T>(
    file: &File,
    known: Option<&Kept<T>>,
    begun: Option<SystemTime>,
) -> Result<Found<T>, Unread> {
    if let Some(kept) = known
        && kept.sight.is_some()
        && kept.sight == file.sight()
    {
        return Ok(Found::Kept(kept.clone()));
    }
    let (bytes, sight) = read(file)?;
    let sum = Sha256::of(&bytes);
    // It was looked at before it was read: what is written later looks different.
    let sight = sight.filter(|sight| begun.is_some_and(|begun| sight.is_settled(begun)));
    match known.filter(|kept| kept.sum == sum) {
        Some(kept) => Ok(Found::Kept(Kept { sight, ..kept.clone() })),
        None => Ok(Found::New(bytes, sum, sight)),
    }
}

/// The bytes of a file, and how it looked.
pub(super) fn read(file: &File) -> Result<(Vec<u8>, Option<Sight>), Unread> {
    match file.look() {
        Ok((Bytes::Whole(bytes), sight)) => Ok((bytes.into_owned(), sight)),
        Ok((Bytes::TooLarge(size), _)) => Err(Unread::TooLarge(size)),
        Err(error) => Err(Unread::Failed(error)),
    }
}
