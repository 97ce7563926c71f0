//! On-disk build cache: lets the next process start from the results of this one.
//!
//! A directory holds the last bundle and an index. The index has, for each document, its position in the
//! bundle, the file stamp of its file, and the facts collected by the walk. The values themselves are in the
//! bundle, and most of them are copied, not parsed. **Invariant:** a cache that was not written completely,
//! or by another version of the program, is ignored; one of another data repo has another schema context
//! digest, or other file stamps and hashes.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rayon::prelude::*;

use super::Patches;
use super::datafiles::{Identity, Read, Said};
use super::facts::Facts;
use super::memory::{Kept, Known, Memory, Recollection};
use super::schemas::SchemaId;
use crate::digest::Sha256;
use crate::json::Reader;
use crate::later::{Later, Text};
use crate::load::{BATCH, Cutter, Part, Piece, read_resource};
use crate::model::{Bundle, ByPath, Datafile, Document, Pool, Resource, Stamp};
use crate::packed::{Packer, Unpacker};
use crate::repo::{Folders, Sight};

/// Names of the two files.
const INDEX: &str = "index";
const BUNDLE: &str = "bundle.json";

impl Memory {
    /// Writes the cache to a directory. `by` identifies the program, because another version may compute
    /// different results from the same files. `written` is a file that already holds the bundle, if there is
    /// one.
    pub fn save(&self, folder: &Path, by: &str, written: Option<&Path>) -> io::Result<()> {
        let (Some(ground), Some(bundle)) = (self.ground, &self.known.last) else { return Ok(()) };
        fs::create_dir_all(folder)?;
        replace(folder, BUNDLE, |out| {
            if let Some(Ok(mut file)) = written.map(fs::File::open) {
                return io::copy(&mut file, out).map(drop);
            }
            let mut out = io::BufWriter::with_capacity(1 << 20, out);
            bundle.write_to(&mut out)?;
            out.flush()
        })?;
        let Some(index) = self.index(&mut fs::File::open(folder.join(BUNDLE))?, ground, bundle) else {
            return Err(io::Error::other("the written bundle differs from the bundle in memory"));
        };
        replace(folder, INDEX, |out| index.write_sealed(by, out))
    }

    /// The path of the index in a cache directory. Its modification time is the time of the last save.
    pub fn index_in(folder: &Path) -> PathBuf {
        folder.join(INDEX)
    }

    /// Reads the cache that the same program saved in `folder`. Returns `self` if it is missing, incomplete
    /// or from another program.
    #[must_use]
    pub fn restored(self, folder: &Path, by: &str, pool: &Pool) -> Self {
        let clock = self.clock;
        Self::read_down(folder, by, pool).map_or(self, |restored| Self { clock, ..restored })
    }

