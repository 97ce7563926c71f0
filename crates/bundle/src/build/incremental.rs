//! Incremental build: updates a bundle when the set of changed files is known.
//!
//! Unchanged files are not read; their cached documents are reused, and the bundle is rehashed from the
//! checkpoint before the first change. **Invariant:** the result equals a full build.
//!
//! Returns `None`, and the caller falls back to a full build, when the changed files alone do not determine
//! the result:
//!
//! - a file or directory was added or removed, or is a link;
//! - a schema or the GraphQL type file changed;
//! - a changed file has findings, another `$schema`, or changes which schemas get the field `__identifier`;
//! - the cache has no usable state: there was no previous build, or it had findings, links or another commit
//!   stamp.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::Metadata;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use foldhash::fast::RandomState;

use super::cache::{self, BuildCache, CacheEntry, CacheLookup, CacheState, FileCache, IncrementalBase};
use super::datafiles::{self, DatafileContent, DatafileContext, Identity, ParsedDatafile};
use super::encode;
use super::resources;
use crate::model::{Bundle, CommitStamp, Document, Pool, Resource};
use crate::repo::{DiskPath, NameFilter, Repo, RepoFile, RootDir, has_hidden_part};

type Paths<'a> = HashSet<&'a str, RandomState>;

/// Builds the bundle, given that only `changed_paths` may have changed since the last build. On success, the
/// cache holds the new state; on `None`, it is unchanged.
pub fn build(
    repo: &Repo,
    stamp: &CommitStamp,
    pool: &Pool,
    cache: &mut BuildCache,
    changed_paths: &BTreeSet<PathBuf>,
) -> Option<Bundle> {
    let started_at = cache.now();
    let CacheState { datafiles, resources, last_bundle: last, base, .. } = &mut cache.state;
    let (base, last) = (base.as_mut()?, last.as_mut().filter(|last| last.stamp == *stamp)?);
    // Indexes into the cache are indexes into the bundle.
    if (datafiles.len(), resources.len()) != (last.datafiles.len(), last.resources.len()) {
        return None;
    }
    let incremental = IncrementalBuild { repo, datafiles, resources, base };
    let (data, raw) = incremental.locate(changed_paths)?;
    let schema_index = base.context.schemas.index();
    let context = DatafileContext {
        cache: datafiles,
        started_at: Some(started_at),
        schema_index: &schema_index,
        types: &base.context.types,
    };
    let read = |place: usize, file: DiskPath| {
        let (path, entry) = &datafiles.files()[place];
        let file = RepoFile::on_disk(repo.layout().datafile(path), path, file);
        let entry = datafiles::read_cached(&file, Some(entry), &context).ok()?;
        entry.value.findings.is_empty().then_some((place, entry))
    };
    let data = data.into_iter().map(|(place, file)| read(place, file)).collect::<Option<BTreeMap<_, _>>>()?;
    let documents = incremental.changed_documents(&data, pool)?;
    let raw = incremental.changed_resources(&data, &raw, started_at, pool)?;

    // Nothing below can fail, so the cache is updated completely or not at all.
    let mut built = last.clone();
    // Index of the first changed entry (datafiles, then resources): the text before it keeps its hash.
    let first = documents.first_key_value().map(|(place, _)| *place);
    let first_resource =
        raw.iter().find(|(_, (_, is_new))| *is_new).map(|(place, _)| datafiles.len() + place);
    let same = first.or(first_resource);
    for (place, document) in documents {
        built.datafiles[place].document = document;
    }
    for (place, (entry, _)) in raw {
        built.resources[place] = Arc::clone(&entry.value);
        resources.set(place, entry);
    }
    if let Some(same) = same {
        encode::rehash(&mut built, same, &mut base.checkpoints);
    }
    for (place, entry) in data {
        datafiles.set(place, entry);
    }
    *last = built.clone();
    Some(built)
}

/// Whether the file may have another name: on Unix a hard link, on other platforms a symbolic link. A change
/// through that name is not reported as a change to this file.
fn has_other_names(about: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(about) > 1;
    #[cfg(not(unix))]
    return about.is_symlink();
}

/// The cached state that an incremental build starts from.
struct IncrementalBuild<'a> {
    repo: &'a Repo,
    datafiles: &'a FileCache<ParsedDatafile>,
    resources: &'a FileCache<Resource>,
    base: &'a IncrementalBase,
}

