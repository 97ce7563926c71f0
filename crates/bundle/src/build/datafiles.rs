//! Reads the datafiles of the data repo, through the build cache.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use foldhash::fast::RandomState;
use qontract_diagnostics::Diagnostic;
use qontract_yaml::{Node, Value as Yaml};
use rayon::prelude::*;

use super::Patches;
use super::convert::Converter;
use super::encode::{Content, Named};
use super::facts::{self, Facts};
use super::memory::{self, Found, Kept, Known, News, Unread};
use super::schemas::{Schema, SchemaId, Schemas};
use crate::digest::Sha256;
use crate::model::{Backref, Document};
use crate::repo::{File, Listing};
use crate::types::Types;
use crate::value::{Map, Value};
use crate::walk::{Guide, Tree as _};

/// Context for reading datafiles.
#[derive(Clone, Copy)]
pub struct Ways<'a> {
    /// The results of the last build.
    pub known: &'a Known<Read>,
    /// When this build started, if its results are cached.
    pub begun: Option<SystemTime>,
    pub guide: &'a Guide<'a, Schema<'a>>,
    pub types: &'a Types,
}

/// The result of parsing one datafile: independent of all other datafiles, so it can be cached per file.
#[derive(Debug)]
pub struct Read {
    pub(super) said: Option<Said>,
    pub(super) findings: Vec<Diagnostic>,
}

/// The content of a datafile that is not empty.
#[derive(Debug)]
pub(super) struct Said {
    /// Its value. `None` if it was restored from disk: then one of `documents` has it.
    pub value: Option<Value>,
    pub schema: Option<String>,
    pub facts: Facts,
    /// Its identifier when it is listed in another datafile, computed on demand; `None` if it cannot have
    /// one.
    pub identity: OnceLock<Option<Identity>>,
    /// Its documents in bundles, computed on demand: without and with its identifier.
    pub documents: [OnceLock<Arc<Document>>; 2],
}

/// The identifier of a datafile.
#[derive(Debug)]
pub(super) struct Identity {
    pub identifier: Box<str>,
    /// The `properties` of its schema.
    pub properties: Option<SchemaId>,
}

/// All datafiles of a build.
pub struct Data {
    /// By path, ascending.
    files: Vec<(Arc<str>, Kept<Read>)>,
}

/// Reads, parses, walks and converts all datafiles.
pub fn read(listing: Listing, context: &Ways<'_>, findings: &mut Vec<Diagnostic>) -> Data {
    findings.extend(listing.findings);
    let files: Vec<File> =
        listing.files.into_iter().filter(|file| super::is_document(file, findings)).collect();
    let all: Vec<_> =
        files.into_par_iter().enumerate().map(|(place, file)| one(place, &file, context)).collect();
    let mut data = Data { files: Vec::with_capacity(all.len()) };
    for read in all {
        match read {
            Ok((path, kept)) => {
                findings.extend(kept.what.findings.iter().cloned());
                data.files.push((path, kept));
            }
            Err(finding) => findings.push(*finding),
        }
    }
    data
}

fn one(place: usize, file: &File, context: &Ways<'_>) -> Result<(Arc<str>, Kept<Read>), Box<Diagnostic>> {
    let known = context.known.about(place, &file.path);
    let kept = look(file, known.map(|(_, kept)| kept), context);
    let path = || known.map_or_else(|| Arc::from(file.path.as_str()), |(path, _)| Arc::clone(path));
    kept.map(|kept| (path(), kept)).map_err(|unread| Box::new(super::unread_file(file, &unread)))
}

/// Reads a datafile, or takes it from the cache if it is unchanged.
pub(super) fn look(
    file: &File,
    known: Option<&Kept<Read>>,
    context: &Ways<'_>,
) -> Result<Kept<Read>, Unread> {
    Ok(match memory::look(file, known, context.begun)? {
        Found::Kept(kept) => kept,
        Found::New(bytes, sum, sight) => {
            Kept { sight, sum, what: Arc::new(Read::of(file, &bytes, sum, context)) }
        }
    })
}

impl Read {
    fn of(file: &File, bytes: &[u8], sum: Sha256, context: &Ways<'_>) -> Self {
        let mut findings = Vec::new();
        let said = Said::of(file, bytes, sum, context, &mut findings);
        Self { said, findings }
    }
}

impl Said {
    /// Whether the file itself has no `__identifier`. If it does, the value cannot be restored from its
    /// document.
    pub fn is_plain(&self) -> bool {
        self.value.as_ref().is_none_or(|value| value.get("__identifier").is_none())
    }

