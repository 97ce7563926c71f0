//! Data repo → bundle.
//!
//! Schemas and GraphQL types are read first. Then each datafile is processed independently and in parallel:
//! read, hash, parse, walk (which resources it names, how its list items are identified), convert. Facts that
//! span files (identifiers of files named in lists, back-references of resources) are added at the end.
//!
//! **Caching.** With a build cache, the result of the last build is reused at three levels:
//!
//! - *Incremental build* (`incremental`): if the caller knows which files changed, only those files are read.
//! - *Per-file cache* (`cache`): a file with an unchanged file stamp is not read; a file with unchanged
//!   bytes is not parsed.
//! - *Bundle*: if no file changed, the last bundle is returned without encoding it.
//!
//! The cache is dropped when the layout, a schema or the GraphQL types change, because every datafile depends
//! on them.

mod cache;
mod context;
mod convert;
mod datafiles;
mod disk_cache;
mod encode;
mod facts;
mod graphql;
mod incremental;
mod parse;
mod resources;
mod schemas;

use std::collections::BTreeSet;
use std::path::PathBuf;

use qontract_diagnostics::Diagnostic;
use qontract_yaml::Node;

use crate::model::{Bundle, CommitStamp, Pool};
use crate::repo::{Listing, NameFilter, PreviousListing, Repo, RepoError};
use crate::store::AtomicFile;
use crate::value::Value;
use cache::{CacheState, ChangeStats, IncrementalBase};
use context::SchemaContext;

pub use cache::{BuildCache, MIN_CACHED_FILES};

/// The result of building a data repo.
#[derive(Debug)]
pub struct BuildOutcome {
    /// The bundle, if there was no error.
    pub built: Option<Bundle>,
    /// With errors: everything that could be read in spite of them. Use it only to find more mistakes.
    pub partial: Option<Bundle>,
    /// All findings, in no particular order.
    pub findings: Vec<Diagnostic>,
}

/// Builds the bundle of a data repo.
///
/// **Invariant:** the bytes depend only on the files and the stamp, not on the order of directories or
/// threads.
pub fn build(repo: &Repo, stamp: CommitStamp, pool: &Pool) -> Result<BuildOutcome, RepoError> {
    build_with(repo, stamp, pool, BuildOptions::default())
}

/// Optional inputs of a build. They make it faster; the bundle is the same without them.
#[derive(Debug, Default)]
pub struct BuildOptions<'a> {
    /// The build cache: read by this build, and replaced by its results.
    pub cache: Option<&'a mut BuildCache>,
    /// The only paths that may have changed since the cached build, if the caller knows them. Paths outside
    /// of the data repo are allowed.
    pub changed_paths: Option<&'a BTreeSet<PathBuf>>,
    /// A file to which the bundle is written while it is encoded.
    pub output: Option<&'a mut AtomicFile>,
}

/// Builds the bundle of a data repo with a cache, an incremental build or a streamed output.
pub fn build_with(
    repo: &Repo,
    stamp: CommitStamp,
    pool: &Pool,
    options: BuildOptions<'_>,
) -> Result<BuildOutcome, RepoError> {
    let BuildOptions { mut cache, changed_paths, output } = options;
    if let (Some(cache), Some(changed_paths), None) = (&mut cache, changed_paths, &output)
        && let Some(built) = incremental::build(repo, &stamp, pool, cache, changed_paths)
    {
        return Ok(BuildOutcome { built: Some(built), partial: None, findings: Vec::new() });
    }
    let started_at = cache.as_ref().map(|cache| cache.now());
    let layout = repo.layout();
    let mut findings = Vec::new();
    let schema_context = SchemaContext::read(repo, &mut findings)?;
    // The whole state is taken out here and put back at the end, so a build that fails in between leaves an
    // empty cache.
    let known = match &mut cache {
        Some(cache) => cache.take(schema_context.digest(repo)),
        None => CacheState::default(),
    };
    let [known_data, known_resources] = &known.folders;
    let before = |folders| started_at.map(|started_at| PreviousListing { dirs: folders, started_at });
    let mut listing = repo.list_cached(&layout.data, NameFilter::Documents, before(known_data))?;
    let has_links = schema_context.has_links || listing.has_links;
    let data_folders = std::mem::take(&mut listing.dirs);
    let schema_index = schema_context.schemas.index();
    let context = datafiles::DatafileContext {
        cache: &known.datafiles,
        started_at,
        schema_index: &schema_index,
        types: &schema_context.types,
    };
    let data = datafiles::read_all(listing, &context, &mut findings);
    // Not earlier: the listing of a Git revision holds the content of its files in memory.
    let mut listing = match repo.list_cached(&layout.resources, NameFilter::All, before(known_resources)) {
        // Resources are the only optional part of a data repo.
        Err(RepoError::Missing { .. }) => Listing::default(),
        other => other?,
    };
    let has_links = has_links || listing.has_links;
    let folders = [data_folders, std::mem::take(&mut listing.dirs)];
    let resources =
        resources::read_all(listing, &known.resources, started_at, &data.backrefs(), &mut findings);
    let mut change_stats = ChangeStats::default();
    data.count_changes(&known.datafiles, &mut change_stats);
    resources::count_changes(&resources, &known.resources, &mut change_stats);
    let is_same = change_stats.changed == 0 && (data.len(), resources.len()) == known.len();

    let Some(graphql) = schema_context.graphql.clone() else {
        return Ok(BuildOutcome { built: None, partial: None, findings });
    };
    let (datafiles, patches) = data.with_identifiers(&schema_context.schemas, &schema_context.types);
    let stamps =
        resources.iter().map(|resource| (resource.file_stamp, resource.content_sha)).collect::<Vec<_>>();
    // The last bundle can have files that are not in the cache.
    let has_same_files =
        |last: &&Bundle| (last.datafiles.len(), last.resources.len()) == (datafiles.len(), resources.len());
    let last =
        known.last_bundle.as_ref().filter(|last| is_same && last.stamp == stamp).filter(has_same_files);
    let (built, checkpoints) = if let Some(last) = last {
        (last.clone(), known.base.map(|base| base.checkpoints).unwrap_or_default())
    } else {
        let schemas = schema_context.schemas.patched(&patches);
        encode::encode(encode::BundleParts { datafiles, stamp, graphql, resources, schemas }, pool, output)
    };
    if let Some(cache) = cache {
        let base = (findings.is_empty() && !has_links).then_some(IncrementalBase {
            context: schema_context,
            patches,
            checkpoints,
        });
        let (resources, last) = (resources::cache_entries(&built, stamps), Some(built.clone()));
        cache.put(
            CacheState { datafiles: data.into_cache(), resources, folders, last_bundle: last, base },
            change_stats,
        );
    }
    if findings.iter().any(Diagnostic::is_error) {
        return Ok(BuildOutcome { built: None, partial: Some(built), findings });
    }
    Ok(BuildOutcome { built: Some(built), partial: None, findings })
}

/// Converts a YAML node to a value. `None` if JSON cannot represent it.
pub fn value_of(node: Node<'_>) -> Option<Value> {
    let additions = convert::Additions::default();
    let mut findings = Vec::new();
    let mut converter = convert::Converter { additions: &additions, findings: &mut findings };
    let value = converter.value(node);
    findings.is_empty().then_some(value)
}
