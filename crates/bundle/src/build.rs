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
mod convert;
mod datafiles;
mod disk_cache;
mod encode;
mod facts;
mod graphql;
mod incremental;
mod resources;
mod schemas;

use std::collections::BTreeSet;
use std::path::PathBuf;

use qontract_diagnostics::{Diagnostic, Severity, Span, code};
use qontract_yaml::{Document as YamlDocument, Limits, Node, ParsedYaml, Syntax, Value as Yaml};

use crate::digest::Sha256;
use crate::json;
use crate::model::{Bundle, CommitStamp, Pool};
use crate::repo::{self, Listing, MAX_FILE_BYTES, NameFilter, PreviousListing, Repo, RepoError, RepoFile};
use crate::store::AtomicFile;
use crate::types::Types;
use crate::value::Value;
use cache::{CacheState, ChangeStats, FileReadError, IncrementalBase};

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
    aids: BuildOptions<'_>,
) -> Result<BuildOutcome, RepoError> {
    let BuildOptions { cache: mut memory, changed_paths: told, output: draft } = aids;
    if let (Some(memory), Some(told), None) = (&mut memory, told, &draft)
        && let Some(built) = incremental::build(repo, &stamp, pool, memory, told)
    {
        return Ok(BuildOutcome { built: Some(built), partial: None, findings: Vec::new() });
    }
    let begun = memory.as_ref().map(|memory| memory.now());
    let layout = repo.layout();
    let mut findings = Vec::new();
    let ground = SchemaContext::read(repo, &mut findings)?;
    // The whole state is taken out here and put back at the end, so a build that fails in between leaves an
    // empty cache.
    let known = match &mut memory {
        Some(memory) => memory.take(ground.digest(repo)),
        None => CacheState::default(),
    };
    let [known_data, known_resources] = &known.folders;
    let before = |folders| begun.map(|begun| PreviousListing { dirs: folders, started_at: begun });
    let mut listing = repo.list_cached(&layout.data, NameFilter::Documents, before(known_data))?;
    let has_links = ground.has_links || listing.has_links;
    let data_folders = std::mem::take(&mut listing.dirs);
    let guide = ground.schemas.index();
    let context = datafiles::DatafileContext {
        cache: &known.datafiles,
        started_at: begun,
        schema_index: &guide,
        types: &ground.types,
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
    let resources = resources::read_all(listing, &known.resources, begun, &data.backrefs(), &mut findings);
    let mut news = ChangeStats::default();
    data.count_changes(&known.datafiles, &mut news);
    resources::count_changes(&resources, &known.resources, &mut news);
    let is_same = news.changed == 0 && (data.len(), resources.len()) == known.len();

    let Some(graphql) = ground.graphql.clone() else {
        return Ok(BuildOutcome { built: None, partial: None, findings });
    };
    let (datafiles, patches) = data.with_identifiers(&ground.schemas, &ground.types);
    let sights =
        resources.iter().map(|resource| (resource.file_stamp, resource.content_sha)).collect::<Vec<_>>();
    // The last bundle can have files that are not in the cache.
    let has_same_files =
        |last: &&Bundle| (last.datafiles.len(), last.resources.len()) == (datafiles.len(), resources.len());
    let last =
        known.last_bundle.as_ref().filter(|last| is_same && last.stamp == stamp).filter(has_same_files);
    let (built, marks) = if let Some(last) = last {
        (last.clone(), known.base.map(|whole| whole.checkpoints).unwrap_or_default())
    } else {
        let schemas = ground.schemas.patched(&patches);
        encode::encode(encode::BundleParts { datafiles, stamp, graphql, resources, schemas }, pool, draft)
    };
    if let Some(memory) = memory {
        let whole = (findings.is_empty() && !has_links).then_some(IncrementalBase {
            context: ground,
            patches,
            checkpoints: marks,
        });
        let (resources, last) = (resources::cache_entries(&built, sights), Some(built.clone()));
        memory.put(
            CacheState { datafiles: data.into_cache(), resources, folders, last_bundle: last, base: whole },
            news,
        );
    }
    if findings.iter().any(Diagnostic::is_error) {
        return Ok(BuildOutcome { built: None, partial: Some(built), findings });
    }
    Ok(BuildOutcome { built: Some(built), partial: None, findings })
}

/// Everything that the result of a datafile depends on besides the file itself.
#[derive(Debug)]
struct SchemaContext {
    /// Whether a schema or the GraphQL type file is a symbolic link.
    has_links: bool,
    graphql: Option<Value>,
    types: Types,
    schemas: schemas::Schemas,
}

impl SchemaContext {
    fn read(repo: &Repo, findings: &mut Vec<Diagnostic>) -> Result<Self, RepoError> {
        let layout = repo.layout();
        let graphql = match repo.file(&layout.graphql)? {
            Ok(file) => graphql::read(&file, findings),
            Err(finding) => {
                findings.push(*finding);
                None
            }
        };
        let types = graphql.as_ref().map(Types::read).unwrap_or_default();
        let listing = repo.list(&layout.schemas, NameFilter::Documents)?;
        let has_links = listing.has_links || repo.is_behind_link(&layout.graphql);
        let schemas = schemas::read(listing, findings);
        Ok(Self { has_links, graphql, types, schemas })
    }

    /// The cache key: cached results are valid only for an equal digest.
    fn digest(&self, repo: &Repo) -> Sha256 {
        let mut types = Vec::new();
        json::write_python(self.graphql.as_ref().unwrap_or(&Value::Null), &mut types);
        // The location of the repo is not part of the key: files are compared by stamp and content.
        let place = format!("{:?}", repo.layout());
        Sha256::of_parts([place.as_bytes(), b"\0", &types, b"\0", self.schemas.digests()])
    }
}

/// Converts a YAML node to a value. `None` if JSON cannot represent it.
pub fn value_of(node: Node<'_>) -> Option<Value> {
    let additions = convert::Additions::default();
    let mut findings = Vec::new();
    let mut converter = convert::Converter { additions: &additions, findings: &mut findings };
    let value = converter.value(node);
    findings.is_empty().then_some(value)
}

/// Reads and parses a YAML file. `None` if it is empty or has an error.
fn parse(file: &RepoFile, findings: &mut Vec<Diagnostic>) -> Option<(YamlDocument, Sha256)> {
    match cache::read_file(file) {
        Ok((bytes, _)) => Some((parse_bytes(file, &bytes, findings)?, Sha256::of(&bytes))),
        Err(unread) => {
            findings.push(read_error_finding(file, &unread));
            None
        }
    }
}

fn read_error_finding(file: &RepoFile, unread: &FileReadError) -> Diagnostic {
    match unread {
        FileReadError::TooLarge(size) => {
            let message = format!("the file has {size} bytes, more than the {MAX_FILE_BYTES} allowed");
            Diagnostic::new(code::YAML_SIZE, message).in_file(&file.name)
        }
        FileReadError::Failed(error) => repo::unreadable(&file.name, &error.to_string()),
    }
}

/// Parses the bytes of a YAML file. `None` if it is empty or has an error.
fn parse_bytes(file: &RepoFile, bytes: &[u8], findings: &mut Vec<Diagnostic>) -> Option<YamlDocument> {
    let parsed = parse_as_named(file, bytes);
    let empty = match &parsed.document {
        Some(document) => document.root().value() == Yaml::Null,
        None => !parsed.findings.iter().any(Diagnostic::is_error),
    };
    findings.extend(parsed.findings.into_iter().map(|finding| finding.in_file(&file.name)));
    if empty {
        let mut finding =
            Diagnostic::new(code::EMPTY_FILE, "the file is empty and is left out").in_file(&file.name);
        // The established bundler leaves empty files out, and bundles must be equal. Validation reports it as
        // an error.
        finding.severity = Severity::Warning;
        findings.push(finding);
        return None;
    }
    parsed.document
}

/// Parses YAML, or strict JSON if the file name ends in `.json`.
fn parse_as_named(file: &RepoFile, bytes: &[u8]) -> ParsedYaml {
    let limits = Limits::default();
    let syntax = Syntax::of(&file.path);
    if syntax == Syntax::Yaml {
        return qontract_yaml::parse(bytes, &limits);
    }
    let text = str::from_utf8(bytes).unwrap_or_default();
    let blank = text.trim().is_empty();
    if let Err(fault) = json::JsonParser::new(text).parse()
        && !blank
    {
        let finding = Diagnostic::new(code::YAML_SYNTAX, format!("the file is not JSON: {}", fault.message));
        let finding = finding.at(Span::new(fault.offset, fault.offset + 1));
        return ParsedYaml { document: None, findings: vec![finding] };
    }
    qontract_yaml::parse_as(syntax, bytes, &limits)
}

/// Reports a document whose top level is not a map.
fn not_a_map(file: &RepoFile, document: &YamlDocument) -> Diagnostic {
    let what = match document.root().value() {
        Yaml::List(_) => "a list",
        Yaml::Map(_) => "a map",
        _ => "a single value",
    };
    let start = document.root().span().start as usize;
    Diagnostic::new(code::NOT_A_MAP, format!("the top level is {what}, not a map"))
        .at(Span::new(start, start + 1))
        .in_file(&file.name)
}

/// Whether a file is a datafile or schema by its name. Reports a name that is almost one.
fn is_document(file: &RepoFile, findings: &mut Vec<Diagnostic>) -> bool {
    let Some(ending) = repo::document_ending(&file.path) else { return false };
    if ending == ending.to_ascii_lowercase() {
        return true;
    }
    let message = format!("files that end in `.{ending}` are left out");
    let finding = Diagnostic::new(code::NAME_IGNORED, message).in_file(&file.name);
    findings.push(finding.hint(format!("rename it to end in `.{}`", ending.to_ascii_lowercase())));
    false
}

/// The `properties` of schemas that get the field `__identifier`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SchemaPatches {
    /// Maps under `properties` that get the field.
    properties: BTreeSet<schemas::SchemaId>,
    /// Schemas that get a new `properties` map with the field.
    roots: BTreeSet<schemas::SchemaId>,
}

impl SchemaPatches {
    fn merge(&mut self, other: &SchemaPatches) {
        self.properties.extend(&other.properties);
        self.roots.extend(&other.roots);
    }
}
