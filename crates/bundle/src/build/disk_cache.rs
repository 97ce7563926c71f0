//! On-disk build cache: lets the next process start from the results of this process. Its location is decided
//! in `crates/daemon/src/repo_cache.rs`.
//!
//! A directory holds the last bundle and an index. The index has, for each document, its position in the
//! bundle, the file stamp of its file, and the facts collected by the walk. The values themselves are in the
//! bundle, and most of them are copied, not parsed. **Invariant:** a cache that is incomplete, or that
//! another version of the program wrote, is ignored; the cache of another data repo has a different schema
//! context digest, or other file stamps and hashes.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use qontract_files::atomic::{AtomicFile, Durability};
use rayon::prelude::*;

use super::cache::{BuildCache, CacheEntry, CacheState, FileCache, SavedCache};
use super::datafiles::{DatafileContent, Documents, Identity, ParsedDatafile};
use super::facts::{DatafileFacts, ResourceRef};
use super::schemas::{SchemaId, SchemaPatches};
use crate::codec::{Decoder, Encoder};
use crate::digest::Sha256;
use crate::json::JsonParser;
use crate::lazy::{LazyValue, TextSlice};
use crate::load::{BATCH_BYTES, BundlePart, DocumentSplitter, Piece, read_resource};
use crate::model::{Bundle, CommitStamp, Datafile, Document, PathIndex, Pool, Resource};
use crate::repo::{DirCache, FileStamp};

/// Names of the two files.
const INDEX: &str = "index";
const BUNDLE: &str = "bundle.json";

impl BuildCache {
    /// Writes the cache to a directory. `by` identifies the program, because another version may compute
    /// different results from the same files. `written` is a file that already holds the bundle, if there is
    /// one.
    pub fn save(&self, folder: &Path, by: &str, written: Option<&Path>) -> io::Result<()> {
        let (Some(context_digest), Some(bundle)) = (self.context_digest, &self.state.last_bundle) else {
            return Ok(());
        };
        fs::create_dir_all(folder)?;
        // Does not wait for the disk: a file that is incomplete after a crash fails its checksum and is
        // ignored.
        let draft = |name: &str| AtomicFile::private(&folder.join(name), Durability::None);
        let mut file = draft(BUNDLE)?;
        match written.map(fs::File::open) {
            Some(Ok(written)) => file.copy(&written)?,
            _ => bundle.write_to(&mut file)?,
        }
        file.commit()?;
        let Some(index) =
            self.encode_index(&mut fs::File::open(folder.join(BUNDLE))?, context_digest, bundle)
        else {
            return Err(io::Error::other("the written bundle differs from the bundle in memory"));
        };
        let mut file = draft(INDEX)?;
        index.write_with_checksum(by, &mut file)?;
        file.commit()
    }

    /// The path of the index in a cache directory. Its modification time is the time of the last save.
    pub fn index_path(folder: &Path) -> PathBuf {
        folder.join(INDEX)
    }

    /// Reads the cache that the same program saved in `folder`. Returns `self` if the saved cache is missing,
    /// incomplete or from another program.
    #[must_use]
    pub fn restored_from(self, folder: &Path, by: &str, pool: &Pool) -> Self {
        let clock = self.clock;
        Self::read_from_disk(folder, by, pool).map_or(self, |restored| Self { clock, ..restored })
    }