    /// Builds the index of a bundle that was written to this file. `None` if the file has another bundle.
    fn index(&self, file: &mut fs::File, ground: Sha256, bundle: &Bundle) -> Option<Packer> {
        let used = Mutex::default();
        let mut cutter = Cutter::new(file, BATCH, &used);
        let mut index = Packer::default();
        index.digest(ground);
        index.digest(bundle.sha);
        index.text(&bundle.stamp.commit);
        index.text(&bundle.stamp.timestamp);
        for folders in &self.known.folders {
            index.packed(&folders.packed());
        }
        index.list(bundle.datafiles.iter(), |packer, file| packer.text(&file.path));
        let mut batches = Vec::new();
        let mut places = [0; 3];
        while let Some(batch) = cutter.next().ok()? {
            let mut packer = Packer::default();
            packer.count(cutter.given() - batch.text.len());
            packer.count(batch.text.len());
            packer.digest(Sha256::of(batch.text.as_bytes()));
            packer.count(places[Part::Data as usize]);
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
                self.piece(bundle, part.zip(at), &path, &mut packer)?;
            }
            batches.push(packer);
        }
        (cutter.sha() == bundle.sha).then_some(())?;
        index.packed_list(batches);
        Some(index)
    }

    /// Encodes the cache entry of one document: the GraphQL types if `at` is `None`, else the document at an
    /// index of a part.
    fn piece(
        &self,
        bundle: &Bundle,
        at: Option<(Part, usize)>,
        path: &str,
        packer: &mut Packer,
    ) -> Option<()> {
        match at {
            None => packer.digest(bundle.graphql.digest),
            Some((Part::Schemas, at)) => {
                packer.digest(bundle.schemas.get(at)?.document.digest);
                packer.text(path);
            }
            Some((Part::Resources, at)) => {
                let resource = bundle.resources.get(at)?;
                packer.digest(resource.digest);
                packer.text(path);
                let kept = self.known.resources.about(at, path).map(|(_, kept)| kept);
                packer.option(kept, |packer, kept| {
                    packer.option(kept.sight, |packer, sight| sight.pack(packer));
                });
            }
            Some((Part::Data, at)) => {
                let file = bundle.datafiles.get(at).filter(|file| *file.path == *path)?;
                packer.digest(file.document.digest);
                let kept = self.known.datafiles.about(at, path).map(|(_, kept)| kept);
                let kept = kept.filter(|kept| kept.what.findings.is_empty());
                let said = kept.and_then(|kept| Some((kept, kept.what.said.as_ref()?)));
                packer.option(said.filter(|(_, said)| said.is_plain()), |packer, (kept, said)| {
                    packer.option(kept.sight, |packer, sight| sight.pack(packer));
                    facts(packer, said, bundle);
                });
            }
        }
        Some(())
    }

    fn read_down(folder: &Path, by: &str, pool: &Pool) -> Option<Self> {
        let index = fs::read(Self::index_in(folder)).ok()?;
        let mut index = Unpacker::open(&index, by)?;
        let (ground, sha) = (index.digest()?, index.digest()?);
        let stamp = Stamp { commit: index.text()?.to_owned(), timestamp: index.text()?.to_owned() };
        let folders = [index.packed()?, index.packed()?];
        let paths: Vec<Arc<str>> = index.list(|index| index.text().map(Arc::from))?;
        let batches: Vec<Unpacker<'_>> = index.list(Unpacker::packed)?;
        let restoring = Restoring { file: &folder.join(BUNDLE), paths: &paths, pool };
        let batches = batches.into_par_iter().map(|batch| restoring.batch(batch));
        let [of_data, of_resources] = folders;
        let unpack = || Some([Folders::unpack(of_data)?, Folders::unpack(of_resources)?]);
        let (batches, folders) = rayon::join(|| batches.collect::<Option<Vec<_>>>(), unpack);
        let (batches, folders) = (batches?, folders?);
        let mut all = Restored::default();
        for batch in batches {
            all.append(batch);
        }
        let Restored { datafiles, resources, schemas, graphql, known } = all;
        let saved = datafiles.len() + resources.len();
        let (graphql, places) = (graphql?, ByPath::default());
        let last = Some(Bundle { sha, stamp, datafiles, graphql, resources, schemas, places });
        let (datafiles, resources) = (Known::new(known.0), Known::new(known.1));
        Some(Self {
            ground: Some(ground),
            known: Recollection { datafiles, resources, folders, last, whole: None },
            saved: Some((ground, saved)),
            ..Self::default()
        })
    }
}

/// Tags of documents in the index: a part, or the GraphQL types.
const DATA: usize = Part::Data as usize;
const RESOURCES: usize = Part::Resources as usize;
const SCHEMAS: usize = Part::Schemas as usize;
const GRAPHQL: usize = 3;

/// Cache entries of a part, by path.
type Files<T> = Vec<(Arc<str>, Kept<T>)>;

/// A piece of a bundle, with the cache entries of its files.
#[derive(Default)]
struct Restored {
    datafiles: Vec<Datafile>,
    resources: Vec<Arc<Resource>>,
    schemas: Vec<Datafile>,
    graphql: Option<Arc<Document>>,
    known: (Files<Read>, Files<Resource>),
}

/// Context for restoring batches of the bundle in parallel.
struct Restoring<'a> {
    file: &'a Path,
    /// The paths of all datafiles.
    paths: &'a [Arc<str>],
    pool: &'a Pool,
}