    fn of(
        file: &File,
        bytes: &[u8],
        sum: Sha256,
        context: &Ways<'_>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let document = super::parse_bytes(file, bytes, findings)?;
        let Yaml::Map(map) = document.root().value() else {
            findings.push(super::not_a_map(file, &document));
            return None;
        };
        let schema = match map.get("$schema").map(Node::value) {
            Some(Yaml::Str(schema)) if !schema.is_empty() => Some(schema),
            _ => None,
        };
        let (mut facts, mut additions) = facts::of(document.root(), schema, context.guide, context.types);
        additions.add(document.root().id(), "$file_sha256sum", Value::str(&sum.to_string()));
        let mut found = Vec::new();
        let mut converter = Converter { additions: &additions, findings: &mut found };
        let value = converter.value(document.root());
        findings.extend(found.into_iter().map(|finding| finding.in_file(&file.name)));
        facts.shrink();
        let schema = schema.map(str::to_owned);
        let value = Some(value);
        Some(Self { value, schema, facts, identity: OnceLock::new(), documents: Default::default() })
    }

    /// The value, without an identifier.
    fn value(&self) -> Value {
        if let Some(value) = &self.value {
            return value.clone();
        }
        let document = self.documents.iter().find_map(OnceLock::get);
        let map = document.and_then(|document| document.value.as_map());
        map.map_or(Value::Null, |map| Value::Map(map.without("__identifier")))
    }

    /// Its identifier in lists. Computed once: it depends only on the file and the schema context.
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

    /// The source of its document, with the identifier if it has one.
    pub fn content(&self, identity: Option<&Identity>) -> Content<'_> {
        let made = &self.documents[usize::from(identity.is_some())];
        if let Some(document) = made.get() {
            return Content::Made(document);
        }
        let value = match (identity, self.value()) {
            (Some(Identity { identifier, .. }), Value::Map(map)) => {
                Value::Map(map.with("__identifier", Value::str(identifier)))
            }
            (_, value) => value,
        };
        Content::New(value, Some(made))
    }
}

impl Data {
    fn said(&self) -> impl Iterator<Item = (&str, &Said)> {
        self.files.iter().filter_map(|(path, kept)| Some((&**path, kept.what.said.as_ref()?)))
    }

    /// Back-references by resource, sorted by datafile path.
    pub fn backrefs(&self) -> Backrefs<'_> {
        backrefs(self.said(), |_| true)
    }

    /// All documents by path, where listed datafiles have an `__identifier`; and the schemas that need that
    /// field.
    pub fn identified(&self, schemas: &Schemas, types: &Types) -> (Vec<Named<'_>>, Patches) {
        let listed: HashSet<&str, RandomState> =
            self.said().flat_map(|(_, said)| said.facts.listed.iter().map(|path| &**path)).collect();
        let all: Vec<_> = self
            .files
            .par_iter()
            .filter_map(|(path, kept)| {
                let said = kept.what.said.as_ref()?;
                let identity = listed.contains(&**path).then(|| said.identity(schemas, types)).flatten();
                let properties = identity.and_then(|identity| identity.properties);
                Some((Named { path, content: said.content(identity) }, properties))
            })
            .collect();
        let mut patches = Patches::default();
        for (_, said) in self.said() {
            patches.merge(&said.facts.patches);
        }
        let (named, properties): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        patches.properties.extend(properties.into_iter().flatten());
        (named, patches)
    }

    /// Number of datafiles.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Counts the datafiles that the cache could not answer.
    pub fn news(&self, known: &Known<Read>, news: &mut News) {
        for (place, (path, kept)) in self.files.iter().enumerate() {
            let known = known.about(place, path).map(|(_, known)| known);
            let same = known.is_some_and(|known| Arc::ptr_eq(&known.what, &kept.what));
            news.count(same, kept.sight, known.and_then(|known| known.sight));
        }
    }

    /// Converts into the cache for the next build.
    pub fn kept(self) -> Known<Read> {
        Known::new(self.files)
    }
}

/// Back-references by resource path.
pub(super) type Backrefs<'a> = HashMap<&'a str, Vec<Backref>, RandomState>;

/// Collects the back-references to the wanted resources, in the order of the datafiles.
pub(super) fn backrefs<'a>(
    said: impl Iterator<Item = (&'a str, &'a Said)>,
    is_wanted: impl Fn(&str) -> bool,
) -> Backrefs<'a> {
    let mut backrefs = Backrefs::default();
    for (path, said) in said {
        for (resource, jsonpath) in said.facts.backrefs.iter().filter(|(resource, _)| is_wanted(resource)) {
            backrefs.entry(resource).or_default().push(Backref {
                path: path.to_owned(),
                datafile_schema: said.schema.clone().unwrap_or_default(),
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