    /// Builds the index of a bundle that was written to this file. `None` if the file has another bundle.
    fn encode_index(&self, file: &mut fs::File, context_digest: Sha256, bundle: &Bundle) -> Option<Encoder> {
        let used = Mutex::default();
        let mut cutter = DocumentSplitter::new(file, BATCH_BYTES, &used);
        let mut index = Encoder::default();
        index.digest(context_digest);
        index.digest(bundle.sha);
        index.text(&bundle.stamp.commit);
        index.text(&bundle.stamp.timestamp);
        for folders in &self.state.folders {
            index.nested(&folders.encode());
        }
        index.list(bundle.datafiles.iter(), |packer, file| packer.text(&file.path));
        let mut batches = Vec::new();
        let mut places = [0; 3];
        while let Some(batch) = cutter.next().ok()? {
            let mut packer = Encoder::default();
            packer.count(cutter.consumed() - batch.text.len());
            packer.count(batch.text.len());
            packer.digest(Sha256::of(batch.text.as_bytes()));
            packer.count(places[BundlePart::Data as usize]);
            for piece in batch.pieces {
                let (part, path, place) = match piece {
                    Piece::Document(part, path, place) => (Some(part), path, place),
                    Piece::Other(key, place) if key == "graphql" => (None, key, place),
                    Piece::Other(..) | Piece::Opened(_) => continue,
                };
                packer.count(part.map_or(GRAPHQL, |part| part as usize));
                packer.count(place.start);
                packer.count(place.end);
                let at = part.map(|part| {
                    let next = &mut places[part as usize];
                    *next += 1;
                    *next - 1
                });
                let document = part.zip(at).map(|(part, index)| DocumentIndex { part, index });
                self.encode_piece(bundle, document, &path, &mut packer)?;
            }
            batches.push(packer);
        }
        (cutter.sha() == bundle.sha).then_some(())?;
        index.nested_list(batches);
        Some(index)
    }

    /// Encodes the cache entry of one document, or of the GraphQL types if there is no index.
    fn encode_piece(
        &self,
        bundle: &Bundle,
        document: Option<DocumentIndex>,
        path: &str,
        packer: &mut Encoder,
    ) -> Option<()> {
        let Some(DocumentIndex { part, index: at }) = document else {
            packer.digest(bundle.graphql.digest);
            return Some(());
        };
        match part {
            BundlePart::Schemas => {
                packer.digest(bundle.schemas.get(at)?.document.digest);
                packer.text(path);
            }
            BundlePart::Resources => {
                let resource = bundle.resources.get(at)?;
                packer.digest(resource.digest);
                packer.text(path);
                let entry = self.state.resources.find_near(at, path).map(|(_, entry)| entry);
                packer.option(entry, |packer, entry| {
                    packer.option(entry.file_stamp, |packer, file_stamp| file_stamp.encode(packer));
                });
            }
            BundlePart::Data => {
                let file = bundle.datafiles.get(at).filter(|file| *file.path == *path)?;
                packer.digest(file.document.digest);
                let entry = self.state.datafiles.find_near(at, path).map(|(_, entry)| entry);
                let entry = entry.filter(|entry| entry.value.findings.is_empty());
                let content = entry.and_then(|entry| Some((entry, entry.value.content.as_ref()?)));
                packer.option(
                    content.filter(|(_, content)| content.is_plain()),
                    |packer, (entry, content)| {
                        packer.option(entry.file_stamp, |packer, file_stamp| file_stamp.encode(packer));
                        encode_facts(packer, content, bundle);
                    },
                );
            }
        }
        Some(())
    }

    fn read_from_disk(folder: &Path, by: &str, pool: &Pool) -> Option<Self> {
        let index = fs::read(Self::index_path(folder)).ok()?;
        let mut index = Decoder::open(&index, by)?;
        let (context_digest, sha) = (index.digest()?, index.digest()?);
        let stamp = CommitStamp { commit: index.text()?.to_owned(), timestamp: index.text()?.to_owned() };
        let folders = [index.nested()?, index.nested()?];
        let paths: Vec<Arc<str>> = index.list(|index| index.text().map(Arc::from))?;
        let batches: Vec<Decoder<'_>> = index.list(Decoder::nested)?;
        let restoring = Restorer { file: &folder.join(BUNDLE), paths: &paths, pool };
        let batches = batches.into_par_iter().map(|batch| restoring.restore_batch(batch));
        let [of_data, of_resources] = folders;
        let unpack = || Some([DirCache::decode(of_data)?, DirCache::decode(of_resources)?]);
        let (batches, folders) = rayon::join(|| batches.collect::<Option<Vec<_>>>(), unpack);
        let (batches, folders) = (batches?, folders?);
        let mut all = RestoredBatch::default();
        for batch in batches {
            all.append(batch);
        }
        let RestoredBatch { datafiles, resources, schemas, graphql, known } = all;
        let files = datafiles.len() + resources.len();
        let last = Bundle {
            sha,
            stamp,
            datafiles,
            graphql: graphql?,
            resources,
            schemas,
            path_index: PathIndex::default(),
            context_digest: Some(context_digest),
        };
        let (datafiles, resources) = (FileCache::new(known.datafiles), FileCache::new(known.resources));
        Some(Self {
            context_digest: Some(context_digest),
            state: CacheState { datafiles, resources, folders, last_bundle: Some(last), base: None },
            saved: Some(SavedCache { context_digest, files }),
            ..Self::default()
        })
    }
}

