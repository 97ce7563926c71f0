//! Bytes → bundle. Takes the bundles of other makers too.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use crate::digest::Sha256;
use crate::json::{Fault, Reader};
use crate::model::{Backref, Bundle, Datafile, Document, Pool, Resource, Stamp};
use crate::value::{Map, Value};

/// Why bytes are no bundle.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not UTF-8.
    #[error("the bundle is not UTF-8 text")]
    Encoding(#[source] std::str::Utf8Error),
    /// The text is not JSON.
    #[error("the bundle is not valid JSON")]
    Json(#[source] Fault),
    /// A document is not JSON.
    #[error("`{path}` in the bundle is not valid JSON")]
    Document {
        /// Which document.
        path: String,
        /// What is wrong in it, counted from its start.
        #[source]
        fault: Fault,
    },
    /// A part is missing, or not of the form it must have.
    #[error("`{part}` is missing in the bundle, or not {form}")]
    Form {
        /// Which part.
        part: String,
        /// What it must be.
        form: &'static str,
    },
}

/// How many documents one task reads.
const CHUNK: usize = 256;

/// Reads a bundle; what `pool` already has is shared, not read.
pub fn load(bytes: &[u8], pool: &Pool) -> Result<Bundle, LoadError> {
    // Hashing and reading need the same bytes and nothing of each other.
    let (sha, read) = rayon::join(|| Sha256::of(bytes), || load_named(bytes, Sha256::of(b""), pool));
    read.map(|bundle| Bundle { sha, ..bundle })
}

/// The same of bytes whose name is known.
pub fn load_named(bytes: &[u8], sha: Sha256, pool: &Pool) -> Result<Bundle, LoadError> {
    let text = str::from_utf8(bytes).map_err(LoadError::Encoding)?;
    let skimmed = skim(text).map_err(LoadError::Json)?;
    let part = |name: &'static str| skimmed.part(name, "there");
    let stamp =
        Stamp { commit: skimmed.text("git_commit")?, timestamp: skimmed.text("git_commit_timestamp")? };
    let graphql = document("graphql", part("graphql")?, pool, &mut Reader::new(""))?;
    Ok(Bundle {
        sha,
        stamp,
        datafiles: documents(there(skimmed.data.as_ref(), "data")?, Top::Map, pool)?,
        graphql,
        resources: resources(there(skimmed.resources.as_ref(), "resources")?, pool)?,
        schemas: documents(there(skimmed.schemas.as_ref(), "schemas")?, Top::Any, pool)?,
    })
}

/// Texts by path.
type Texts<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// The texts of a bundle's parts, found without reading them.
#[derive(Default)]
struct Skimmed<'a> {
    data: Option<Texts<'a>>,
    resources: Option<Texts<'a>>,
    schemas: Option<Texts<'a>>,
    rest: Texts<'a>,
}

fn skim(text: &str) -> Result<Skimmed<'_>, Fault> {
    let mut skimmed = Skimmed::default();
    let mut reader = Reader::new(text);
    reader.object(|reader, key| {
        let documents = match &*key {
            "data" => &mut skimmed.data,
            "resources" => &mut skimmed.resources,
            "schemas" => &mut skimmed.schemas,
            _ => {
                skimmed.rest.push((key, reader.skip()?));
                return Ok(());
            }
        };
        let documents = documents.insert(Texts::new());
        reader.object(|reader, path| {
            documents.push((path, reader.skip()?));
            Ok(())
        })
    })?;
    reader.end()?;
    for documents in [&mut skimmed.data, &mut skimmed.resources, &mut skimmed.schemas].into_iter().flatten() {
        sort(documents);
    }
    Ok(skimmed)
}

fn there<'t, 'a>(documents: Option<&'t Texts<'a>>, part: &str) -> Result<&'t Texts<'a>, LoadError> {
    documents.ok_or_else(|| LoadError::Form { part: part.to_owned(), form: "an object" })
}

