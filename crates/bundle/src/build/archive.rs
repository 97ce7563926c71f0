//! What a build remembers, on disk: for the next process.
//!
//! A folder holds the last bundle and an index: how each file looked, and what the walk over it found. The rest is in
//! the bundle itself. **Invariant:** what was not written whole, by this program and for this data repo, is as good as nothing.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::Patches;
use super::datafiles::{Read, Said};
use super::facts::Facts;
use super::memory::{Kept, Known, Memory, Recollection};
use super::schemas::SchemaId;
use crate::digest::Sha256;
use crate::json::{Reader, write_python};
use crate::load::load_from;
use crate::model::{Bundle, Datafile, Pool, Resource};
use crate::repo::Sight;
use crate::value::{Map, Value};

/// The names of the two files.
const INDEX: &str = "index.json";
const BUNDLE: &str = "bundle.json";

impl Memory {
    /// Writes down what it remembers; `by` names the program, as another one may make something else of the same files. `written` is where
    /// the bundle was written before, if it was.
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
        let mut index = Vec::new();
        write_python(&self.index(by, ground, bundle), &mut index);
        replace(folder, INDEX, |out| {
            out.write_all(format!("{}\n", Sha256::of(&index)).as_bytes())?;
            out.write_all(&index)
        })
    }

    /// What the same program has written down there, if it is whole; nothing is remembered otherwise.
    #[must_use]
    pub fn restored(self, folder: &Path, by: &str, pool: &Pool) -> Self {
        let clock = self.clock;
        Self::read_down(folder, by, pool).map_or(self, |restored| Self { clock, ..restored })
    }

    fn read_down(folder: &Path, by: &str, pool: &Pool) -> Option<Self> {
        let (index, bundle) = rayon::join(
            || read_index(&folder.join(INDEX), by),
            || load_from(&mut fs::File::open(folder.join(BUNDLE)).ok()?, pool).ok(),
        );
        let (index, bundle) = (index?, bundle?);
        let ground = Sha256::parse(index.get("ground")?.as_str()?)?;
        let is_of_it = index.get("bundle")?.as_str()? == bundle.sha().to_string();
        let datafiles = datafiles(&bundle, index.get("datafiles")?.as_list()?)?;
        let resources = resources(&bundle, index.get("resources")?.as_list()?)?;
        let saved = bundle.datafiles().len() + bundle.resources().len();
        is_of_it.then(|| Self {
            ground: Some(ground),
            known: Recollection { datafiles, resources, last: Some(bundle), whole: None },
            saved: Some((ground, saved)),
            ..Self::default()
        })
    }

    fn index(&self, by: &str, ground: Sha256, bundle: &Bundle) -> Value {
        let place = |path: &str| bundle.place(path).and_then(|place| i64::try_from(place).ok());
        let datafile = |(at, file): (usize, &Datafile)| {
            let (_, kept) = self.known.datafiles.about(at, &file.path)?;
            let said =
                kept.what.said.as_ref().filter(|said| kept.what.findings.is_empty() && said.is_plain())?;
            let identified = file.document.value.get("__identifier").is_some();
            let properties = said.identified.get().cloned().flatten().and_then(|(_, properties)| properties);
            let Facts { backrefs, listed, patches } = &said.facts;
            let listed = listed.iter().map(|path| place(path).map_or_else(|| Value::str(path), Value::Int));
            let backrefs =
                backrefs.iter().flat_map(|(path, jsonpath)| [Value::str(path), Value::str(jsonpath)]);
            Some(list([
                sight(kept.sight),
                Value::Bool(identified),
                ids(properties.as_ref()),
                list(backrefs),
                list(listed),
                ids(&patches.properties),
                ids(&patches.roots),
            ]))
        };
        let datafiles = bundle.datafiles().iter().enumerate();
        let datafiles = datafiles.map(|file| datafile(file).unwrap_or(Value::Null));
        let resource = |(at, file): (usize, &Arc<Resource>)| {
            self.known.resources.about(at, &file.path).map(|(_, kept)| sight(kept.sight))
        };
        let resources = bundle.resources().iter().enumerate();
        let resources = resources.map(|file| resource(file).unwrap_or(Value::Null));
        Value::Map(Map::new(vec![
            ("by", Value::str(by)),
            ("ground", Value::str(&ground.to_string())),
            ("bundle", Value::str(&bundle.sha().to_string())),
            ("datafiles", list(datafiles)),
            ("resources", list(resources)),
        ]))
    }
}

fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(values.into_iter().collect())
}

/// Writes a file whole, or not at all. Nobody waits until it is on the disk: what is not whole is as good as nothing.
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