/// Tags of documents in the index: a part, or the GraphQL types.
const DATA: usize = BundlePart::Data as usize;
const RESOURCES: usize = BundlePart::Resources as usize;
const SCHEMAS: usize = BundlePart::Schemas as usize;
const GRAPHQL: usize = 3;

/// Cache entries of a part, by path.
type FileEntries<T> = Vec<(Arc<str>, CacheEntry<T>)>;

/// A piece of a bundle, with the cache entries of its files.
#[derive(Default)]
struct RestoredBatch {
    datafiles: Vec<Datafile>,
    resources: Vec<Arc<Resource>>,
    schemas: Vec<Datafile>,
    graphql: Option<Arc<Document>>,
    known: RestoredEntries,
}

/// Cache entries of datafiles and of resources.
#[derive(Default)]
struct RestoredEntries {
    datafiles: FileEntries<ParsedDatafile>,
    resources: FileEntries<Resource>,
}

/// Context for restoring batches of the bundle in parallel.
struct Restorer<'a> {
    file: &'a Path,
    /// The paths of all datafiles.
    paths: &'a [Arc<str>],
    pool: &'a Pool,
}

impl Restorer<'_> {
    fn restore_batch(&self, mut index: Decoder<'_>) -> Option<RestoredBatch> {
        let mut restored = RestoredBatch::default();
        let (start, length, digest) = (index.count()? as u64, index.count()?, index.digest()?);
        let mut paths = self.paths.get(index.count()?..)?.iter();
        let mut file = fs::File::open(self.file).ok()?;
        if file.metadata().ok()?.len() < start.checked_add(length as u64)? {
            return None;
        }
        let mut text = vec![0; length];
        file.seek(SeekFrom::Start(start)).ok()?;
        file.read_exact(&mut text).ok()?;
        if Sha256::of(&text) != digest {
            return None;
        }
        let all = Arc::new(String::from_utf8(text).ok()?);
        let mut reader = JsonParser::new("");
        while !index.is_empty() {
            let part = index.count()?;
            let place = index.count()?..index.count()?;
            let digest = index.digest()?;
            let text = all.get(place.clone())?;
            let document = || {
                let text = TextSlice { buffer: Arc::clone(&all), range: place.clone() };
                self.pool.lazy_document(digest, || Ok::<_, ()>(LazyValue::from_text(text))).ok()
            };
            match part {
                DATA => {
                    let (path, document) = (Arc::clone(paths.next()?), document()?);
                    if let Some(entry) = index.option(|index| self.restore_datafile(index, &document))? {
                        restored.known.datafiles.push((Arc::clone(&path), entry));
                    }
                    restored.datafiles.push(Datafile { path, document });
                }
                RESOURCES => {
                    let path = index.text()?;
                    let mut read = || read_resource(path, reader.parse_text(text).ok()?.as_map()?, digest);
                    let what = self.pool.resource(digest, || read().ok_or(())).ok()?;
                    if let Some(file_stamp) = index.option(|index| index.option(FileStamp::decode))? {
                        let content_sha = Sha256::parse(&what.sha256sum)?;
                        let entry = CacheEntry { file_stamp, content_sha, value: Arc::clone(&what) };
                        restored.known.resources.push((Arc::from(path), entry));
                    }
                    restored.resources.push(what);
                }
                SCHEMAS => {
                    restored.schemas.push(Datafile { path: Arc::from(index.text()?), document: document()? });
                }
                GRAPHQL => restored.graphql = Some(document()?),
                _ => return None,
            }
        }
        Some(restored)
    }

    /// Decodes the cache entry of a datafile.
    fn restore_datafile(
        &self,
        index: &mut Decoder<'_>,
        document: &Arc<Document>,
    ) -> Option<CacheEntry<ParsedDatafile>> {
        let id = |index: &mut Decoder<'_>| {
            let mut number = || u32::try_from(index.count()?).ok();
            Some(SchemaId::from([number()?, number()?]))
        };
        let listed = |index: &mut Decoder<'_>| match index.option(Decoder::count)? {
            Some(place) => self.paths.get(place).map(Arc::clone),
            None => index.text().map(Arc::from),
        };
        let file_stamp = index.option(FileStamp::decode)?;
        let identity = index.option(|index| index.option(|index| index.option(id)))?;
        let text = |index: &mut Decoder<'_>| index.text().map(str::to_owned);
        let facts = DatafileFacts {
            backrefs: index
                .list(|index| Some(ResourceRef { resource: text(index)?, jsonpath: text(index)? }))?,
            listed: index.list(listed)?,
            patches: SchemaPatches { properties: index.list(id)?, roots: index.list(id)? },
        };
        let [sum, schema, identifier] =
            document.value.strings(["$file_sha256sum", "$schema", "__identifier"]);
        let (content_sha, schema) = (Sha256::parse(&sum?)?, schema.filter(|schema| !schema.is_empty()));
        let documents = Documents::default();
        let _ = documents.cell(identifier.is_some()).set(Arc::clone(document));
        let identity = match (identity, identifier) {
            (Some(Some(properties)), Some(identifier)) => {
                OnceLock::from(Some(Identity { identifier: identifier.into(), properties }))
            }
            (Some(None), None) => OnceLock::from(None),
            // The identity was not computed, or the datafile is no longer listed.
            _ => OnceLock::new(),
        };
        let content = DatafileContent { value: None, schema, facts, identity, documents };
        Some(CacheEntry {
            file_stamp,
            content_sha,
            value: Arc::new(ParsedDatafile { content: Some(content), findings: Vec::new() }),
        })
    }
}

