//! Cache for incremental validation: files that were valid before are not checked again.
//!
//! Two facts are cached by the SHA-256 of a file's content: that the file conforms to its schema, and that
//! the links of the datafile are valid. Files with findings are not cached, and link results are cached only
//! if the links of all datafiles are valid.
//!
//! The first fact becomes invalid when schemas, GraphQL types, options or the set of unreadable files change.
//! The second fact also becomes invalid when a file is added or removed, or when its `$schema` or
//! `__identifier` changes. Links whose validity depends on the content of their targets (because of an inline
//! `$schemaRef`) are cached separately. They become invalid when the content of any such target changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use qontract_bundle::codec::{Decoder, Encoder};
use qontract_bundle::{Bundle, Datafile, Hasher, Sha256};
use rayon::prelude::*;

use crate::Options;
use crate::schema::Formats;

/// Number of datafiles per parallel task.
const CHUNK: usize = 1024;

/// The input of a validation.
#[derive(Debug)]
struct LastValidation {
    bundle: Bundle,
    options: Options,
}

/// The documents and resources that passed validation, by digest.
///
/// **Invariant:** validation with a cache has the same findings as validation without a cache. Cached results
/// are used only with the same dependencies (schemas, types, files) as when they were computed.
#[derive(Debug, Default)]
pub struct ValidationCache {
    /// The last validation in this process.
    last: Option<LastValidation>,
    /// A digest of the options, GraphQL types, schemas and unreadable files for which the cache is valid.
    dependencies: Option<Sha256>,
    /// Documents and resources that conform to their schemas.
    conforming: HashSet<Sha256, RandomState>,
    links: LinkCache,
}

/// Datafiles whose links are valid.
#[derive(Debug, Default)]
struct LinkCache {
    /// A digest of the possible link targets: the paths, schemas and identifiers of all datafiles, and the
    /// paths of all resources.
    dependencies: Option<Sha256>,
    /// Datafiles whose links stay valid while the digest does not change.
    stable: HashMap<Sha256, UniqueHashes, RandomState>,
    /// Datafiles whose links depend on the *content* of other files; invalid when any of those files changes.
    content_dependent: HashMap<Sha256, UniqueHashes, RandomState>,
    /// The paths of the files on whose content links depend.
    content_targets: HashSet<Box<str>, RandomState>,
    /// The digest of the files in `content_targets` when the cache was saved; set only in a cache that was
    /// read from bytes.
    content_digest: Option<Sha256>,
}

/// Hashes of the values in a datafile that must be unique across all data.
pub(crate) type UniqueHashes = Box<[u64]>;

/// The results of one validation that are to be cached.
#[derive(Default)]
pub(crate) struct ValidDigests {
    /// Documents and resources that conform to their schemas.
    pub conforming: Vec<Sha256>,
    /// Datafiles whose links are valid.
    pub linked: Vec<ValidFile>,
    /// Newly found paths of files on whose content links depend.
    pub content_targets: Vec<Box<str>>,
}

/// A datafile whose links are valid.
pub(crate) struct ValidFile {
    pub digest: Sha256,
    /// The check result; `None` if it came from the cache.
    pub linked: Option<LinkedFile>,
}

/// The check result of a datafile whose links are valid.
pub(crate) struct LinkedFile {
    pub unique: UniqueHashes,
    /// Whether the links stay valid while the set of files, their schemas and identifiers stay the same.
    pub is_stable: bool,
}

/// Sorts the entries of a cache, so that equal caches have equal bytes.
fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// The parts of a datafile on which links to it depend: its schema and its identifier.
fn identity(file: &Datafile) -> [Option<String>; 2] {
    file.document.value.strings(["$schema", "__identifier"])
}

impl LinkCache {
    fn invalidate_content_dependent(&mut self) {
        self.content_dependent.clear();
        self.content_targets.clear();
    }

    /// A digest of the content of all files on whose content links depend.
    fn digest_content_targets(&self, bundle: &Bundle) -> Sha256 {
        let mut hasher = Hasher::default();
        for path in sorted(&self.content_targets) {
            let digest = bundle.datafile(path).map(|document| document.digest);
            hasher.update(path.as_bytes());
            hasher.update(b"\0");
            hasher.update(digest.as_ref().map_or(&[], |digest| digest.as_bytes().as_slice()));
        }
        hasher.finish()
    }
}