/// Files that may have changed, by their index in the cache.
type ChangedEntries = BTreeMap<usize, DiskPath>;

impl<'a> IncrementalBuild<'a> {
    /// Maps the changed paths to datafiles and resources in the cache. `None` if other files may also have
    /// changed.
    fn locate(&self, changed_paths: &BTreeSet<PathBuf>) -> Option<(ChangedEntries, ChangedEntries)> {
        let (root, layout) = (std::path::absolute(self.repo.folder()?).ok()?, self.repo.layout());
        let opened = RootDir::open(&root.canonicalize().ok()?).ok()?;
        let (mut data, mut raw) = (ChangedEntries::new(), ChangedEntries::new());
        let parts = [&layout.data, &layout.resources, &layout.schemas, &layout.graphql];
        for file in changed_paths {
            let within = |part: &str| file.strip_prefix(root.join(part)).ok();
            // The path is a part of the layout, or a directory above one: everything in that part may have
            // changed.
            if parts.iter().any(|part| root.join(part).starts_with(file)) {
                return None;
            }
            let is_context = within(&layout.schemas).is_some() || within(&layout.graphql).is_some();
            if is_context || !file.starts_with(&root) {
                return None;
            }
            let (below, is_data) = match (within(&layout.data), within(&layout.resources)) {
                (None, None) => continue,
                (Some(_), Some(_)) => return None,
                (Some(below), None) => (below, true),
                (None, Some(below)) => (below, false),
            };
            let path = format!("/{}", below.to_str()?);
            if has_hidden_part(&path) {
                continue;
            }
            let (known, names, places) = if is_data {
                (self.datafiles.find(&path), NameFilter::Documents, &mut data)
            } else {
                (self.resources.find(&path), NameFilter::All, &mut raw)
            };
            match (file.symlink_metadata(), known) {
                (Ok(about), Ok(place)) if about.is_file() && !has_other_names(&about) => {
                    places.insert(place, DiskPath::new(&opened, file.strip_prefix(&root).ok()?));
                }
                // Temporary files of editors.
                (Ok(about), Err(_)) if about.is_file() && !names.matches(&path) => {}
                (Err(error), Err(false)) if error.kind() == io::ErrorKind::NotFound => {}
                _ => return None,
            }
        }
        Some((data, raw))
    }

    /// The contents of all datafiles: changed datafiles have their new content, and the content of the other
    /// datafiles comes from the cache.
    fn contents(
        &self,
        data: &'a BTreeMap<usize, CacheEntry<ParsedDatafile>>,
    ) -> impl Iterator<Item = (&'a str, &'a DatafileContent)> {
        let files = self.datafiles.files().iter().enumerate();
        files.filter_map(|(place, (path, known))| {
            Some((&**path, data.get(&place).unwrap_or(known).value.content.as_ref()?))
        })
    }

