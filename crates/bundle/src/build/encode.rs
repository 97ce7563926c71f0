//! Values → the bundle in memory, and its bytes.

use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::resources::{RawResource, RawText};
use crate::digest::{Hasher, Sha256};
use crate::json::{write_python, write_python_str};
use crate::model::{Backref, Bundle, Datafile, Document, Places, Pool, Resource, Stamp};
use crate::store::Draft;
use crate::value::Value;

/// How many documents one task encodes.
const CHUNK: usize = 128;

/// How many tasks there are at a time.
const CHUNKS: usize = 16;

/// A document and its path.
pub struct Named<'a> {
    pub path: &'a str,
    pub value: Value,
    /// Where the document is kept that is made of it.
    pub made: Option<&'a OnceLock<Arc<Document>>>,
}

/// Everything a bundle holds, before it is encoded.
pub struct Parts<'a> {
    pub datafiles: Vec<Named<'a>>,
    pub stamp: Stamp,
    pub graphql: Value,
    pub resources: Vec<RawResource<'a>>,
    pub schemas: Vec<(String, Value)>,
}

/// Names what it holds and puts it together; a draft is written meanwhile.
pub fn encode(parts: Parts<'_>, pool: &Pool, draft: Option<&mut Draft>) -> Bundle {
    let Parts { datafiles, stamp, graphql, resources, schemas } = parts;
    let mut hasher = Hasher::default();
    let mut draft = draft.and_then(Draft::early);
    let mut out = |text: &[u8]| {
        hasher.update(text);
        // What cannot be written now is tried again, and told then.
        if draft.as_mut().is_some_and(|(draft, _)| draft.write_all(text).is_err()) {
            draft = None;
        }
        true
    };
    out(OPENING);
    let datafiles = documents(datafiles, pool, &mut out);
    let graphql = {
        let mut text = Vec::new();
        write_python(&graphql, &mut text);
        out(&middle(&stamp, &text));
        infallible(pool.document(Sha256::of(&text), || Ok(graphql)))
    };
    let resources = in_order(resources, &mut out, |index, raw: RawResource<'_>, text| {
        key(index, raw.path(), text);
        let start = text.len();
        let unnamed = match raw.text {
            RawText::Kept(resource) => {
                write_resource(resource, text);
                return Arc::clone(resource);
            }
            RawText::New(unnamed) => unnamed,
        };
        write_resource(&unnamed, text);
        let digest = Resource::digest_of(&unnamed.path, &text[start..]);
        infallible(pool.resource(digest, || Ok(Resource { digest, ..unnamed })))
    });
    out(BEHIND_RESOURCES);
    let schemas: Vec<Named<'_>> =
        schemas.iter().map(|(path, value)| Named { path, value: value.clone(), made: None }).collect();
    let schemas = documents(schemas, pool, &mut out);
    out(CLOSING);
    if let Some((_, whole)) = draft {
        *whole = true;
    }
    let (sha, places) = (hasher.finish(), Places::new());
    Bundle { sha, stamp, datafiles, graphql, resources, schemas, places }
}

const OPENING: &[u8] = b"{\"data\":{";
const BEHIND_RESOURCES: &[u8] = b"},\"schemas\":{";
const CLOSING: &[u8] = b"}}\n";

/// What stands between the datafiles and the resources.
fn middle(stamp: &Stamp, graphql: &[u8]) -> Vec<u8> {
    let mut middle = b"},\"git_commit\":".to_vec();
    write_python_str(&stamp.commit, &mut middle);
    middle.extend_from_slice(b",\"git_commit_timestamp\":");
    write_python_str(&stamp.timestamp, &mut middle);
    middle.extend_from_slice(b",\"graphql\":");
    middle.extend_from_slice(graphql);
    middle.extend_from_slice(b",\"resources\":{");
    middle
}

