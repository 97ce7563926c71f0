//! Reads the datafiles of the data repo, through the build cache.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use foldhash::fast::RandomState;
use qontract_diagnostics::Diagnostic;
use qontract_yaml::{Node, Value as Yaml};
use rayon::prelude::*;

use super::cache::{self, CacheEntry, CacheLookup, ChangeStats, FileCache};
use super::convert::Converter;
use super::encode::{DocumentInput, DocumentSource};
use super::facts::{self, DatafileFacts, ResourceRef};
use super::parse;
use super::schemas::{Schema, SchemaId, SchemaPatches, Schemas};
use crate::digest::Sha256;
use crate::model::{Backref, Document};
use crate::repo::{FileReadError, Listing, RepoFile};
use crate::types::Types;
use crate::value::{Map, Value};
use crate::walk::{SchemaIndex, Tree as _};

/// Context for reading datafiles.
#[derive(Clone, Copy)]
pub struct DatafileContext<'a> {
    /// The results of the last build.
    pub cache: &'a FileCache<ParsedDatafile>,
    /// When this build started, if its results are cached.
    pub started_at: Option<SystemTime>,
    pub schema_index: &'a SchemaIndex<'a, Schema<'a>>,
    pub types: &'a Types,
}

/// The result of parsing one datafile. It does not depend on other datafiles, so it can be cached per file.
#[derive(Debug)]
pub struct ParsedDatafile {
    pub(super) content: Option<DatafileContent>,
    pub(super) findings: Vec<Diagnostic>,
}

/// The content of a datafile that is not empty.
#[derive(Debug)]
pub(super) struct DatafileContent {
    /// The value. `None` if it was restored from disk; in that case, one of `documents` contains it.
    pub value: Option<Value>,
    pub schema: Option<String>,
    pub facts: DatafileFacts,
    /// The identifier that the datafile has in lists of other datafiles, computed on demand; `None` if the
    /// datafile cannot have one.
    pub identity: OnceLock<Option<Identity>>,
    pub documents: Documents,
}

/// The documents of a datafile in bundles, each computed on demand.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// The document without an identifier.
    pub plain: OnceLock<Arc<Document>>,
    /// The document with its identifier.
    pub identified: OnceLock<Arc<Document>>,
}

impl Documents {
    /// The cell of the document with or without its identifier.
    pub fn cell(&self, is_identified: bool) -> &OnceLock<Arc<Document>> {
        if is_identified { &self.identified } else { &self.plain }
    }
}

/// The identifier of a datafile.
#[derive(Debug)]
pub(super) struct Identity {
    pub identifier: Box<str>,
    /// The `properties` of the datafile's schema.
    pub properties: Option<SchemaId>,
}

/// All datafiles of a build.
pub struct Datafiles {
    /// By path, ascending.
    files: Vec<(Arc<str>, CacheEntry<ParsedDatafile>)>,
}

/// Reads, parses, walks and converts all datafiles.
pub fn read_all(
    listing: Listing,
    context: &DatafileContext<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Datafiles {
    findings.extend(listing.findings);
    let files: Vec<RepoFile> =
        listing.files.into_iter().filter(|file| parse::is_document(file, findings)).collect();
    let all: Vec<_> =
        files.into_par_iter().enumerate().map(|(place, file)| read_one(place, &file, context)).collect();
    let mut data = Datafiles { files: Vec::with_capacity(all.len()) };
    for read in all {
        match read {
            Ok((path, entry)) => {
                findings.extend(entry.value.findings.iter().cloned());
                data.files.push((path, entry));
            }
            Err(finding) => findings.push(*finding),
        }
    }
    data
}

fn read_one(
    place: usize,
    file: &RepoFile,
    context: &DatafileContext<'_>,
) -> Result<(Arc<str>, CacheEntry<ParsedDatafile>), Box<Diagnostic>> {
    let known = context.cache.find_near(place, &file.path);
    let entry = read_cached(file, known.map(|(_, entry)| entry), context);
    let path = || known.map_or_else(|| Arc::from(file.path.as_str()), |(path, _)| Arc::clone(path));
    entry.map(|entry| (path(), entry)).map_err(|unread| Box::new(parse::read_error_finding(file, &unread)))
}

/// Reads a datafile, or takes it from the cache if it is unchanged.
pub(super) fn read_cached(
    file: &RepoFile,
    known: Option<&CacheEntry<ParsedDatafile>>,
    context: &DatafileContext<'_>,
) -> Result<CacheEntry<ParsedDatafile>, FileReadError> {
    Ok(match cache::lookup(file, known, context.started_at)? {
        CacheLookup::Hit(entry) => entry,
        CacheLookup::Miss { bytes, content_sha, file_stamp } => {
            let mut findings = Vec::new();
            let content = DatafileContent::parse(file, &bytes, content_sha, context, &mut findings);
            CacheEntry { file_stamp, content_sha, value: Arc::new(ParsedDatafile { content, findings }) }
        }
    })
}

impl DatafileContent {
    /// Whether the file itself has no `__identifier`. If it does, the value cannot be restored from its
    /// document.
    pub fn is_plain(&self) -> bool {
        self.value.as_ref().is_none_or(|value| value.get("__identifier").is_none())
    }

    fn parse(
        file: &RepoFile,
        bytes: &[u8],
        content_sha: Sha256,
        context: &DatafileContext<'_>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let document = parse::parse_bytes(file, bytes, findings)?;
        let Yaml::Map(map) = document.root().value() else {
            findings.push(parse::not_a_map(file, &document));
            return None;
        };
        let schema = match map.get("$schema").map(Node::value) {
            Some(Yaml::Str(schema)) if !schema.is_empty() => Some(schema),
            _ => None,
        };
        let (mut facts, mut additions) =
            facts::collect(document.root(), schema, context.schema_index, context.types);
        additions.add(document.root().id(), "$file_sha256sum", Value::str(&content_sha.to_string()));
        let mut found = Vec::new();
        let mut converter = Converter { additions: &additions, findings: &mut found };
        let value = converter.value(document.root());
        findings.extend(found.into_iter().map(|finding| finding.in_file(&file.name)));
        facts.shrink();
        let schema = schema.map(str::to_owned);
        let value = Some(value);
        Some(Self { value, schema, facts, identity: OnceLock::new(), documents: Documents::default() })
    }

    /// The value, without an identifier.
    fn value(&self) -> Value {
        if let Some(value) = &self.value {
            return value.clone();
        }
        let document = self.documents.plain.get().or_else(|| self.documents.identified.get());
        let map = document.and_then(|document| document.value.as_map());
        map.map_or(Value::Null, |map| Value::Map(map.without("__identifier")))
    }

    /// The identifier in lists. Computed once: it depends only on the file and the schema context.
    pub fn identity(&self, schemas: &Schemas, types: &Types) -> Option<&Identity> {
        let identify = || {
            let value = self.value();
            let identifier = file_identifier(&value, schemas, types)?.into();
            let schema = value.get("$schema").and_then(Value::as_str).and_then(|schema| schemas.get(schema));
            let properties = schema.and_then(|schema| schema.get("properties")).map(Schema::id);
            Some(Identity { identifier, properties })
        };
        self.identity.get_or_init(identify).as_ref()
    }

    /// The source of the datafile's document, with the identifier if the datafile has one.
    pub fn document_source(&self, identity: Option<&Identity>) -> DocumentSource<'_> {
        let made = self.documents.cell(identity.is_some());
        if let Some(document) = made.get() {
            return DocumentSource::Cached(document);
        }
        let value = match (identity, self.value()) {
            (Some(Identity { identifier, .. }), Value::Map(map)) => {
                Value::Map(map.with("__identifier", Value::str(identifier)))
            }
            (_, value) => value,
        };
        DocumentSource::New(value, Some(made))
    }
}

