//! Encodes values: makes the bundle in memory, its bytes and its hash.
//!
//! Encoding runs in parallel in chunks; the text is hashed and written in order. During hashing, checkpoints
//! of the hasher are stored, so that an incremental build rehashes only the text from the first change to the end.

use std::io;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::resources::{ResourceSource, UnencodedResource};
use crate::digest::{Hasher, Sha256};
use crate::json::{write_python, write_python_str};
use crate::model::{Backref, Bundle, CommitStamp, Datafile, Document, PathIndex, Pool, Resource};
use crate::store::BundleFile;
use crate::value::Value;

/// Number of documents that one task encodes.
const CHUNK_DOCUMENTS: usize = 128;

/// Number of tasks that run concurrently.
const MAX_CHUNKS: usize = 16;

/// A document and its path.
pub struct DocumentInput<'a> {
    pub path: &'a Arc<str>,
    pub content: DocumentSource<'a>,
}

/// The source of a document.
pub enum DocumentSource<'a> {
    /// A cached document.
    Cached(&'a Arc<Document>),
    /// A new value, and the cell that caches the document made from it.
    New(Value, Option<&'a OnceLock<Arc<Document>>>),
}

/// The parts of a bundle, before they are encoded.
pub struct BundleParts<'a> {
    pub datafiles: Vec<DocumentInput<'a>>,
    pub stamp: CommitStamp,
    pub graphql: Value,
    pub resources: Vec<UnencodedResource<'a>>,
    pub schemas: Vec<(Arc<str>, Value)>,
    /// The digest of the schema context.
    pub context_digest: Sha256,
}

/// A checkpoint of the hasher: the state of the hash after a prefix of the bundle.
#[derive(Clone, Debug)]
pub struct HashCheckpoint {
    /// Number of datafiles in the prefix; once the prefix contains all datafiles, also counts its resources.
    written: usize,
    hasher: Hasher,
}

/// Encodes and hashes a bundle. A draft is written at the same time. Also returns hasher checkpoints, from
/// which a bundle with the same prefix can be rehashed.
pub fn encode(
    parts: BundleParts<'_>,
    pool: &Pool,
    draft: Option<&mut BundleFile>,
) -> (Bundle, Vec<HashCheckpoint>) {
    let BundleParts { datafiles, stamp, graphql, resources, schemas, context_digest } = parts;
    let (mut hasher, mut checkpoints) = (Hasher::default(), Vec::new());
    let mut draft = draft.and_then(BundleFile::stream);
    let mut out = |text: &[u8], written: Option<usize>| {
        hasher.update(text);
        checkpoints.extend(written.map(|written| HashCheckpoint { written, hasher: hasher.clone() }));
        // A failed write is not reported here, because finishing the draft writes the bundle again and
        // reports its own error.
        if draft.as_mut().is_some_and(|draft| draft.write(text).is_err()) {
            draft = None;
        }
        true
    };
    out(OPENING, None);
    let datafiles = encode_documents(datafiles, pool, &mut out);
    let graphql = {
        let mut text = Vec::new();
        write_python(&graphql, &mut text);
        out(&middle(&stamp, &text), None);
        infallible(pool.document(Sha256::of(&text), || Ok(graphql)))
    };
    let resources = encode_in_order(
        resources,
        0,
        datafiles.len(),
        &mut out,
        |index, raw: UnencodedResource<'_>, text| {
            write_key(index, raw.path(), text);
            encode_resource(raw.source, pool, text)
        },
    );
    let mut out = |text: &[u8], _: Option<usize>| out(text, None);
    out(AFTER_RESOURCES, None);
    let schemas: Vec<DocumentInput<'_>> = schemas
        .iter()
        .map(|(path, value)| DocumentInput { path, content: DocumentSource::New(value.clone(), None) })
        .collect();
    let schemas = encode_documents(schemas, pool, &mut out);
    out(CLOSING, None);
    if let Some(draft) = draft {
        draft.complete();
    }
    let bundle = Bundle {
        sha: hasher.finish(),
        stamp,
        datafiles,
        graphql,
        resources,
        schemas,
        path_index: PathIndex::default(),
        context_digest: Some(context_digest),
    };
    (bundle, checkpoints)
}