impl Restoring<'_> {
    fn batch(&self, mut index: Unpacker<'_>) -> Option<Restored> {
        let mut restored = Restored::default();
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
        let mut reader = Reader::new("");
        while !index.is_empty() {
            let part = index.count()?;
            let place = index.count()?..index.count()?;
            let digest = index.digest()?;
            let text = all.get(place.clone())?;
            let document = || {
                let text = Text { all: Arc::clone(&all), place: place.clone() };
                self.pool.later(digest, || Ok::<_, ()>(Later::of(text))).ok()
            };
            match part {
                DATA => {
                    let (path, document) = (Arc::clone(paths.next()?), document()?);
                    if let Some(kept) = index.option(|index| self.datafile(index, &document))? {
                        restored.known.0.push((Arc::clone(&path), kept));
                    }
                    restored.datafiles.push(Datafile { path, document });
                }
                RESOURCES => {
                    let path = index.text()?;
                    let mut read = || read_resource(path, reader.again(text).ok()?.as_map()?, digest);
                    let what = self.pool.resource(digest, || read().ok_or(())).ok()?;
                    if let Some(sight) = index.option(|index| index.option(Sight::unpack))? {
                        let sum = Sha256::parse(&what.sha256sum)?;
                        let kept = Kept { sight, sum, what: Arc::clone(&what) };
                        restored.known.1.push((Arc::from(path), kept));
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
    fn datafile(&self, index: &mut Unpacker<'_>, document: &Arc<Document>) -> Option<Kept<Read>> {
        let id = |index: &mut Unpacker<'_>| {
            let mut number = || u32::try_from(index.count()?).ok();
            Some(SchemaId::from([number()?, number()?]))
        };
        let listed = |index: &mut Unpacker<'_>| match index.option(Unpacker::count)? {
            Some(place) => self.paths.get(place).map(Arc::clone),
            None => index.text().map(Arc::from),
        };
        let sight = index.option(Sight::unpack)?;
        let identity = index.option(|index| index.option(|index| index.option(id)))?;
        let text = |index: &mut Unpacker<'_>| index.text().map(str::to_owned);
        let facts = Facts {
            backrefs: index.list(|index| Some((text(index)?, text(index)?)))?,
            listed: index.list(listed)?,
            patches: Patches { properties: index.list(id)?, roots: index.list(id)? },
        };
        let [sum, schema, identifier] = document.value.texts(["$file_sha256sum", "$schema", "__identifier"]);
        let (sum, schema) = (Sha256::parse(&sum?)?, schema.filter(|schema| !schema.is_empty()));
        let documents = <[OnceLock<_>; 2]>::default();
        let _ = documents[usize::from(identifier.is_some())].set(Arc::clone(document));
        let identity = match (identity, identifier) {
            (Some(Some(properties)), Some(identifier)) => {
                OnceLock::from(Some(Identity { identifier: identifier.into(), properties }))
            }
            (Some(None), None) => OnceLock::from(None),
            // The identity was not computed, or the datafile is no longer listed.
            _ => OnceLock::new(),
        };
        let said = Said { value: None, schema, facts, identity, documents };
        Some(Kept { sight, sum, what: Arc::new(Read { said: Some(said), findings: Vec::new() }) })
    }
}

impl Restored {
    fn append(&mut self, mut other: Self) {
        self.datafiles.append(&mut other.datafiles);
        self.resources.append(&mut other.resources);
        self.schemas.append(&mut other.schemas);
        self.graphql = self.graphql.take().or(other.graphql);
        self.known.0.append(&mut other.known.0);
        self.known.1.append(&mut other.known.1);
    }
}

/// Replaces a file atomically, without waiting for the disk: a file that is incomplete after a crash fails
/// its checksum and is ignored.
fn replace(
    folder: &Path,
    name: &str,
    content: impl FnOnce(&mut fs::File) -> io::Result<()>,
) -> io::Result<()> {
    let mut draft = tempfile::Builder::new().prefix(".draft-").tempfile_in(folder)?;
    content(draft.as_file_mut())?;
    draft.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

/// Encodes the facts of a datafile, and the schema position its identifier depends on.
fn facts(packer: &mut Packer, said: &Said, bundle: &Bundle) {
    let Facts { backrefs, listed, patches: Patches { properties, roots } } = &said.facts;
    let id = |packer: &mut Packer, id: &SchemaId| {
        for number in id.numbers() {
            packer.count(number as usize);
        }
    };
    packer.option(said.identity.get(), |packer, identity| {
        packer.option(identity.as_ref(), |packer, identity| packer.option(identity.properties.as_ref(), id));
    });
    packer.list(backrefs.iter(), |packer, (path, jsonpath)| {
        packer.text(path);
        packer.text(jsonpath);
    });
    packer.list(listed.iter(), |packer, path| {
        let place = bundle.place(path);
        packer.option(place, Packer::count);
        if place.is_none() {
            packer.text(path);
        }
    });
    for ids in [properties, roots] {
        packer.list(ids.iter(), id);
    }
}
