//! What a build remembers, on disk: for the next process.
//!
//! A folder holds the last bundle, by its sha, and an index: how each file looked, and what the walk over it found. The rest is in
//! the bundle itself. **Invariant:** what was not written whole, by this program and for this data repo, is as good as nothing.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::Patches;
use super::datafiles::{Read, Said};
use super::facts::Facts;
use super::memory::{Kept, Known, Memory};
use super::schemas::SchemaId;
use crate::digest::Sha256;
use crate::json::{Reader, write_python};
use crate::load::load_from;
use crate::model::{Bundle, Pool};
use crate::repo::Sight;
use crate::value::{Map, Value};

/// The name of the index; the bundle beside it is called by its sha.
const INDEX: &str = "index.json";

impl Memory {
    /// Writes down what it remembers; `by` names the program, as another one may make something else of the same files.
    pub fn save(&self, folder: &Path, by: &str) -> io::Result<()> {
        let (Some(ground), Some(bundle)) = (self.ground, &self.last) else { return Ok(()) };
        fs::create_dir_all(folder)?;
        let name = format!("{}.json", bundle.sha());
        replace(folder, &name, |out| bundle.write_to(out))?;
        let mut index = Vec::new();
        write_python(&self.index(by, ground, bundle), &mut index);
        replace(folder, INDEX, |out| {
            writeln!(out, "{}", Sha256::of(&index))?;
            out.write_all(&index)
        })?;
        for entry in fs::read_dir(folder)?.flatten() {
            let is_old = entry.file_name().to_str().is_some_and(|other| {
                other.strip_suffix(".json").is_some_and(|sha| Sha256::parse(sha).is_some()) && other != name
            });
            if is_old {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// What the same program has written down there, if it is whole; nothing is remembered otherwise.
    #[must_use]
    pub fn restored(self, folder: &Path, by: &str, pool: &Pool) -> Self {
        let clock = self.clock;
        Self::read_down(folder, by, pool).map_or(self, |restored| Self { clock, ..restored })
    }

    fn read_down(folder: &Path, by: &str, pool: &Pool) -> Option<Self> {
        let text = fs::read_to_string(folder.join(INDEX)).ok()?;
        let (sum, index) = text.split_once('\n')?;
        if Sha256::of(index.as_bytes()).to_string() != sum {
            return None;
        }
        let index = Reader::new(index).whole().ok()?;
        if index.get("by")?.as_str()? != by {
            return None;
        }
        let sha = index.get("bundle")?.as_str()?;
        let bundle = load_from(&mut fs::File::open(folder.join(format!("{sha}.json"))).ok()?, pool).ok()?;
        let is_whole = bundle.sha().to_string() == sha;
        let ground = Sha256::parse(index.get("ground")?.as_str()?)?;
        let datafiles = datafiles(&bundle, index.get("datafiles")?.as_list()?)?;
        let resources = resources(&bundle, index.get("resources")?.as_list()?)?;
        let saved = bundle.datafiles().len() + bundle.resources().len();
        is_whole.then(|| Self {
            ground: Some(ground),
            datafiles,
            resources,
            last: Some(bundle),
            saved: Some((ground, saved)),
            ..Self::default()
        })
    }

    fn index(&self, by: &str, ground: Sha256, bundle: &Bundle) -> Value {
        let place = |path: &str| bundle.place(path).and_then(|place| i64::try_from(place).ok());
        let datafile = |path: &str| {
            let kept = self.datafiles.get(path)?;
            let said =
                kept.what.said.as_ref().filter(|said| kept.what.findings.is_empty() && said.is_plain())?;
            let identified = said.documents[1].get().is_some();
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
        let datafiles = bundle.datafiles().iter().map(|file| datafile(&file.path).unwrap_or(Value::Null));
        let resource = |path: &str| self.resources.get(path).map(|kept| sight(kept.sight));
        let resources = bundle.resources().iter().map(|file| resource(&file.path).unwrap_or(Value::Null));
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
    content: impl FnOnce(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let mut draft = tempfile::Builder::new().prefix(".draft-").tempfile_in(folder)?;
    let mut out = io::BufWriter::with_capacity(1 << 20, draft.as_file_mut());
    content(&mut out)?;
    out.flush()?;
    drop(out);
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

fn datafiles(bundle: &Bundle, entries: &[Value]) -> Option<Known<Read>> {
    if entries.len() != bundle.datafiles().len() {
        return None;
    }
    let mut known = Known::default();
    known.reserve(entries.len());
    for (file, entry) in bundle.datafiles().iter().zip(entries) {
        let Value::List(entry) = entry else { continue };
        let [looked, identified, properties, backrefs, listed, patches, roots] = &**entry else {
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
        known.insert(file.path.to_string(), Kept { sight: read_sight(looked), sum, what });
    }
    Some(known)
}

fn resources(bundle: &Bundle, entries: &[Value]) -> Option<Known<crate::model::Resource>> {
    if entries.len() != bundle.resources().len() {
        return None;
    }
    let mut known = Known::default();
    known.reserve(entries.len());
    for (resource, entry) in bundle.resources().iter().zip(entries) {
        if *entry == Value::Null {
            continue;
        }
        let (sight, sum) = (read_sight(entry), Sha256::parse(&resource.sha256sum)?);
        known.insert(resource.path.to_string(), Kept { sight, sum, what: Arc::clone(resource) });
    }
    Some(known)
}
