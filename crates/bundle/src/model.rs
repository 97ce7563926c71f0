//! The bundle in memory: immutable, with shared documents.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::digest::Sha256;
use crate::lazy::LazyValue;
use crate::value::Value;

/// The commit that a bundle was built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitStamp {
    /// The commit, as given.
    pub commit: String,
    /// The timestamp of the commit in seconds since 1970, as given.
    pub timestamp: String,
}

/// A value and the digest of its JSON text.
///
/// **Invariant:** equal digests mean equal values. Unequal digests do not mean unequal values: a bundle from
/// another program may be formatted differently.
#[derive(Debug, PartialEq)]
pub struct Document {
    /// The value.
    pub value: LazyValue,
    /// Digest of the JSON text.
    pub digest: Sha256,
}

impl Document {
    /// The schema that the document names.
    pub fn schema(&self) -> Option<&str> {
        self.value.get("$schema")?.as_str()
    }

    /// Whether the document names this schema. Documents that do not are not parsed.
    pub fn is_of(&self, schema: &str) -> bool {
        self.value.may_contain(schema) && self.schema() == Some(schema)
    }
}

/// A datafile of a bundle: its path and its document.
#[derive(Clone, Debug)]
pub struct Datafile {
    /// Path within `data/`, with a leading slash.
    pub path: Arc<str>,
    /// The content.
    pub document: Arc<Document>,
}

/// A reference to a resource from a datafile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backref {
    /// Path of the datafile.
    pub path: String,
    /// Schema of the datafile.
    pub datafile_schema: String,
    /// Position in the datafile, for example `openshiftResources.[6].path`.
    pub jsonpath: String,
}

/// A raw file that datafiles name.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// Path within `resources/`, with a leading slash.
    pub path: Box<str>,
    /// The content.
    pub content: Box<str>,
    /// Digest of the file.
    pub sha256sum: Box<str>,
    /// The schema that the file names, if it is a YAML file.
    pub schema: Option<Box<str>>,
    /// The references to the resource.
    pub backrefs: Vec<Backref>,
    /// Digest of the path of the resource and of its JSON text in the bundle.
    pub digest: Sha256,
}

impl Resource {
    /// The digest of a resource: of its path and its JSON text in the bundle.
    pub(crate) fn digest_of(path: &str, text: &[u8]) -> Sha256 {
        Sha256::of_parts([path.as_bytes(), b"\0", text])
    }
}

/// An immutable snapshot of a data repo.
///
/// **Invariant:** datafiles, resources and schemas are sorted by path.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub(crate) sha: Sha256,
    pub(crate) stamp: CommitStamp,
    pub(crate) datafiles: Vec<Datafile>,
    pub(crate) graphql: Arc<Document>,
    pub(crate) resources: Vec<Arc<Resource>>,
    pub(crate) schemas: Vec<Datafile>,
    pub(crate) path_index: PathIndex,
    /// The digest of the schemas and GraphQL types of the build; `None` if the bundle was loaded from a file.
    pub(crate) context_digest: Option<Sha256>,
}

/// Indexes of datafiles by path, computed on first use. An index is shared only between bundles with the same
/// paths of datafiles and resources.
pub(crate) type PathIndex = Arc<OnceLock<HashMap<Arc<str>, usize, RandomState>>>;

impl Bundle {
    /// The name of the bundle: the SHA-256 of its bytes.
    pub fn sha(&self) -> Sha256 {
        self.sha
    }

    /// The commit that the bundle was built from.
    pub fn stamp(&self) -> &CommitStamp {
        &self.stamp
    }

    /// All datafiles, by path.
    pub fn datafiles(&self) -> &[Datafile] {
        &self.datafiles
    }

    /// The datafile at `path`.
    pub fn datafile(&self, path: &str) -> Option<&Arc<Document>> {
        Some(&self.datafiles[self.index_of(path)?].document)
    }

    /// The index of the datafile at `path`.
    pub fn index_of(&self, path: &str) -> Option<usize> {
        let paths = || self.datafiles.iter().enumerate().map(|(place, file)| (Arc::clone(&file.path), place));
        self.path_index.get_or_init(|| paths().collect()).get(path).copied()
    }

    /// Whether both bundles certainly have the same paths of datafiles and resources, because one was built
    /// from the other or [shares paths with it](Self::sharing_paths_with). `false` does not mean that they
    /// differ.
    pub fn has_paths_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.path_index, &other.path_index)
    }

    /// Shares the path allocations, and if all paths are equal also the path index, with another bundle.
    #[must_use]
    pub fn sharing_paths_with(mut self, other: &Self) -> Self {
        share_paths(&mut self.schemas, &other.schemas);
        let has_its_datafiles = share_paths(&mut self.datafiles, &other.datafiles);
        let resources = self.resources.iter().map(|resource| &resource.path);
        if has_its_datafiles && resources.eq(other.resources.iter().map(|resource| &resource.path)) {
            self.path_index = Arc::clone(&other.path_index);
        }
        self
    }

    /// The definitions of the GraphQL types.
    pub fn graphql(&self) -> &Arc<Document> {
        &self.graphql
    }

    /// All resources, by path.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// The resource at `path`.
    pub fn resource(&self, path: &str) -> Option<&Arc<Resource>> {
        find(&self.resources, path, |resource| &resource.path)
    }

    /// All schemas, by path, as they are in the bundle.
    pub fn schemas(&self) -> &[Datafile] {
        &self.schemas
    }

    /// The schema at `path`.
    pub fn schema(&self, path: &str) -> Option<&Arc<Document>> {
        find(&self.schemas, path, |schema| &schema.path).map(|schema| &schema.document)
    }
}