impl ValidationCache {
    /// Drops all entries that are not valid for `bundle` and `options`.
    ///
    /// If only the content of datafiles changed since the last validation in this process, and no links
    /// depend on their content, all entries are kept. Otherwise, content-dependent entries are dropped,
    /// unless the cache was just read and their targets still have the saved digest. If anything besides
    /// content changed, the digests of the dependencies are compared.
    pub(crate) fn invalidate_for(&mut self, bundle: &Bundle, options: &Options) {
        match self.changed_files(bundle, options) {
            Some(changed) if !changed.iter().any(|path| self.links.content_targets.contains(*path)) => {}
            changed => {
                if self.links.content_digest.take() != Some(self.links.digest_content_targets(bundle)) {
                    self.links.invalidate_content_dependent();
                }
                if changed.is_none() {
                    self.invalidate_by_digest(bundle, options);
                }
            }
        }
        self.last = Some(LastValidation { bundle: bundle.clone(), options: options.clone() });
    }

    /// The paths of changed datafiles, if schemas, types, options, paths and identities are certainly those
    /// of the last validation.
    fn changed_files<'b>(&self, bundle: &'b Bundle, options: &Options) -> Option<Vec<&'b str>> {
        let LastValidation { bundle: last, options: before } = self.last.as_ref()?;
        let is_same = |(a, b): &(&Datafile, &Datafile)| Arc::ptr_eq(&a.document, &b.document);
        let is_comparable = (options.formats, &options.unread) == (before.formats, &before.unread)
            && bundle.has_paths_of(last)
            && Arc::ptr_eq(bundle.graphql(), last.graphql())
            && bundle.schemas().len() == last.schemas().len()
            && bundle.schemas().iter().zip(last.schemas()).all(|files| is_same(&files));
        let files = bundle.datafiles().iter().zip(last.datafiles());
        let changed = files
            .filter(|files| is_comparable && !is_same(files))
            .map(|(a, b)| (identity(a) == identity(b)).then_some(&*a.path));
        is_comparable.then(|| changed.collect()).flatten()
    }

    /// Compares digests of the dependencies and clears the entries whose dependencies changed.
    fn invalidate_by_digest(&mut self, bundle: &Bundle, options: &Options) {
        let formats: &[u8] = match options.formats {
            Formats::Ignored => b"ignored",
            Formats::Enforced => b"enforced",
        };
        let types = bundle.graphql().digest;
        let schemas = bundle.schemas().iter();
        let schemas = schemas.flat_map(|file| [file.path.as_bytes(), b"\0", file.document.digest.as_bytes()]);
        // References to unreadable files are not reported, but they do not count as valid.
        let unread = options.unread.iter().flat_map(|file| [file.as_bytes(), b"\0"]);
        let parts = [formats, b"\0", types.as_bytes()].into_iter().chain(schemas).chain([b"\0".as_slice()]);
        let digest = Sha256::of_parts(parts.chain(unread));
        if self.dependencies != Some(digest) {
            *self = Self { dependencies: Some(digest), ..Self::default() };
        }
        let files = bundle.datafiles().par_chunks(CHUNK).map(|files| {
            let mut sum = Hasher::default();
            for file in files {
                let [schema, identifier] = identity(file).map(Option::unwrap_or_default);
                for text in [&*file.path, &*schema, &*identifier] {
                    sum.update(text.as_bytes());
                    sum.update(b"\0");
                }
            }
            sum.finish()
        });
        let files: Vec<Sha256> = files.collect();
        let resources = bundle.resources().iter().flat_map(|file| [file.path.as_bytes(), b"\0"]);
        let files = files.iter().map(|sum| sum.as_bytes().as_slice());
        let digest = Sha256::of_parts(files.chain([b"\0".as_slice()]).chain(resources));
        if self.links.dependencies != Some(digest) {
            self.links = LinkCache { dependencies: Some(digest), ..LinkCache::default() };
        }
    }

    /// Whether the document or resource is cached as conforming to its schema.
    pub(crate) fn conforms(&self, digest: Sha256) -> bool {
        self.conforming.contains(&digest)
    }

    /// The hashes of unique values of a datafile whose links are cached as valid.
    pub(crate) fn unique_hashes(&self, digest: Sha256) -> Option<&UniqueHashes> {
        self.links.stable.get(&digest).or_else(|| self.links.content_dependent.get(&digest))
    }

    /// Replaces all entries with the results of a validation. This drops the entries of removed files.
    pub(crate) fn replace(&mut self, valid: ValidDigests) {
        // In most runs, nothing changed, and the entries are kept as they are.
        if valid.conforming.len() != self.conforming.len()
            || !valid.conforming.iter().all(|digest| self.conforming.contains(digest))
        {
            self.conforming = valid.conforming.into_iter().collect();
        }
        let LinkCache { stable, content_dependent, content_targets: targets, .. } = &mut self.links;
        targets.extend(valid.content_targets);
        let is_cached = valid.linked.iter().all(|file| file.linked.is_none());
        if is_cached && valid.linked.len() == stable.len() + content_dependent.len() {
            return;
        }
        let (mut old_stable, mut old_dependent) = (std::mem::take(stable), std::mem::take(content_dependent));
        for ValidFile { digest, linked } in valid.linked {
            let (unique, lasts) = match linked {
                Some(LinkedFile { unique, is_stable: lasts }) => (Some(unique), lasts),
                None => match old_stable.remove(&digest) {
                    Some(unique) => (Some(unique), true),
                    None => (old_dependent.remove(&digest), false),
                },
            };
            // If two files have the same digest, the entry was already moved for the first file.
            let entries = if lasts { &mut *stable } else { &mut *content_dependent };
            unique.and_then(|unique| entries.insert(digest, unique));
        }
    }

    /// Number of cached results.
    pub fn len(&self) -> usize {
        self.conforming.len() + self.links.stable.len()
    }

    /// Whether nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Digests of the dependencies: two caches with different dependencies are different caches.
    pub fn dependencies(&self) -> [Option<Sha256>; 2] {
        [self.dependencies, self.links.dependencies]
    }

    /// Serializes the cache. `by` names the program: another version may check differently.
    pub fn to_bytes(&self, by: &str) -> Vec<u8> {
        let mut packer = Encoder::default();
        for digest in [self.dependencies, self.links.dependencies] {
            packer.digest(digest.unwrap_or_else(|| Sha256::of(b"")));
        }
        packer.list(sorted(&self.conforming).into_iter(), |packer, digest| packer.digest(*digest));
        for linked in [&self.links.stable, &self.links.content_dependent] {
            packer.list(sorted(linked).into_iter(), |packer, (digest, unique)| {
                packer.digest(*digest);
                packer.list(unique.iter(), |packer, hash| packer.number(*hash));
            });
        }
        packer.list(sorted(&self.links.content_targets).into_iter(), |packer, path| packer.text(path));
        let content_digest = self.last.as_ref().map(|last| self.links.digest_content_targets(&last.bundle));
        packer.option(content_digest, Encoder::digest);
        packer.with_checksum(by)
    }

    /// Reads a cache that the same program wrote; `None` if it is damaged or from another program.
    pub fn from_bytes(bytes: &[u8], by: &str) -> Option<Self> {
        let mut decoder = Decoder::open(bytes, by)?;
        let (dependencies, link_dependencies) = (decoder.digest()?, decoder.digest()?);
        let conforming = decoder.list(Decoder::digest)?;
        let mut linked = || decoder.list(|decoder| Some((decoder.digest()?, decoder.list(Decoder::number)?)));
        let (stable, content_dependent) = (linked()?, linked()?);
        let content_targets = decoder.list(|decoder| decoder.text().map(Into::into))?;
        let content_digest = decoder.option(Decoder::digest)?;
        let links = LinkCache {
            dependencies: Some(link_dependencies),
            stable,
            content_dependent,
            content_targets,
            content_digest,
        };
        Some(Self { last: None, dependencies: Some(dependencies), conforming, links })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_read_back_only_if_it_is_complete() {
        let digest = |text: &str| Sha256::of(text.as_bytes());
        let links = LinkCache { dependencies: Some(digest("files")), ..LinkCache::default() };
        let mut cache =
            ValidationCache { dependencies: Some(digest("schemas")), links, ..ValidationCache::default() };
        let linked = |unique: &[u64], lasts| LinkedFile { unique: unique.into(), is_stable: lasts };
        let linked = vec![
            ValidFile { digest: digest("a"), linked: Some(linked(&[1, u64::MAX], true)) },
            ValidFile { digest: digest("c"), linked: Some(linked(&[], true)) },
            ValidFile { digest: digest("d"), linked: Some(linked(&[7], false)) },
        ];
        cache.replace(ValidDigests {
            conforming: vec![digest("a"), digest("b")],
            linked,
            content_targets: Vec::new(),
        });
        let bytes = cache.to_bytes("one");
        assert!(ValidationCache::from_bytes(&bytes, "another").is_none());
        let restored = ValidationCache::from_bytes(&bytes, "one").expect("whole");
        assert_eq!((restored.dependencies, &restored.conforming), (cache.dependencies, &cache.conforming));
        assert_eq!(
            (restored.links.dependencies, &restored.links.stable),
            (cache.links.dependencies, &cache.links.stable)
        );
        assert_eq!(restored.links.content_dependent, cache.links.content_dependent);
        for end in [0, 31, 32, 64, bytes.len() - 32, bytes.len() - 1] {
            assert!(ValidationCache::from_bytes(&bytes[..end], "one").is_none(), "{end}");
        }
        let mut changed = bytes;
        changed[40] ^= 1;
        assert!(ValidationCache::from_bytes(&changed, "one").is_none());
    }
}
