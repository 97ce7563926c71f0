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

mod archive;
mod convert;
mod datafiles;
mod encode;
mod facts;
mod few;
mod graphql;
mod memory;
mod resources;
mod schemas;

use std::collections::BTreeSet;
use std::path::PathBuf;

use qontract_diagnostics::{Diagnostic, Severity, Span, code};
use qontract_yaml::{Document as YamlDocument, Limits, Node, Parsed, Syntax, Value as Yaml};

use crate::digest::Sha256;
use crate::json;
use crate::model::{Bundle, Pool, Stamp};
use crate::repo::{self, Before, File, Listing, MOST_BYTES, Names, Repo, RepoError};
use crate::store::Draft;
use crate::types::Types;
use crate::value::Value;
use memory::{News, Recollection, Unread, Whole};

pub use memory::{MIN_CACHED_FILES, Memory};

/// The result of building a data repo.
#[derive(Debug)]
pub struct Outcome {
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
pub fn build(repo: &Repo, stamp: Stamp, pool: &Pool) -> Result<Outcome, RepoError> {
    build_with(repo, stamp, pool, Aids::default())
}

/// Optional inputs of a build. They make it faster; the bundle is the same without them.
#[derive(Debug, Default)]
pub struct Aids<'a> {
    /// The build cache: read by this build, and replaced by its results.
    pub memory: Option<&'a mut Memory>,
    /// The only paths that may have changed since the cached build, if the caller knows them. Paths outside
    /// of the data repo are allowed.
    pub told: Option<&'a BTreeSet<PathBuf>>,
    /// A file to which the bundle is written while it is encoded.
    pub draft: Option<&'a mut Draft>,
}

/// Builds the bundle of a data repo with a cache, an incremental build or a streamed output.
pub fn build_with(repo: &Repo, stamp: Stamp, pool: &Pool, aids: Aids<'_>) -> Result<Outcome, RepoError> {
    let Aids { mut memory, told, draft } = aids;
    if let (Some(memory), Some(told), None) = (&mut memory, told, &draft)
        && let Some(built) = few::build(repo, &stamp, pool, memory, told)
    {
        return Ok(Outcome { built: Some(built), partial: None, findings: Vec::new() });
    }
    let begun = memory.as_ref().map(|memory| memory.now());
    let layout = repo.layout();
    let mut findings = Vec::new();
    let ground = Ground::read(repo, &mut findings)?;
    // The whole state is taken out here and put back at the end, so a build that fails in between leaves an
    // empty cache.
    let known = match &mut memory {
        Some(memory) => memory.take(ground.sum(repo)),
        None => Recollection::default(),
    };
    let [known_data, known_resources] = &known.folders;
    let before = |folders| begun.map(|begun| Before { folders, begun });
    let mut listing = repo.list_again(&layout.data, Names::Documents, before(known_data))?;
    let has_links = ground.has_links || listing.has_links;
    let data_folders = std::mem::take(&mut listing.folders);
    let guide = ground.schemas.guide();
    let context = datafiles::Ways { known: &known.datafiles, begun, guide: &guide, types: &ground.types };
    let data = datafiles::read(listing, &context, &mut findings);
    // Not earlier: the listing of a Git revision holds the content of its files in memory.
    let mut listing = match repo.list_again(&layout.resources, Names::All, before(known_resources)) {
        // Resources are the only optional part of a data repo.
        Err(RepoError::Missing { .. }) => Listing::default(),
        other => other?,
    };
    let has_links = has_links || listing.has_links;
    let folders = [data_folders, std::mem::take(&mut listing.folders)];
    let resources = resources::read(listing, &known.resources, begun, &data.backrefs(), &mut findings);
    let mut news = News::default();
    data.news(&known.datafiles, &mut news);
    resources::news(&resources, &known.resources, &mut news);
    let is_same = news.changed == 0 && (data.len(), resources.len()) == known.len();

    let Some(graphql) = ground.graphql.clone() else {
        return Ok(Outcome { built: None, partial: None, findings });
    };
    let (datafiles, patches) = data.identified(&ground.schemas, &ground.types);
    let sights = resources.iter().map(|resource| (resource.sight, resource.sum)).collect::<Vec<_>>();
    // The last bundle can have files that are not in the cache.
    let has_same_files =
        |last: &&Bundle| (last.datafiles.len(), last.resources.len()) == (datafiles.len(), resources.len());
    let last = known.last.as_ref().filter(|last| is_same && last.stamp == stamp).filter(has_same_files);
    let (built, marks) = if let Some(last) = last {
        (last.clone(), known.whole.map(|whole| whole.marks).unwrap_or_default())
    } else {
        let schemas = ground.schemas.patched(&patches);
        encode::encode(encode::Parts { datafiles, stamp, graphql, resources, schemas }, pool, draft)
    };
    if let Some(memory) = memory {
        let whole = (findings.is_empty() && !has_links).then_some(Whole { ground, patches, marks });
        let (resources, last) = (resources::kept(&built, sights), Some(built.clone()));
        memory.put(Recollection { datafiles: data.kept(), resources, folders, last, whole }, news);
    }
    if findings.iter().any(Diagnostic::is_error) {
        return Ok(Outcome { built: None, partial: Some(built), findings });
    }
    Ok(Outcome { built: Some(built), partial: None, findings })
}