/// By path; of equal paths the last one stays, as in every reader of JSON.
fn sort(documents: &mut Texts<'_>) {
    if !documents.is_sorted_by(|a, b| a.0 < b.0) {
        documents.reverse();
        documents.sort_by(|a, b| a.0.cmp(&b.0));
        documents.dedup_by(|later, kept| later.0 == kept.0);
    }
}

impl<'a> Skimmed<'a> {
    fn part(&self, name: &str, form: &'static str) -> Result<&'a str, LoadError> {
        let found = self.rest.iter().rev().find(|(key, _)| key == name).map(|(_, text)| *text);
        found.ok_or_else(|| LoadError::Form { part: name.to_owned(), form })
    }

    fn text(&self, name: &str) -> Result<String, LoadError> {
        let value = Reader::new(self.part(name, "a string")?).whole().map_err(LoadError::Json)?;
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| LoadError::Form { part: name.to_owned(), form: "a string" })
    }
}

fn document<'a>(
    path: &str,
    text: &'a str,
    pool: &Pool,
    reader: &mut Reader<'a>,
) -> Result<Arc<Document>, LoadError> {
    pool.document(Sha256::of(text.as_bytes()), || {
        reader.again(text).map_err(|fault| LoadError::Document { path: path.to_owned(), fault })
    })
}

/// What the top level of a document may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Top {
    /// A map.
    Map,
    /// Anything: a schema may be `true`, and one that is none is told by itself.
    Any,
}

fn documents(skimmed: &Texts<'_>, top: Top, pool: &Pool) -> Result<Vec<Datafile>, LoadError> {
    in_chunks(skimmed, |path, text, reader| {
        let document = document(path, text, pool, reader)?;
        if top == Top::Map && document.value.as_map().is_none() {
            return Err(LoadError::Form { part: path.to_owned(), form: "an object" });
        }
        Ok(Datafile { path: Arc::from(path), document })
    })
}

fn resources(skimmed: &Texts<'_>, pool: &Pool) -> Result<Vec<Arc<Resource>>, LoadError> {
    in_chunks(skimmed, |path, text, reader| {
        // The path is part of what is shared, and the key of the map decides on it.
        let digest = Resource::digest_of(path, text.as_bytes());
        pool.resource(digest, || {
            let whole = reader.again(text);
            let value = whole.map_err(|fault| LoadError::Document { path: path.to_owned(), fault })?;
            let form = || LoadError::Form { part: path.to_owned(), form: "a resource" };
            read_resource(path, value.as_map().ok_or_else(form)?, digest).ok_or_else(form)
        })
    })
}

/// Reads texts side by side; those of a chunk with one reader.
fn in_chunks<'a, T: Send>(
    texts: &Texts<'a>,
    read: impl Fn(&str, &'a str, &mut Reader<'a>) -> Result<T, LoadError> + Sync,
) -> Result<Vec<T>, LoadError> {
    let chunk = |texts: &[(Cow<'a, str>, &'a str)]| {
        let mut reader = Reader::new("");
        texts.iter().map(|(path, text)| read(path, text, &mut reader)).collect::<Result<Vec<_>, _>>()
    };
    let chunks: Vec<Vec<T>> = texts.par_chunks(CHUNK).map(chunk).collect::<Result<_, _>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

fn read_resource(path: &str, map: &Map, digest: Sha256) -> Option<Resource> {
    let text = |key: &str| map.get(key)?.as_str();
    let mut backrefs = Vec::new();
    for backref in map.get("backrefs").and_then(Value::as_list).unwrap_or_default() {
        let field = |key: &str| Some(backref.get(key)?.as_str()?.to_owned());
        backrefs.push(Backref {
            path: field("path")?,
            datafile_schema: field("datafileSchema")?,
            jsonpath: field("jsonpath")?,
        });
    }
    Some(Resource {
        path: path.into(),
        content: text("content")?.into(),
        sha256sum: text("sha256sum")?.into(),
        schema: text("$schema").map(Into::into),
        backrefs,
        digest,
    })
}
