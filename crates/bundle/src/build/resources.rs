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
    /// The stamp of its file, and the SHA-256 of its bytes.
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
    /// Its path.
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
    begun: Option<SystemTime>,
    backrefs: &Backrefs<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<UnencodedResource<'a>> {
    findings.extend(listing.findings);
    let one = |(place, file): (usize, &RepoFile)| {
        let known = known.find_near(place, &file.path).map(|(_, known)| known);
        let found = cache::lookup(file, known, begun).map_err(|unread| read_error_finding(file, &unread))?;
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
    let (text, sight, sum) = match (found, known) {
        (CacheLookup::Miss(bytes, sum, sight), _) => {
            let content = String::from_utf8(bytes).map_err(|error| {
                let message = format!("byte {} is not UTF-8", error.utf8_error().valid_up_to());
                Box::new(Diagnostic::new(code::RESOURCE_ENCODING, message).in_file(&file.name))
            })?;
            let schema = schema_of(&file.path, &content).map(Into::into);
            let (path, sha256sum) = (file.path.as_str().into(), sum.to_string().into());
            let backrefs = backrefs.to_vec();
            let resource =
                Resource { path, content: content.into(), sha256sum, schema, backrefs, digest: empty };
            (ResourceSource::New(resource), sight, sum)
        }
        (CacheLookup::Hit(CacheEntry { file_stamp: sight, content_sha: sum, .. }), Some(kept))
            if kept.value.backrefs == backrefs =>
        {
            (ResourceSource::Cached(&kept.value), sight, sum)
        }
        (CacheLookup::Hit(CacheEntry { file_stamp: sight, content_sha: sum, value: what }), _) => {
            let Resource { path, content, sha256sum, schema, .. } = &*what;
            let resource = Resource {
                path: path.clone(),
                content: content.clone(),
                sha256sum: sha256sum.clone(),
                schema: schema.clone(),
                backrefs: backrefs.to_vec(),
                digest: empty,
            };
            (ResourceSource::New(resource), sight, sum)
        }
    };
    Ok(UnencodedResource { source: text, file_stamp: sight, content_sha: sum })
}

fn read_error_finding(file: &RepoFile, unread: &FileReadError) -> Box<Diagnostic> {
    Box::new(match unread {
        FileReadError::TooLarge(size) => {
            let message = format!("the resource has {size} bytes, more than the {MAX_FILE_BYTES} allowed");
            Diagnostic::new(code::RESOURCE_SIZE, message).in_file(&file.name)
        }
        FileReadError::Failed(error) => unreadable(&file.name, &error.to_string()),
    })
}

/// Counts the resources that the cache could not answer.
pub fn count_changes(
    resources: &[UnencodedResource<'_>],
    known: &FileCache<Resource>,
    news: &mut ChangeStats,
) {
    for (place, resource) in resources.iter().enumerate() {
        let same = matches!(resource.source, ResourceSource::Cached(_));
        let looked = known.find_near(place, resource.path()).and_then(|(_, known)| known.file_stamp);
        news.count(same, resource.file_stamp, looked);
    }
}

/// The cache entries of the resources of a bundle, with the stamps and hashes of their files.
pub fn cache_entries(bundle: &Bundle, looks: Vec<(Option<FileStamp>, Sha256)>) -> FileCache<Resource> {
    let resources = bundle.resources.par_iter().zip(looks);
    let kept = resources.map(|(resource, (sight, sum))| {
        (
            Arc::from(&*resource.path),
            CacheEntry { file_stamp: sight, content_sha: sum, value: Arc::clone(resource) },
        )
    });
    FileCache::new(kept.collect())
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
