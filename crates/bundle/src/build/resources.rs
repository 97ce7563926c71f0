//! Reads the resources of the data repo.

use std::sync::Arc;
use std::time::SystemTime;

use qontract_diagnostics::{Diagnostic, code};
use rayon::prelude::*;

use super::cache::{self, CacheEntry, CacheLookup, ChangeStats, FileCache};
use super::datafiles::Backrefs;
use crate::digest::Sha256;
use crate::model::{Backref, Bundle, Resource};
use crate::repo::{FileReadError, FileStamp, Listing, MAX_FILE_BYTES, RepoFile, unreadable};

/// A resource before it is encoded.
pub struct UnencodedResource<'a> {
    pub source: ResourceSource<'a>,
    /// The stamp of the file, and the SHA-256 of its bytes.
    pub file_stamp: Option<FileStamp>,
    pub content_sha: Sha256,
}

/// The source of a resource.
pub enum ResourceSource<'a> {
    /// The cached resource, unchanged.
    Cached(&'a Arc<Resource>),
    /// A new or changed resource, without a digest yet.
    New(Resource),
}

impl UnencodedResource<'_> {
    /// The path.
    pub fn path(&self) -> &str {
        match &self.source {
            ResourceSource::Cached(resource) => &resource.path,
            ResourceSource::New(resource) => &resource.path,
        }
    }
}

/// Reads all resources.
pub fn read_all<'a>(
    listing: Listing,
    known: &'a FileCache<Resource>,
    started_at: Option<SystemTime>,
    backrefs: &Backrefs<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<UnencodedResource<'a>> {
    findings.extend(listing.findings);
    let one = |(place, file): (usize, &RepoFile)| {
        let known = known.find_near(place, &file.path).map(|(_, known)| known);
        let found =
            cache::lookup(file, known, started_at).map_err(|unread| resource_read_error(file, &unread))?;
        make_resource(file, found, known, backrefs.get(file.path.as_str()).map_or(&[], Vec::as_slice))
    };
    let results: Vec<_> = listing.files.par_iter().enumerate().map(one).collect();
    let mut resources = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(resource) => resources.push(resource),
            Err(finding) => findings.push(*finding),
        }
    }
    resources
}

pub(super) fn make_resource<'a>(
    file: &RepoFile,
    found: CacheLookup<Resource>,
    known: Option<&'a CacheEntry<Resource>>,
    backrefs: &[Backref],
) -> Result<UnencodedResource<'a>, Box<Diagnostic>> {
    let empty = Sha256::of(b"");
    let (source, file_stamp, content_sha) = match (found, known) {
        (CacheLookup::Miss { bytes, content_sha, file_stamp }, _) => {
            let content = String::from_utf8(bytes).map_err(|error| {
                let message = format!("byte {} is not UTF-8", error.utf8_error().valid_up_to());
                Box::new(Diagnostic::new(code::RESOURCE_ENCODING, message).in_file(&file.name))
            })?;
            let schema = schema_of(&file.path, &content).map(Into::into);
            let (path, sha256sum) = (file.path.as_str().into(), content_sha.to_string().into());
            let backrefs = backrefs.to_vec();
            let resource =
                Resource { path, content: content.into(), sha256sum, schema, backrefs, digest: empty };
            (ResourceSource::New(resource), file_stamp, content_sha)
        }
        (CacheLookup::Hit(CacheEntry { file_stamp, content_sha, .. }), Some(known))
            if known.value.backrefs == backrefs =>
        {
            (ResourceSource::Cached(&known.value), file_stamp, content_sha)
        }
        (CacheLookup::Hit(CacheEntry { file_stamp, content_sha, value }), _) => {
            let Resource { path, content, sha256sum, schema, .. } = &*value;
            let resource = Resource {
                path: path.clone(),
                content: content.clone(),
                sha256sum: sha256sum.clone(),
                schema: schema.clone(),
                backrefs: backrefs.to_vec(),
                digest: empty,
            };
            (ResourceSource::New(resource), file_stamp, content_sha)
        }
    };
    Ok(UnencodedResource { source, file_stamp, content_sha })
}

fn resource_read_error(file: &RepoFile, unread: &FileReadError) -> Box<Diagnostic> {
    Box::new(match unread {
        FileReadError::TooLarge(size) => {
            let message = format!("the resource has {size} bytes, more than the {MAX_FILE_BYTES} allowed");
            Diagnostic::new(code::RESOURCE_SIZE, message).in_file(&file.name)
        }
        FileReadError::Failed(error) => unreadable(&file.name, &error.to_string()),
    })
}

/// Counts the resources that are not in the cache.
pub fn count_changes(
    resources: &[UnencodedResource<'_>],
    known: &FileCache<Resource>,
    stats: &mut ChangeStats,
) {
    for (place, resource) in resources.iter().enumerate() {
        let is_same = matches!(resource.source, ResourceSource::Cached(_));
        let before = known.find_near(place, resource.path()).and_then(|(_, known)| known.file_stamp);
        stats.count(is_same, resource.file_stamp, before);
    }
}

/// The cache entries of the resources of a bundle, with the stamps and hashes of their files.
pub fn cache_entries(bundle: &Bundle, stamps: Vec<(Option<FileStamp>, Sha256)>) -> FileCache<Resource> {
    let resources = bundle.resources.par_iter().zip(stamps);
    let entries = resources.map(|(resource, (file_stamp, content_sha))| {
        (Arc::from(&*resource.path), CacheEntry { file_stamp, content_sha, value: Arc::clone(resource) })
    });
    FileCache::new(entries.collect())
}

/// The schema that a YAML resource names: the first line `$schema: ….yml`, bare and not indented.
fn schema_of<'a>(path: &str, content: &'a str) -> Option<&'a str> {
    let (_, ending) = path.rsplit_once('.')?;
    if !matches!(ending, "yml" | "yaml") {
        return None;
    }
    content.split('\n').filter_map(|line| line.strip_prefix("$schema: ")).find(|schema| {
        let stem = schema.strip_suffix(".yml").or_else(|| schema.strip_suffix(".yaml"));
        stem.is_some_and(|stem| !stem.is_empty())
    })
}
