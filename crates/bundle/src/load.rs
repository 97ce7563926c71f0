//! Bytes → bundle. Also loads bundles from other programs.

mod splitter;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

pub(crate) use splitter::{Batch, BundlePart, DocumentSplitter, Piece};

use crate::digest::Sha256;
use crate::json::{JsonError, JsonParser};
use crate::model::{Backref, Bundle, CommitStamp, Datafile, Document, PathIndex, Pool, Resource};
use crate::value::{Map, Value};

/// The reason why bytes are not a valid bundle.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Reading the bytes failed.
    #[error("the bundle cannot be read")]
    Source(#[source] std::io::Error),
    /// The bytes are not UTF-8.
    #[error("the bundle is not valid UTF-8 at byte {offset}")]
    Encoding {
        /// The first invalid byte.
        offset: usize,
    },
    /// The text is not JSON.
    #[error("the bundle is not valid JSON")]
    Json(#[source] JsonError),
    /// A document is not JSON.
    #[error("`{path}` in the bundle is not valid JSON")]
    Document {
        /// Path of the document.
        path: String,
        /// The error, with an offset from the start of the document.
        #[source]
        fault: JsonError,
    },
    /// A part is missing or has the wrong type.
    #[error("`{part}` is missing in the bundle, or not {form}")]
    Form {
        /// Name of the part.
        part: String,
        /// The expected type.
        form: &'static str,
    },
}

/// Approximate number of bytes per batch.
pub(crate) const BATCH_BYTES: usize = 512 << 10;

/// Loads a bundle. Documents that `pool` already has are shared, not parsed.
pub fn load(bytes: &[u8], pool: &Pool) -> Result<Bundle, LoadError> {
    load_from(&mut &*bytes, pool)
}

/// Loads a bundle from a reader, in batches, so that the whole text is never in memory.
pub fn load_from(source: &mut dyn Read, pool: &Pool) -> Result<Bundle, LoadError> {
    load_in_batches(source, BATCH_BYTES, pool)
}

fn load_in_batches(source: &mut dyn Read, size: usize, pool: &Pool) -> Result<Bundle, LoadError> {
    let spare_buffers = Mutex::new(Vec::new());
    let mut splitter = DocumentSplitter::new(source, size, &spare_buffers);
    let (parsed, pending, shapes) = (Mutex::new(Vec::new()), AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Maximum number of batches that other threads parse. Above it, the splitting thread parses the batch
    // itself, which bounds the memory.
    let max_pending = 2 * rayon::current_num_threads();
    rayon::in_place_scope(|scope| {
        let mut number = 0;
        while let Some(batch) = splitter.next()? {
            number += 1;
            let (parsed, pending, shapes, spare_buffers) = (&parsed, &pending, &shapes, &spare_buffers);
            let read = move || {
                let reader = JsonParser::with_shapes(pop(shapes).unwrap_or_default());
                let mut batch_reader = BatchReader { pool, reader };
                push(parsed, (number, batch_reader.batch(&batch)));
                push(shapes, batch_reader.reader.into_shapes());
                push(spare_buffers, batch.text.into_bytes());
            };
            if number == 1 && splitter.has_ended() || pending.load(Ordering::Relaxed) >= max_pending {
                read();
            } else {
                pending.fetch_add(1, Ordering::Relaxed);
                scope.spawn(move |_| {
                    read();
                    pending.fetch_sub(1, Ordering::Relaxed);
                });
            }
        }
        Ok::<(), LoadError>(())
    })?;
    let mut parsed = parsed.into_inner();
    parsed.sort_by_key(|(number, _)| *number);
    let mut parts = PartialBundle::default();
    for (_, read) in parsed {
        read?.into_iter().for_each(|one| parts.add(one));
    }
    parts.into_bundle(splitter.sha())
}

fn push<T>(all: &Mutex<Vec<T>>, one: T) {
    all.lock().push(one);
}

fn pop<T>(all: &Mutex<Vec<T>>) -> Option<T> {
    all.lock().pop()
}

/// A parsed piece of a batch.
enum LoadedPiece {
    Opened(BundlePart),
    Datafile(Datafile),
    Resource(Arc<Resource>),
    Schema(Datafile),
    Graphql(Arc<Document>),
    Commit(String),
    Timestamp(String),
}

/// Parses the documents of a batch.
struct BatchReader<'a, 'p> {
    pool: &'p Pool,
    reader: JsonParser<'a>,
}

impl<'a> BatchReader<'a, '_> {
    fn batch(&mut self, batch: &'a Batch) -> Result<Vec<LoadedPiece>, LoadError> {
        let mut read = Vec::with_capacity(batch.pieces.len());
        for piece in &batch.pieces {
            read.push(match piece {
                Piece::Opened(part) => LoadedPiece::Opened(*part),
                Piece::Document(part, path, place) => {
                    let text = &batch.text[place.clone()];
                    match part {
                        BundlePart::Data => LoadedPiece::Datafile(self.datafile(path, text)?),
                        BundlePart::Resources => LoadedPiece::Resource(self.resource(path, text)?),
                        BundlePart::Schemas => LoadedPiece::Schema(Datafile {
                            path: Arc::from(path.as_str()),
                            document: self.document(path, text)?,
                        }),
                    }
                }
                Piece::Other(key, place) => match (key.as_str(), &batch.text[place.clone()]) {
                    ("graphql", text) => LoadedPiece::Graphql(self.document(key, text)?),
                    ("git_commit", text) => LoadedPiece::Commit(read_string(key, text)?),
                    ("git_commit_timestamp", text) => LoadedPiece::Timestamp(read_string(key, text)?),
                    _ => continue,
                },
            });
        }
        Ok(read)
    }

    fn datafile(&mut self, path: &str, text: &'a str) -> Result<Datafile, LoadError> {
        let document = self.document(path, text)?;
        if document.value.as_map().is_none() {
            return Err(LoadError::Form { part: path.to_owned(), form: "an object" });
        }
        Ok(Datafile { path: Arc::from(path), document })
    }

    fn document(&mut self, path: &str, text: &'a str) -> Result<Arc<Document>, LoadError> {
        self.pool.document(Sha256::of(text.as_bytes()), || {
            self.reader.parse_text(text).map_err(|fault| LoadError::Document { path: path.to_owned(), fault })
        })
    }

    fn resource(&mut self, path: &str, text: &'a str) -> Result<Arc<Resource>, LoadError> {
        // The path is part of the shared value, and the key of the map defines it.
        let digest = Resource::digest_of(path, text.as_bytes());
        self.pool.resource(digest, || {
            let whole = self.reader.parse_text(text);
            let value = whole.map_err(|fault| LoadError::Document { path: path.to_owned(), fault })?;
            let form = || LoadError::Form { part: path.to_owned(), form: "a resource" };
            read_resource(path, value.as_map().ok_or_else(form)?, digest).ok_or_else(form)
        })
    }
}

/// The parts of a bundle that were read so far.
#[derive(Default)]
struct PartialBundle {
    datafiles: Option<Vec<Datafile>>,
    resources: Option<Vec<Arc<Resource>>>,
    schemas: Option<Vec<Datafile>>,
    graphql: Option<Arc<Document>>,
    commit: Option<String>,
    timestamp: Option<String>,
}

impl PartialBundle {
    fn add(&mut self, one: LoadedPiece) {
        match one {
            LoadedPiece::Opened(BundlePart::Data) => self.datafiles = Some(Vec::new()),
            LoadedPiece::Opened(BundlePart::Resources) => self.resources = Some(Vec::new()),
            LoadedPiece::Opened(BundlePart::Schemas) => self.schemas = Some(Vec::new()),
            LoadedPiece::Datafile(datafile) => self.datafiles.get_or_insert_default().push(datafile),
            LoadedPiece::Resource(resource) => self.resources.get_or_insert_default().push(resource),
            LoadedPiece::Schema(schema) => self.schemas.get_or_insert_default().push(schema),
            LoadedPiece::Graphql(document) => self.graphql = Some(document),
            LoadedPiece::Commit(text) => self.commit = Some(text),
            LoadedPiece::Timestamp(text) => self.timestamp = Some(text),
        }
    }

    fn into_bundle(self, sha: Sha256) -> Result<Bundle, LoadError> {
        let missing = |part: &str, form| LoadError::Form { part: part.to_owned(), form };
        let part = |part: BundlePart| missing(part.name(), "an object");
        let commit = self.commit.ok_or_else(|| missing("git_commit", "a string"))?;
        let timestamp = self.timestamp.ok_or_else(|| missing("git_commit_timestamp", "a string"))?;
        Ok(Bundle {
            sha,
            stamp: CommitStamp { commit, timestamp },
            graphql: self.graphql.ok_or_else(|| missing("graphql", "a JSON value"))?,
            datafiles: sorted(self.datafiles.ok_or_else(|| part(BundlePart::Data))?, |datafile| {
                &datafile.path
            }),
            resources: sorted(self.resources.ok_or_else(|| part(BundlePart::Resources))?, |resource| {
                &resource.path
            }),
            schemas: sorted(self.schemas.ok_or_else(|| part(BundlePart::Schemas))?, |schema| &schema.path),
            path_index: PathIndex::default(),
            context_digest: None,
        })
    }
}

/// Sorts by path. If a path occurs more than once, the last one is used, as in every JSON parser.
fn sorted<T>(mut all: Vec<T>, path: impl Fn(&T) -> &str) -> Vec<T> {
    if !all.is_sorted_by(|a, b| path(a) < path(b)) {
        all.reverse();
        all.sort_by(|a, b| path(a).cmp(path(b)));
        all.dedup_by(|later, kept| path(later) == path(kept));
    }
    all
}

fn read_string(key: &str, text: &str) -> Result<String, LoadError> {
    let value = JsonParser::new(text).parse().map_err(LoadError::Json)?;
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| LoadError::Form { part: key.to_owned(), form: "a string" })
}