/// Computes the digest of a resource; appends its JSON to `text`.
pub fn encode_resource(raw: ResourceSource<'_>, pool: &Pool, text: &mut Vec<u8>) -> Arc<Resource> {
    let start = text.len();
    let unnamed = match raw {
        ResourceSource::Cached(resource) => {
            write_resource(resource, text);
            return Arc::clone(resource);
        }
        ResourceSource::New(unnamed) => unnamed,
    };
    write_resource(&unnamed, text);
    let digest = Resource::digest_of(&unnamed.path, &text[start..]);
    infallible(pool.resource(digest, || Ok(Resource { digest, ..unnamed })))
}

/// Computes the digest of a document; appends its JSON to `text`.
pub fn encode_document(content: DocumentSource<'_>, pool: &Pool, text: &mut Vec<u8>) -> Arc<Document> {
    let (value, made) = match content {
        DocumentSource::Cached(document) => {
            document.value.write(text);
            return Arc::clone(document);
        }
        DocumentSource::New(value, made) => (value, made),
    };
    let start = text.len();
    write_python(&value, text);
    let make = || infallible(pool.document(Sha256::of(&text[start..]), || Ok(value.clone())));
    match made {
        Some(made) => Arc::clone(made.get_or_init(make)),
        None => make(),
    }
}

/// Recomputes the SHA-256 of a bundle whose first `same` entries (datafiles, then resources) are unchanged.
/// Starts from the last checkpoint in that prefix, drops the later checkpoints, and adds new checkpoints.
pub fn rehash(bundle: &mut Bundle, same: usize, checkpoints: &mut Vec<HashCheckpoint>) {
    let good = checkpoints.iter().take_while(|checkpoint| checkpoint.written <= same).count();
    checkpoints.truncate(good);
    let last = checkpoints.last().cloned();
    let (start, mut hasher) =
        last.map_or_else(Default::default, |checkpoint| (checkpoint.written, checkpoint.hasher));
    bundle.write_from(start, &mut |text, written| {
        hasher.update(text);
        checkpoints.extend(written.map(|written| HashCheckpoint { written, hasher: hasher.clone() }));
        true
    });
    bundle.sha = hasher.finish();
}

const OPENING: &[u8] = b"{\"data\":{";
const AFTER_RESOURCES: &[u8] = b"},\"schemas\":{";
const CLOSING: &[u8] = b"}}\n";

/// The text between the datafiles and the resources.
fn middle(stamp: &CommitStamp, graphql: &[u8]) -> Vec<u8> {
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
    /// The bytes that [`Bundle::write_to`] writes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write_to(&mut bytes);
        bytes
    }

    /// Writes the bytes of the bundle. Their SHA-256 is its name if it was built by this program.
    pub fn write_to(&self, out: &mut (dyn io::Write + Send)) -> io::Result<()> {
        let mut result = Ok(());
        // Stops encoding at the first failed write.
        self.write_from(0, &mut |text, _| {
            if result.is_ok() {
                result = out.write_all(text);
            }
            result.is_ok()
        });
        result
    }

    /// Writes the text after the first `start` entries (datafiles, then resources).
    fn write_from(&self, start: usize, out: &mut TextSink<'_>) {
        let document = |index, datafile: &Datafile, text: &mut Vec<u8>| {
            write_key(index, &datafile.path, text);
            datafile.document.value.write(text);
        };
        let datafiles = self.datafiles.len();
        if start == 0 {
            out(OPENING, None);
        }
        if start <= datafiles {
            encode_in_order(self.datafiles[start..].iter().collect(), start, 0, out, document);
            let mut graphql = Vec::new();
            self.graphql.value.write(&mut graphql);
            out(&middle(&self.stamp, &graphql), None);
        }
        let start = start.saturating_sub(datafiles);
        let resources = self.resources[start..].iter().collect();
        encode_in_order(resources, start, datafiles, out, |index, resource: &Arc<Resource>, text| {
            write_key(index, &resource.path, text);
            write_resource(resource, text);
        });
        let mut out = |text: &[u8], _: Option<usize>| out(text, None);
        out(AFTER_RESOURCES, None);
        encode_in_order(self.schemas.iter().collect(), 0, 0, &mut out, document);
        out(CLOSING, None);
    }
}