/// Replaces equal paths with the allocations of `others`. Returns whether both lists have the same paths.
fn share_paths(files: &mut [Datafile], others: &[Datafile]) -> bool {
    let (mut shared, count) = (0, files.len());
    let mut others_left = others.iter().peekable();
    for file in files {
        while others_left.next_if(|other| other.path < file.path).is_some() {}
        if let Some(other) = others_left.next_if(|other| other.path == file.path) {
            file.path = Arc::clone(&other.path);
            shared += 1;
        }
    }
    shared == count && count == others.len()
}

fn find<'a, T>(sorted: &'a [T], path: &str, path_of: impl Fn(&T) -> &str) -> Option<&'a T> {
    let place = sorted.binary_search_by(|entry| path_of(entry).cmp(path)).ok()?;
    Some(&sorted[place])
}

/// Live values by digest.
type WeakTable<T> = HashMap<Sha256, Weak<T>, RandomState>;

/// Interns documents and resources by digest, so that bundles share equal documents and resources.
///
/// **Invariant:** the pool keeps nothing alive: it holds weak references only.
#[derive(Debug, Default)]
pub struct Pool {
    documents: Mutex<WeakTable<Document>>,
    resources: Mutex<WeakTable<Resource>>,
}

impl Pool {
    /// The document with this digest; calls `make` if no live bundle has it.
    pub fn document<E>(
        &self,
        digest: Sha256,
        make: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Arc<Document>, E> {
        self.lazy_document(digest, || make().map(LazyValue::from))
    }

    /// The document with this digest, with a lazy value; calls `make` if no live bundle has it.
    pub(crate) fn lazy_document<E>(
        &self,
        digest: Sha256,
        make: impl FnOnce() -> Result<LazyValue, E>,
    ) -> Result<Arc<Document>, E> {
        get_or_insert(&self.documents, digest, || Ok(Document { value: make()?, digest }))
    }

    /// The resource with this digest; calls `make` if no live bundle has it.
    pub fn resource<E>(
        &self,
        digest: Sha256,
        make: impl FnOnce() -> Result<Resource, E>,
    ) -> Result<Arc<Resource>, E> {
        get_or_insert(&self.resources, digest, make)
    }

    /// Removes the entries of values that are no longer alive.
    pub fn sweep(&self) {
        fn sweep<T>(table: &Mutex<WeakTable<T>>) {
            let mut table = table.lock();
            table.retain(|_, value| value.strong_count() > 0);
            let room = 2 * table.len();
            table.shrink_to(room);
        }
        sweep(&self.documents);
        sweep(&self.resources);
    }

    /// Number of live documents and resources.
    pub fn len(&self) -> usize {
        self.sweep();
        self.documents.lock().len() + self.resources.lock().len()
    }

    /// Whether the pool has no live documents and resources.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn get_or_insert<T, E>(
    table: &Mutex<WeakTable<T>>,
    digest: Sha256,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<Arc<T>, E> {
    if let Some(alive) = table.lock().get(&digest).and_then(Weak::upgrade) {
        return Ok(alive);
    }
    let made = Arc::new(make()?);
    let mut table = table.lock();
    // The lock was released while the value was made, so another thread may have inserted it.
    if let Some(alive) = table.get(&digest).and_then(Weak::upgrade) {
        return Ok(alive);
    }
    table.insert(digest, Arc::downgrade(&made));
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;

    fn bundle(paths: &[&str], resources: &[&str], pool: &Pool) -> Bundle {
        let each = |paths: &[&str], what: &str| {
            paths.iter().map(|path| format!("{path:?}:{what}")).collect::<Vec<_>>().join(",")
        };
        let text = format!(
            "{{\"data\":{{{}}},\"resources\":{{{}}},\"graphql\":[],\"schemas\":{{}},\"git_commit\":\"\",\"git_commit_timestamp\":\"\"}}",
            each(paths, "{\"$schema\":\"/a.yml\"}"),
            each(resources, "{\"content\":\"\",\"sha256sum\":\"\"}"),
        );
        load(text.as_bytes(), pool).expect("a bundle")
    }

    #[test]
    fn bundles_share_the_paths_that_both_have() {
        let pool = Pool::default();
        let first = bundle(&["/a.yml", "/c.yml"], &["/r"], &pool);
        let same = bundle(&["/a.yml", "/c.yml"], &["/r"], &pool).sharing_paths_with(&first);
        assert!(same.has_paths_of(&first));
        for resources in [&["/q", "/r"][..], &["/s"], &[]] {
            let other = bundle(&["/a.yml", "/c.yml"], resources, &pool).sharing_paths_with(&first);
            assert!(!other.has_paths_of(&first), "{resources:?}");
        }
        let more = bundle(&["/a.yml", "/b.yml", "/c.yml"], &["/r"], &pool).sharing_paths_with(&first);
        assert!(!more.has_paths_of(&first));
        let shared =
            |file: &Datafile| first.datafiles().iter().any(|other| Arc::ptr_eq(&other.path, &file.path));
        assert_eq!(more.datafiles().iter().map(shared).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(
            [more.index_of("/a.yml"), more.index_of("/b.yml"), more.index_of("/d.yml")],
            [Some(0), Some(1), None]
        );
    }
}