/// Everything that the result of a datafile depends on besides the file itself.
#[derive(Debug)]
struct Ground {
    /// Whether a schema or the GraphQL type file is a symbolic link.
    has_links: bool,
    graphql: Option<Value>,
    types: Types,
    schemas: schemas::Schemas,
}

impl Ground {
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
        let listing = repo.list(&layout.schemas, Names::Documents)?;
        let has_links = listing.has_links || repo.leads_elsewhere(&layout.graphql);
        let schemas = schemas::read(listing, findings);
        Ok(Self { has_links, graphql, types, schemas })
    }

    /// The cache key: cached results are valid only for an equal digest.
    fn sum(&self, repo: &Repo) -> Sha256 {
        let mut types = Vec::new();
        json::write_python(self.graphql.as_ref().unwrap_or(&Value::Null), &mut types);
        // The location of the repo is not part of the key: files are compared by stamp and content.
        let place = format!("{:?}", repo.layout());
        Sha256::of_parts([place.as_bytes(), b"\0", &types, b"\0", self.schemas.sums()])
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
fn parse(file: &File, findings: &mut Vec<Diagnostic>) -> Option<(YamlDocument, Sha256)> {
    match memory::read(file) {
        Ok((bytes, _)) => Some((parse_bytes(file, &bytes, findings)?, Sha256::of(&bytes))),
        Err(unread) => {
            findings.push(unread_file(file, &unread));
            None
        }
    }
}

fn unread_file(file: &File, unread: &Unread) -> Diagnostic {
    match unread {
        Unread::TooLarge(size) => {
            let message = format!("the file has {size} bytes, more than the {MOST_BYTES} allowed");
            Diagnostic::new(code::YAML_SIZE, message).in_file(&file.name)
        }
        Unread::Failed(error) => repo::unreadable(&file.name, &error.to_string()),
    }
}

/// Parses the bytes of a YAML file. `None` if it is empty or has an error.
fn parse_bytes(file: &File, bytes: &[u8], findings: &mut Vec<Diagnostic>) -> Option<YamlDocument> {
    let parsed = read(file, bytes);
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
fn read(file: &File, bytes: &[u8]) -> Parsed {
    let limits = Limits::default();
    let syntax = Syntax::of(&file.path);
    if syntax == Syntax::Yaml {
        return qontract_yaml::parse(bytes, &limits);
    }
    let text = str::from_utf8(bytes).unwrap_or_default();
    let blank = text.trim().is_empty();
    if let Err(fault) = json::Reader::new(text).whole()
        && !blank
    {
        let finding = Diagnostic::new(code::YAML_SYNTAX, format!("the file is not JSON: {}", fault.what));
        let finding = finding.at(Span::new(fault.offset, fault.offset + 1));
        return Parsed { document: None, findings: vec![finding] };
    }
    qontract_yaml::parse_as(syntax, bytes, &limits)
}

/// Reports a document whose top level is not a map.
fn not_a_map(file: &File, document: &YamlDocument) -> Diagnostic {
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
fn is_document(file: &File, findings: &mut Vec<Diagnostic>) -> bool {
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
pub(crate) struct Patches {
    /// Maps under `properties` that get the field.
    properties: BTreeSet<schemas::SchemaId>,
    /// Schemas that get a new `properties` map with the field.
    roots: BTreeSet<schemas::SchemaId>,
}

impl Patches {
    fn merge(&mut self, other: &Patches) {
        self.properties.extend(&other.properties);
        self.roots.extend(&other.roots);
    }
}
