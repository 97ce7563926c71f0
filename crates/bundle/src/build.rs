//! Data repo → bundle.
//!
//! Schemas and GraphQL types are read first. Then each datafile is processed independently and in parallel:
//! the file is read, hashed, parsed, walked (to collect the resources that it names and the identifiers of
//! its list items) and converted. Facts that span files (identifiers of files named in lists, back-references
//! of resources) are added at the end.
//!
//! **Caching.** With a build cache, the result of the last build is reused at three levels:
//!
//! - *Incremental build* (`incremental`): if the caller provides the set of changed files, only these files
//!   are read.
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
mod files;
mod graphql;
mod incremental;
mod parse;
mod resources;
mod schemas;
mod source_digest;

use std::collections::BTreeSet;
use std::path::PathBuf;

use qontract_diagnostics::Diagnostic;
use qontract_yaml::Node;

use crate::model::{Bundle, CommitStamp, Pool};
use crate::repo::{Repo, RepoError};
use crate::store::BundleFile;
use crate::value::Value;
use cache::{CacheState, IncrementalBase};
use context::SchemaContext;
use files::RepoFiles;

pub use cache::{BuildCache, MIN_CACHED_FILES};

/// The result of building a data repo.
#[derive(Debug)]
pub struct BuildOutcome {
    /// The bundle, if there was no error.
    pub built: Option<Bundle>,
    /// If there were errors: a bundle of everything that could be read. Use it only to find more mistakes.
    pub partial: Option<Bundle>,
    /// All findings, in no particular order.
    pub findings: Vec<Diagnostic>,
}

impl BuildOutcome {
    /// The outcome of encoding everything that could be read.
    fn new(bundle: Bundle, findings: Vec<Diagnostic>) -> Self {
        if findings.iter().any(Diagnostic::is_error) {
            return Self { built: None, partial: Some(bundle), findings };
        }
        Self { built: Some(bundle), partial: None, findings }
    }
}

/// Builds the bundle of a data repo.
///
/// **Invariant:** the bytes depend only on the files and the stamp, not on the order of directories or
/// threads.
pub fn build(repo: &Repo, stamp: CommitStamp, pool: &Pool) -> Result<BuildOutcome, RepoError> {
    build_with(repo, stamp, pool, BuildOptions::default())
}

/// Optional inputs of a build. They do not change the content of the bundle: the cache and the changed paths
/// make the build faster, and the output is written while the bundle is encoded.
#[derive(Debug, Default)]
pub struct BuildOptions<'a> {
    /// The build cache: read by this build, and replaced by its results.
    pub cache: Option<&'a mut BuildCache>,
    /// The only paths that may have changed since the cached build, if the caller can provide them. Paths
    /// outside of the data repo are allowed.
    pub changed_paths: Option<&'a BTreeSet<PathBuf>>,
    /// A file to which the bundle is written while it is encoded.
    pub output: Option<&'a mut BundleFile>,
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
        return Ok(BuildOutcome::new(built, Vec::new()));
    }
    build_fully(repo, stamp, pool, cache, output)
}

/// Builds the bundle from all files of the data repo. With a cache, unchanged files are not read or parsed.
fn build_fully(
    repo: &Repo,
    stamp: CommitStamp,
    pool: &Pool,
    mut cache: Option<&mut BuildCache>,
    output: Option<&mut BundleFile>,
) -> Result<BuildOutcome, RepoError> {
    let started_at = cache.as_ref().map(|cache| cache.now());
    let mut findings = Vec::new();
    let context = SchemaContext::read(repo, &mut findings)?;
    let context_digest = context.digest(repo);
    // The whole state is taken out here and put back at the end, so a build that fails leaves an empty cache.
    let mut known = match &mut cache {
        Some(cache) => cache.take(context_digest),
        None => CacheState::default(),
    };
    let known_checkpoints = known.base.take().map(|base| base.checkpoints).unwrap_or_default();
    let files = RepoFiles::read(repo, &context, &known, started_at, &mut findings)?;
    let stats = files.change_stats(&known);
    let is_same = stats.changed == 0 && files.len() == known.len();
    let Some(graphql) = context.graphql.clone() else {
        return Ok(BuildOutcome { built: None, partial: None, findings });
    };
    let RepoFiles { data, resources, folders, has_links } = files;
    let (datafiles, patches) = data.with_identifiers(&context.schemas, &context.types);
    let stamps: Vec<_> = resources.iter().map(|one| (one.file_stamp, one.content_sha)).collect();
    let last = known.last_bundle.as_ref().filter(|last| {
        // The last bundle can have files that are not in the cache.
        let has_same_files =
            (last.datafiles.len(), last.resources.len()) == (datafiles.len(), resources.len());
        is_same && last.stamp == stamp && has_same_files
    });
    let (built, checkpoints) = if let Some(last) = last {
        (last.clone(), known_checkpoints)
    } else {
        let schemas = context.schemas.patched(&patches);
        let parts = encode::BundleParts { datafiles, stamp, graphql, resources, schemas, context_digest };
        encode::encode(parts, pool, output)
    };
    if let Some(cache) = cache {
        let is_base = findings.is_empty() && !context.has_links && !has_links;
        let base = is_base.then_some(IncrementalBase { context, patches, checkpoints });
        let resources = resources::cache_entries(&built, stamps);
        let (datafiles, last_bundle) = (data.into_cache(), Some(built.clone()));
        cache.put(CacheState { datafiles, resources, folders, last_bundle, base }, stats);
    }
    Ok(BuildOutcome::new(built, findings))
}

/// Converts a YAML node to a value. `None` if JSON cannot represent it.
pub fn value_of(node: Node<'_>) -> Option<Value> {
    let additions = convert::Additions::default();
    let mut findings = Vec::new();
    let mut converter = convert::Converter { additions: &additions, findings: &mut findings };
    let value = converter.value(node);
    findings.is_empty().then_some(value)
}