fn infallible<T>(result: Result<T, std::convert::Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

fn encode_documents(documents: Vec<DocumentInput<'_>>, pool: &Pool, out: &mut TextSink<'_>) -> Vec<Datafile> {
    encode_in_order(documents, 0, 0, out, |index, DocumentInput { path, content }, text| {
        write_key(index, path, text);
        Datafile { path: Arc::clone(path), document: encode_document(content, pool, text) }
    })
}

/// Receives text and returns whether to continue. The number is the count of entries written so far; it is
/// given only at positions where a checkpoint is possible.
type TextSink<'o> = dyn FnMut(&[u8], Option<usize>) -> bool + Send + 'o;

/// Encodes items in parallel and emits their JSON in order. While one group of chunks is encoded, the
/// previous one is emitted, so at most two groups are in memory. `first` is the index of the first item;
/// `before` is the number of entries before index 0, for counting.
fn encode_in_order<T: Send, U: Send>(
    things: Vec<T>,
    first: usize,
    before: usize,
    out: &mut TextSink<'_>,
    encode: impl Fn(usize, T, &mut Vec<u8>) -> U + Sync,
) -> Vec<U> {
    let mut encoded = Vec::with_capacity(things.len());
    let mut things = (first..).zip(things);
    let mut texts: Vec<(Vec<u8>, usize)> = Vec::new();
    // Buffers to reuse.
    let mut used: Vec<Vec<u8>> = Vec::new();
    let mut written = first + before;
    loop {
        let chunks: Vec<Vec<(usize, T)>> =
            std::iter::repeat_with(|| things.by_ref().take(CHUNK_DOCUMENTS).collect())
                .take(MAX_CHUNKS)
                .take_while(|chunk: &Vec<_>| !chunk.is_empty())
                .collect();
        if chunks.is_empty() && texts.is_empty() {
            return encoded;
        }
        let chunks: Vec<_> =
            chunks.into_iter().map(|chunk| (chunk, used.pop().unwrap_or_default())).collect();
        let chunk = |(chunk, mut text): (Vec<(usize, T)>, Vec<u8>)| {
            let things = chunk.into_iter().map(|(index, thing)| encode(index, thing, &mut text));
            let things: Vec<U> = things.collect();
            (text, things)
        };
        let put = |(text, count): &(Vec<u8>, usize)| {
            written += count;
            out(text, Some(written))
        };
        let (is_wanted, next) =
            rayon::join(|| texts.iter().all(put), || chunks.into_par_iter().map(chunk).collect::<Vec<_>>());
        if !is_wanted {
            return encoded;
        }
        used.extend(texts.drain(..).map(|(mut text, _)| {
            text.clear();
            text
        }));
        for (text, things) in next {
            texts.push((text, things.len()));
            encoded.extend(things);
        }
    }
}

fn write_key(index: usize, path: &str, text: &mut Vec<u8>) {
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
        write_field("datafileSchema", datafile_schema, text);
        text.push(b',');
        write_field("jsonpath", jsonpath, text);
        text.push(b',');
        write_field("path", path, text);
        text.push(b'}');
    }
    text.extend_from_slice(b"],");
    write_field("content", &resource.content, text);
    text.push(b',');
    write_field("path", &resource.path, text);
    text.push(b',');
    write_field("sha256sum", &resource.sha256sum, text);
    text.push(b'}');
}

fn write_field(key: &str, value: &str, text: &mut Vec<u8>) {
    write_python_str(key, text);
    text.push(b':');
    write_python_str(value, text);
}
