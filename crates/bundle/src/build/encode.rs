//! Values → the bytes of a bundle, and the bundle in memory.

use std::sync::Arc;

use rayon::prelude::*;

use super::Built;
use super::resources::RawResource;
use crate::digest::Sha256;
use crate::json::{write_python, write_python_str};
use crate::model::{Backref, Bundle, Datafile, Encoded, Pool, Resource, Stamp};
use crate::value::Value;

/// How many documents one task encodes.
const CHUNK: usize = 256;

/// Everything a bundle holds, before it is encoded.
pub struct Parts {
    pub datafiles: Vec<(String, Value)>,
    pub stamp: Stamp,
    pub graphql: Value,
    pub resources: Vec<RawResource>,
    pub schemas: Vec<(String, Value)>,
}

/// Encodes a bundle.
pub fn encode(parts: Parts, pool: &Pool) -> Built {
    let Parts { datafiles, stamp, graphql, resources, schemas } = parts;
    let mut encoded = Encoded::default();
    encoded.push(b"{\"data\":{".to_vec());
    let datafiles = documents(datafiles, pool, &mut encoded);

    let mut middle = b"},\"git_commit\":".to_vec();
    write_python_str(&stamp.commit, &mut middle);
    middle.extend_from_slice(b",\"git_commit_timestamp\":");
    write_python_str(&stamp.timestamp, &mut middle);
    middle.extend_from_slice(b",\"graphql\":");
    let graphql = {
        let start = middle.len();
        write_python(&graphql, &mut middle);
        let digest = Sha256::of(&middle[start..]);
        infallible(pool.document(digest, || Ok(graphql)))
    };
    middle.extend_from_slice(b",\"resources\":{");
    encoded.push(middle);
    let resources = encode_resources(resources, pool, &mut encoded);
    encoded.push(b"},\"schemas\":{".to_vec());
    let schemas = documents(schemas, pool, &mut encoded);
    encoded.push(b"}}\n".to_vec());

    let sha = encoded.sha();
    Built { bundle: Bundle { sha, stamp, datafiles, graphql, resources, schemas }, encoded }
}

fn infallible<T>(result: Result<T, std::convert::Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

fn documents(documents: Vec<(String, Value)>, pool: &Pool, encoded: &mut Encoded) -> Vec<Datafile> {
    let chunks: Vec<(Vec<u8>, Vec<Datafile>)> = documents
        .into_par_iter()
        .enumerate()
        .chunks(CHUNK)
        .map(|chunk| {
            let mut text = Vec::new();
            let mut files = Vec::with_capacity(chunk.len());
            for (index, (path, value)) in chunk {
                key(index, &path, &mut text);
                let start = text.len();
                write_python(&value, &mut text);
                let document = infallible(pool.document(Sha256::of(&text[start..]), || Ok(value)));
                files.push(Datafile { path: Arc::from(path), document });
            }
            (text, files)
        })
        .collect();
    gather(chunks, encoded)
}

fn encode_resources(resources: Vec<RawResource>, pool: &Pool, encoded: &mut Encoded) -> Vec<Arc<Resource>> {
    let chunks: Vec<(Vec<u8>, Vec<Arc<Resource>>)> = resources
        .into_par_iter()
        .enumerate()
        .chunks(CHUNK)
        .map(|chunk| {
            let mut text = Vec::new();
            let mut files = Vec::with_capacity(chunk.len());
            for (index, raw) in chunk {
                key(index, &raw.path, &mut text);
                let start = text.len();
                write_resource(&raw, &mut text);
                let digest = Resource::digest_of(&raw.path, &text[start..]);
                let RawResource { path, content, sha256sum, schema, backrefs } = raw;
                files.push(infallible(pool.resource(digest, || {
                    Ok(Resource {
                        path: path.into(),
                        content: content.into(),
                        sha256sum: sha256sum.into(),
                        schema: schema.map(Into::into),
                        backrefs,
                        digest,
                    })
                })));
            }
            (text, files)
        })
        .collect();
    gather(chunks, encoded)
}

fn gather<T>(chunks: Vec<(Vec<u8>, Vec<T>)>, encoded: &mut Encoded) -> Vec<T> {
    let mut all = Vec::with_capacity(chunks.iter().map(|(_, files)| files.len()).sum());
    for (text, files) in chunks {
        encoded.push(text);
        all.extend(files);
    }
    all
}

fn key(index: usize, path: &str, text: &mut Vec<u8>) {
    if index > 0 {
        text.push(b',');
    }
    write_python_str(path, text);
    text.push(b':');
}

fn write_resource(resource: &RawResource, text: &mut Vec<u8>) {
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