/// The resource in a map of a bundle.
pub(crate) fn read_resource(path: &str, map: &Map, digest: Sha256) -> Option<Resource> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "{\"data\": {\"/\\u00e9\\ud83d\\ude00é\": {\"a\": [1, \"}\\\"{\"]}, \"/b\" : {}, \"/b\": {\"b\": true}}, \"other\": 12,
        \"git_commit\":\"c\",\"git_commit_timestamp\":\"\\u0031\",\"graphql\":[],\"schemas\":{\"/s\":true},
        \"resources\":{\"/gone\":{\"content\":\"\",\"sha256sum\":\"\"}},
        \"resources\":{\"/r\":{\"content\":\"é\",\"sha256sum\":\"0\",\"$schema\":null,\"backrefs\":[]}}}\n ";

    fn shown(size: usize, text: impl AsRef<[u8]>) -> Result<String, String> {
        let loaded = load_in_batches(&mut text.as_ref(), size, &Pool::default());
        loaded.map(|bundle| format!("{bundle:?}")).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn the_batch_size_makes_no_difference() {
        let whole = shown(1 << 20, TEXT).expect("a bundle");
        let paths: Vec<_> = ["/b", "/é😀é", "/r", "/s"].map(|path| whole.find(&format!("\"{path}\""))).into();
        assert!(paths.iter().all(Option::is_some) && !whole.contains("/gone"), "{whole}");
        for size in 1..TEXT.len() + 2 {
            assert_eq!(shown(size, TEXT).as_ref(), Ok(&whole), "in batches of {size} bytes");
        }
    }

    #[test]
    fn an_error_is_at_the_same_byte_for_every_batch_size() {
        let broken = (0..TEXT.trim_end().len())
            .filter(|end| TEXT.is_char_boundary(*end))
            .map(|end| TEXT[..end].to_owned());
        let more = ["x", "{}", ","].map(|more| format!("{}{more}", TEXT.trim_end()));
        let wrong = [(":", "="), ("{}", "{]"), ("\"/b\" ", "7 "), (", \"other", " \"other")];
        let wrong = wrong.map(|(this, that)| TEXT.replacen(this, that, 1));
        for text in broken.chain(more).chain(wrong) {
            let whole = shown(1 << 20, &text).expect_err(&text);
            for size in [1, 2, 3, 5, 8, 13, 64, 200] {
                assert_eq!(shown(size, &text).as_ref(), Err(&whole), "{text:?} in batches of {size} bytes");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_with_their_offset() {
        let at = TEXT.find("other").expect("a key");
        let mut bytes = TEXT.as_bytes().to_vec();
        bytes[at] = 0xff;
        for size in [1, 7, 16, 64, 1 << 20] {
            let expected = format!("Encoding {{ offset: {at} }}");
            assert_eq!(shown(size, &bytes), Err(expected), "in batches of {size} bytes");
        }
    }

    #[test]
    fn a_read_error_of_the_source_is_reported() {
        struct FailingReader;
        impl Read for FailingReader {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("gone"))
            }
        }
        let mut source = (&TEXT.as_bytes()[..40]).chain(FailingReader);
        let loaded = load_in_batches(&mut source, 16, &Pool::default());
        assert!(matches!(loaded, Err(LoadError::Source(_))));
    }

    #[test]
    fn a_document_given_twice_is_checked_twice() {
        let twice = TEXT.replacen("\"/b\" : {}", "\"/b\" : 5", 1);
        assert!(shown(1 << 20, twice).expect_err("5 is not an object").contains("/b"));
    }
}