fn sight(sight: Option<Sight>) -> Value {
    let Some(Sight { place, size, times }) = sight else { return Value::Bool(false) };
    let numbers = [place.0.cast_signed(), place.1.cast_signed(), size.cast_signed(), times.0, times.1];
    list(numbers.map(Value::Int))
}

/// How a file looked, if that tells anything.
fn read_sight(value: &Value) -> Option<Sight> {
    let [Value::Int(device), Value::Int(number), Value::Int(size), Value::Int(written), Value::Int(changed)] =
        value.as_list()?
    else {
        return None;
    };
    Some(Sight {
        place: (device.cast_unsigned(), number.cast_unsigned()),
        size: size.cast_unsigned(),
        times: (*written, *changed),
    })
}

fn ids<'a>(ids: impl IntoIterator<Item = &'a SchemaId>) -> Value {
    list(ids.into_iter().flat_map(|id| id.numbers().map(|number| Value::Int(number.into()))))
}

fn read_ids(value: &Value) -> Option<Vec<SchemaId>> {
    let number = |value: &Value| match value {
        Value::Int(number) => u32::try_from(*number).ok(),
        _ => None,
    };
    let pairs = value.as_list()?.chunks(2);
    pairs.map(|pair| Some(SchemaId::from([number(&pair[0])?, number(pair.get(1)?)?]))).collect()
}

/// The index, if it is whole and by the same program.
fn read_index(file: &Path, by: &str) -> Option<Value> {
    let text = fs::read_to_string(file).ok()?;
    let (sum, index) = text.split_once('\n')?;
    if Sha256::of(index.as_bytes()).to_string() != sum {
        return None;
    }
    let index = Reader::new(index).whole().ok()?;
    (index.get("by")?.as_str()? == by).then_some(index)
}

fn datafiles(bundle: &Bundle, entries: &[Value]) -> Option<Known<Read>> {
    if entries.len() != bundle.datafiles().len() {
        return None;
    }
    let known = bundle.datafiles().par_iter().zip(entries).filter(|(_, entry)| **entry != Value::Null);
    let known = known.map(|(file, entry)| Some((Arc::clone(&file.path), datafile(bundle, file, entry)?)));
    known.collect::<Option<Vec<_>>>().map(Known::new)
}

fn datafile(bundle: &Bundle, file: &Datafile, entry: &Value) -> Option<Kept<Read>> {
    let [looked, identified, properties, backrefs, listed, patches, roots] = entry.as_list()? else {
        return None;
    };
    let value = &file.document.value;
    let sum = Sha256::parse(value.get("$file_sha256sum")?.as_str()?)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let backrefs = backrefs.as_list()?.chunks(2);
    let backrefs = backrefs.map(|pair| Some((text(&pair[0])?, text(pair.get(1)?)?)));
    let listed = listed.as_list()?.iter().map(|one| match one {
        Value::Int(place) => Some((*bundle.datafiles().get(usize::try_from(*place).ok()?)?.path).into()),
        other => other.as_str().map(Into::into),
    });
    let facts = Facts {
        backrefs: backrefs.collect::<Option<_>>()?,
        listed: listed.collect::<Option<_>>()?,
        patches: Patches {
            properties: read_ids(patches)?.into_iter().collect(),
            roots: read_ids(roots)?.into_iter().collect(),
        },
    };
    let schema = file.document.schema().filter(|schema| !schema.is_empty()).map(str::to_owned);
    let document = OnceLock::from(Arc::clone(&file.document));
    let said = if identified.is_true() {
        let properties = read_ids(properties)?.pop();
        let plain = Value::Map(value.as_map()?.without("__identifier"));
        let identified = OnceLock::from(Some((value.clone(), properties)));
        Said { value: plain, schema, facts, identified, documents: [OnceLock::new(), document] }
    } else {
        let documents = [document, OnceLock::new()];
        Said { value: value.clone(), schema, facts, identified: OnceLock::new(), documents }
    };
    let what = Arc::new(Read { said: Some(said), findings: Vec::new() });
    Some(Kept { sight: read_sight(looked), sum, what })
}

fn resources(bundle: &Bundle, entries: &[Value]) -> Option<Known<Resource>> {
    if entries.len() != bundle.resources().len() {
        return None;
    }
    let mut known = Vec::with_capacity(entries.len());
    for (resource, entry) in bundle.resources().iter().zip(entries) {
        if *entry == Value::Null {
            continue;
        }
        let (sight, sum) = (read_sight(entry), Sha256::parse(&resource.sha256sum)?);
        known.push((Arc::from(&*resource.path), Kept { sight, sum, what: Arc::clone(resource) }));
    }
    Some(Known::new(known))
}