    /// The documents that differ from the cached bundle, by index.
    ///
    /// A document changes if its file changed, or if a changed file now lists it, or no longer does: only a
    /// listed datafile has an `__identifier`.
    fn changed_documents(
        &self,
        data: &'a BTreeMap<usize, CacheEntry<ParsedDatafile>>,
        pool: &Pool,
    ) -> Option<BTreeMap<usize, Arc<Document>>> {
        let IncrementalBase { context, patches, .. } = self.base;
        let mut changed: BTreeMap<usize, (&DatafileContent, &DatafileContent)> = BTreeMap::new();
        for (place, entry) in data {
            let known = &self.datafiles.files()[*place].1;
            if Arc::ptr_eq(&known.value, &entry.value) {
                continue;
            }
            let (was, is) = (known.value.content.as_ref()?, entry.value.content.as_ref()?);
            if was.schema != is.schema || was.facts.patches != is.facts.patches {
                return None;
            }
            changed.insert(*place, (was, is));
        }
        // Listed datafiles have an identifier, and whether a datafile is listed may have changed.
        let listed = |content: &'a DatafileContent| content.facts.listed.iter().map(|path| &**path);
        let (mut before, mut after) = (Paths::default(), Paths::default());
        for (was, is) in changed.values() {
            before.extend(listed(was));
            after.extend(listed(is));
        }
        let own = changed.keys().map(|place| &*self.datafiles.files()[*place].0);
        // The changed datafiles, and those that only the old or only the new version of a changed file lists.
        let candidates: BTreeSet<&str> = before.symmetric_difference(&after).copied().chain(own).collect();
        // Candidates that unchanged files list are listed before and after.
        let others = self.datafiles.files().iter().enumerate();
        let others = others.filter(|(place, _)| !changed.contains_key(place));
        let others = others.filter_map(|(_, (_, entry))| entry.value.content.as_ref());
        let listed: Paths<'_> = others.flat_map(listed).filter(|path| candidates.contains(path)).collect();

        let mut documents = BTreeMap::new();
        for path in candidates {
            let Ok(place) = self.datafiles.index_of(path) else { continue };
            let known = &self.datafiles.files()[place].1;
            let (was, is) = match changed.get(&place) {
                Some(change) => *change,
                None => known.value.content.as_ref().map(|content| (content, content))?,
            };
            let identity = |content: &'a DatafileContent, own: &Paths<'_>| {
                let is_listed = listed.contains(path) || own.contains(path);
                is_listed.then(|| content.identity(&context.schemas, &context.types)).flatten()
            };
            let (had, has) = (identity(was, &before), identity(is, &after));
            let properties = |one: Option<&Identity>| one.and_then(|identity| identity.properties);
            // A new identifier requires that its schema already has the field. If an identifier is lost, it
            // may have been the only reason for the field, and a full build would not add the field.
            let is_patched = properties(has).is_none_or(|place| patches.properties.contains(&place));
            if !is_patched || properties(had).is_some() && properties(had) != properties(has) {
                return None;
            }
            if changed.contains_key(&place) || had.is_some() != has.is_some() {
                documents
                    .insert(place, encode::encode_document(is.document_source(has), pool, &mut Vec::new()));
            }
        }
        Some(documents)
    }

    /// The resources that may differ from the cached bundle, by index, and whether they do. A resource
    /// changes with its file, and with its back-references when a changed datafile names it.
    fn changed_resources(
        &self,
        data: &'a BTreeMap<usize, CacheEntry<ParsedDatafile>>,
        raw: &ChangedEntries,
        started_at: SystemTime,
        pool: &Pool,
    ) -> Option<BTreeMap<usize, (CacheEntry<Resource>, bool)>> {
        let mut candidates: BTreeSet<&str> =
            raw.keys().map(|place| &*self.resources.files()[*place].0).collect();
        for (place, entry) in data {
            let named = |read: &'a ParsedDatafile| {
                read.content.as_ref().map(|content| &content.facts.backrefs[..]).unwrap_or_default()
            };
            let (was, is) = (named(&self.datafiles.files()[*place].1.value), named(&entry.value));
            // Changed back-references change every resource that is named before or after.
            if was != is {
                candidates.extend(was.iter().chain(is).map(|one| one.resource.as_str()));
            }
        }
        if candidates.is_empty() {
            return Some(BTreeMap::new());
        }
        let backrefs = datafiles::backrefs(self.contents(data), |resource| candidates.contains(resource));
        let mut resources = BTreeMap::new();
        for path in candidates {
            let Ok(place) = self.resources.index_of(path) else { continue };
            let known = &self.resources.files()[place].1;
            let at = raw.get(&place);
            let name = self.repo.layout().resource(path);
            let file = match at {
                Some(at) => RepoFile::on_disk(name, path, at.clone()),
                None => RepoFile::without_content(name, path),
            };
            let found = match at {
                Some(_) => cache::lookup(&file, Some(known), Some(started_at)).ok()?,
                None => CacheLookup::Hit(known.clone()),
            };
            let backrefs = backrefs.get(path).map(Vec::as_slice).unwrap_or_default();
            let one = resources::make_resource(&file, found, Some(known), backrefs).ok()?;
            let (file_stamp, content_sha) = (one.file_stamp, one.content_sha);
            let value = encode::encode_resource(one.source, pool, &mut Vec::new());
            let is_new = !Arc::ptr_eq(&value, &known.value);
            resources.insert(place, (CacheEntry { file_stamp, content_sha, value }, is_new));
        }
        Some(resources)
    }
}