impl RestoredBatch {
    fn append(&mut self, mut other: Self) {
        self.datafiles.append(&mut other.datafiles);
        self.resources.append(&mut other.resources);
        self.schemas.append(&mut other.schemas);
        self.graphql = self.graphql.take().or(other.graphql);
        self.known.datafiles.append(&mut other.known.datafiles);
        self.known.resources.append(&mut other.known.resources);
    }
}

/// The index of a document in a part of a bundle.
#[derive(Clone, Copy)]
struct DocumentIndex {
    part: BundlePart,
    index: usize,
}

/// Encodes the facts of a datafile, and the schema position its identifier depends on.
fn encode_facts(packer: &mut Encoder, content: &DatafileContent, bundle: &Bundle) {
    let DatafileFacts { backrefs, listed, patches: SchemaPatches { properties, roots } } = &content.facts;
    let id = |packer: &mut Encoder, id: &SchemaId| {
        for number in id.numbers() {
            packer.count(number as usize);
        }
    };
    packer.option(content.identity.get(), |packer, identity| {
        packer.option(identity.as_ref(), |packer, identity| packer.option(identity.properties.as_ref(), id));
    });
    packer.list(backrefs.iter(), |packer, ResourceRef { resource, jsonpath }| {
        packer.text(resource);
        packer.text(jsonpath);
    });
    packer.list(listed.iter(), |packer, path| {
        let place = bundle.index_of(path);
        packer.option(place, Encoder::count);
        if place.is_none() {
            packer.text(path);
        }
    });
    for ids in [properties, roots] {
        packer.list(ids.iter(), id);
    }
}