impl Datafiles {
    fn contents(&self) -> impl Iterator<Item = (&str, &DatafileContent)> {
        self.files.iter().filter_map(|(path, entry)| Some((&**path, entry.value.content.as_ref()?)))
    }

    /// Back-references by resource, sorted by datafile path.
    pub fn backrefs(&self) -> Backrefs<'_> {
        backrefs(self.contents(), |_| true)
    }

    /// All documents by path, where listed datafiles have an `__identifier`; and the schemas that need that
    /// field.
    pub fn with_identifiers(
        &self,
        schemas: &Schemas,
        types: &Types,
    ) -> (Vec<DocumentInput<'_>>, SchemaPatches) {
        let listed: HashSet<&str, RandomState> = self
            .contents()
            .flat_map(|(_, content)| content.facts.listed.iter().map(|path| &**path))
            .collect();
        let all: Vec<_> = self
            .files
            .par_iter()
            .filter_map(|(path, entry)| {
                let content = entry.value.content.as_ref()?;
                let identity = listed.contains(&**path).then(|| content.identity(schemas, types)).flatten();
                let properties = identity.and_then(|identity| identity.properties);
                Some((DocumentInput { path, content: content.document_source(identity) }, properties))
            })
            .collect();
        let mut patches = SchemaPatches::default();
        for (_, content) in self.contents() {
            patches.merge(&content.facts.patches);
        }
        let (named, properties): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        patches.properties.extend(properties.into_iter().flatten());
        (named, patches)
    }

    /// Number of datafiles.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Counts the datafiles without a valid cache entry.
    pub fn count_changes(&self, known: &FileCache<ParsedDatafile>, stats: &mut ChangeStats) {
        for (place, (path, entry)) in self.files.iter().enumerate() {
            let known = known.find_near(place, path).map(|(_, known)| known);
            let same = known.is_some_and(|known| Arc::ptr_eq(&known.value, &entry.value));
            stats.count(same, entry.file_stamp, known.and_then(|known| known.file_stamp));
        }
    }

    /// Converts the datafiles into the cache for the next build.
    pub fn into_cache(self) -> FileCache<ParsedDatafile> {
        FileCache::new(self.files)
    }
}

/// Back-references by resource path.
pub(super) type Backrefs<'a> = HashMap<&'a str, Vec<Backref>, RandomState>;

/// Collects the back-references to the wanted resources, in the order of the datafiles.
pub(super) fn backrefs<'a>(
    contents: impl Iterator<Item = (&'a str, &'a DatafileContent)>,
    is_wanted: impl Fn(&str) -> bool,
) -> Backrefs<'a> {
    let mut backrefs = Backrefs::default();
    for (path, content) in contents {
        let refs = content.facts.backrefs.iter().filter(|one| is_wanted(&one.resource));
        for ResourceRef { resource, jsonpath } in refs {
            backrefs.entry(resource.as_str()).or_default().push(Backref {
                path: path.to_owned(),
                datafile_schema: content.schema.clone().unwrap_or_default(),
                jsonpath: jsonpath.clone(),
            });
        }
    }
    backrefs
}

/// The identifier of a datafile, if its type has identifying fields and the file has at least one of them.
fn file_identifier(document: &Value, schemas: &Schemas, types: &Types) -> Option<String> {
    let schema = document.get("$schema")?.as_str()?;
    schemas.get(schema)?;
    let fields = types.by_schema(schema)?.context_unique_fields();
    let chosen: Vec<(&str, Value)> =
        fields.filter_map(|field| Some((&*field.name, document.get(&field.name)?.clone()))).collect();
    (!chosen.is_empty()).then(|| facts::identifier(Map::new(chosen)))
}