impl Bundle {
    /// What [`Bundle::write_to`] writes, in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Memory takes everything.
        let _ = self.write_to(&mut bytes);
        bytes
    }

    /// Writes its bytes: those that its name is the digest of, if we made it.
    pub fn write_to(&self, out: &mut (dyn io::Write + Send)) -> io::Result<()> {
        let mut written = Ok(());
        // Nothing more is encoded for those who take no more.
        let mut put = |text: &[u8]| {
            if written.is_ok() {
                written = out.write_all(text);
            }
            written.is_ok()
        };
        let document = |index, datafile: &Datafile, text: &mut Vec<u8>| {
            key(index, &datafile.path, text);
            write_python(&datafile.document.value, text);
        };
        put(OPENING);
        in_order(self.datafiles.iter().collect(), &mut put, document);
        let mut graphql = Vec::new();
        write_python(&self.graphql.value, &mut graphql);
        put(&middle(&self.stamp, &graphql));
        in_order(self.resources.iter().collect(), &mut put, |index, resource: &Arc<Resource>, text| {
            key(index, &resource.path, text);
            write_resource(resource, text);
        });
        put(BEHIND_RESOURCES);
        in_order(self.schemas.iter().collect(), &mut put, document);
        put(CLOSING);
        written
    }
}

fn infallible<T>(result: Result<T, std::convert::Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

fn documents(documents: Vec<Named<'_>>, pool: &Pool, out: &mut Out<'_>) -> Vec<Datafile> {
    in_order(documents, out, |index, Named { path, value, made }, text| {
        key(index, path, text);
        let start = text.len();
        write_python(&value, text);
        let make = || infallible(pool.document(Sha256::of(&text[start..]), || Ok(value.clone())));
        let document = match made {
            Some(made) => Arc::clone(made.get_or_init(make)),
            None => make(),
        };
        Datafile { path: Arc::from(path), document }
    })
}

/// Takes a text, and says whether more is wanted.
type Out<'o> = dyn FnMut(&[u8]) -> bool + Send + 'o;

/// Encodes things side by side, and puts their texts out one after the other. Not all of them are in memory at once: while
/// some are encoded, those before are put out.
fn in_order<T: Send, U: Send>(
    things: Vec<T>,
    out: &mut Out<'_>,
    encode: impl Fn(usize, T, &mut Vec<u8>) -> U + Sync,
) -> Vec<U> {
    let mut encoded = Vec::with_capacity(things.len());
    let mut things = things.into_iter().enumerate();
    let mut texts: Vec<Vec<u8>> = Vec::new();
    loop {
        let chunks: Vec<Vec<(usize, T)>> = std::iter::repeat_with(|| things.by_ref().take(CHUNK).collect())
            .take(CHUNKS)
            .take_while(|chunk: &Vec<_>| !chunk.is_empty())
            .collect();
        if chunks.is_empty() && texts.is_empty() {
            return encoded;
        }
        let chunk = |chunk: Vec<(usize, T)>| {
            let mut text = Vec::new();
            let things = chunk.into_iter().map(|(index, thing)| encode(index, thing, &mut text));
            let things: Vec<U> = things.collect();
            (text, things)
        };
        let (is_wanted, next) = rayon::join(
            || texts.iter().all(|text| out(text)),
            || chunks.into_par_iter().map(chunk).collect::<Vec<_>>(),
        );
        if !is_wanted {
            return encoded;
        }
        texts.clear();
        for (text, things) in next {
            texts.push(text);
            encoded.extend(things);
        }
    }
}

fn key(index: usize, path: &str, text: &mut Vec<u8>) {
    if index > 0 {
        text.push(b',');
    }
    write_python_str(path, text);
    text.push(b':');
}

fn write_resource(resource: &Resource, text: &mut Vec<u8>) {
    text.extend_from_slice(b"{\"$schema\":");
    match &resource.schema {
        Some(schema) => write_python_str(schema, text),
        None => text.extend_from_slice(b"null"),
    }
    text.extend_from_slice(b",\"backrefs\":[");
    for (index, Backref { path, datafile_schema, jsonpath }) in resource.backrefs.iter().enumerate() {
        text.extend_from_slice(if index > 0 { b",{" } else { b"{" });
        field("datafileSchema", datafile_schema, text);
        text.push(b',');
        field("jsonpath", jsonpath, text);
        text.push(b',');
        field("path", path, text);
        text.push(b'}');
    }
    text.extend_from_slice(b"],");
    field("content", &resource.content, text);
    text.push(b',');
    field("path", &resource.path, text);
    text.push(b',');
    field("sha256sum", &resource.sha256sum, text);
    text.push(b'}');
}

fn field(key: &str, value: &str, text: &mut Vec<u8>) {
    write_python_str(key, text);
    text.push(b':');
    write_python_str(value, text);
}
