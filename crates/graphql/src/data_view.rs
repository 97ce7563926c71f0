//! A bundle with its lookup tables: reads the keys of objects, and follows references.

use qontract_bundle::{Bundle, Map, Value, json::JavaScriptWriter};

use crate::index::Index;
use crate::input::{Input, entries};
use crate::source::{FileId, ListSource, RawValue, ResolvedValue, Source};

/// A bundle with its lookup tables.
#[derive(Clone, Copy, Debug)]
pub struct DataView<'a> {
    /// The bundle.
    pub bundle: &'a Bundle,
    /// The lookup tables.
    pub index: &'a Index,
}

/// The reason why a value cannot be resolved. The messages are those of qontract-server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// The value is an explicit `null`.
    #[error("Cannot read properties of null (reading 'constructor')")]
    Null,
    /// A reference points to a position inside a datafile.
    #[error("Invalid JSON pointer.")]
    Pointer,
}

impl<'a> DataView<'a> {
    /// The datafile at `path`.
    pub fn file(&self, path: &str) -> Option<FileId> {
        self.bundle.index_of(path).and_then(|place| FileId::try_from(place).ok())
    }

    /// The raw value of `key` in `source`. In a datafile, the value of the key `path` is the path of the
    /// datafile.
    pub fn raw(&self, source: Source<'a>, key: &str) -> RawValue<'a> {
        let found = match source {
            Source::File(file) if key == "path" => {
                return RawValue::Text(self.index.path(file));
            }
            Source::File(file) => self.index.root(file).and_then(|map| map.get(key)),
            Source::Value(value) => value.get(key),
            Source::Resource(id) => {
                let resource = &*self.bundle.resources()[id as usize];
                return match key {
                    "path" => RawValue::Text(&resource.path),
                    "content" => RawValue::Text(&resource.content),
                    "sha256sum" => RawValue::Text(&resource.sha256sum),
                    "$schema" => resource.schema.as_deref().map_or(RawValue::Absent, RawValue::Text),
                    "backrefs" => RawValue::Backrefs(&resource.backrefs),
                    _ => RawValue::Absent,
                };
            }
            Source::Backref(backref) => {
                return match key {
                    "path" => RawValue::Text(&backref.path),
                    "datafileSchema" => RawValue::Text(&backref.datafile_schema),
                    "jsonpath" => RawValue::Text(&backref.jsonpath),
                    _ => RawValue::Absent,
                };
            }
            Source::Root | Source::Meta(_) | Source::Text(_) | Source::Flag(_) | Source::Opaque => None,
        };
        found.map_or(RawValue::Absent, RawValue::Value)
    }

    /// The map that contains the keys of `source`.
    pub fn map(&self, source: Source<'a>) -> Option<&'a Map> {
        match source {
            Source::File(file) => self.index.root(file),
            Source::Value(value) => value.as_map(),
            _ => None,
        }
    }

    /// Resolves the value of a key: follows a reference, or every element of a list that contains only
    /// references.
    pub fn follow(&self, raw: RawValue<'a>) -> Result<ResolvedValue<'a>, FollowError> {
        let value = match raw {
            RawValue::Absent => return Ok(ResolvedValue::Null),
            RawValue::Text(text) => return Ok(ResolvedValue::One(Source::Text(text))),
            RawValue::Backrefs(backrefs) => return Ok(ResolvedValue::Many(ListSource::Backrefs(backrefs))),
            RawValue::Value(value) => value,
        };
        match value {
            Value::Null => Err(FollowError::Null),
            Value::List(items) => {
                let mut references = true;
                for item in items {
                    references &= match item {
                        Value::Null => return Err(FollowError::Null),
                        item => reference(item).is_some(),
                    };
                }
                if !references {
                    return Ok(ResolvedValue::Many(ListSource::Values(items)));
                }
                let targets = items.iter().map(|item| self.target(item));
                Ok(ResolvedValue::Many(ListSource::Referred(targets.collect::<Result<_, _>>()?)))
            }
            value if reference(value).is_some() => Ok(self
                .target(value)?
                .map_or(ResolvedValue::Null, |file| ResolvedValue::One(Source::File(file)))),
            value => Ok(ResolvedValue::One(Source::Value(value))),
        }
    }

    /// The target datafile of a reference; `None` if it is dangling.
    fn target(&self, value: &'a Value) -> Result<Option<FileId>, FollowError> {
        let Some(map) = value.as_map() else { return Ok(None) };
        self.index.ref_targets().get(map, || match map.at(0) {
            Some(Value::Str(text)) => self.find(text),
            _ => Ok(None),
        })
    }

    /// The datafile at a path. A `$` starts a pointer into the datafile, which is not supported.
    fn find(&self, text: &str) -> Result<Option<FileId>, FollowError> {
        let Some(end) = text.find('$') else { return Ok(self.file(text)) };
        match self.file(&text[..end]) {
            None => Ok(None),
            Some(_) => Err(FollowError::Pointer),
        }
    }

    /// Appends the value as JSON, formatted as in JavaScript.
    pub fn write_json(&self, resolved: &ResolvedValue<'a>, out: &mut Vec<u8>) {
        match resolved {
            ResolvedValue::Null => out.extend_from_slice(b"null"),
            ResolvedValue::One(source) => self.write_source(*source, out),
            ResolvedValue::Many(many) => {
                out.push(b'[');
                for index in 0..many.len() {
                    if index > 0 {
                        out.push(b',');
                    }
                    match many.element(index) {
                        Some(source) => self.write_source(source, out),
                        None => out.extend_from_slice(b"null"),
                    }
                }
                out.push(b']');
            }
        }
    }

    fn write_source(&self, source: Source<'a>, out: &mut Vec<u8>) {
        let mut json = JavaScriptWriter(out);
        match source {
            Source::Value(value) => json.value(value),
            Source::Text(text) => json.str(text),
            Source::Flag(flag) => json.value(&Value::Bool(flag)),
            Source::File(file) => {
                let datafile = &self.bundle.datafiles()[file as usize];
                if let Some(map) = datafile.document.value.as_map() {
                    json.map(map, &[("path", &Value::str(&datafile.path))]);
                }
            }
            Source::Backref(_) | Source::Resource(_) | Source::Root | Source::Meta(_) | Source::Opaque => {
                json.raw("{}");
            }
        }
    }

    /// Converts the value to an input value, for messages.
    pub fn input(&self, resolved: &ResolvedValue<'a>) -> Input {
        match resolved {
            ResolvedValue::Null => Input::Null,
            ResolvedValue::One(source) => self.source_input(*source),
            ResolvedValue::Many(many) => {
                let element = |index| many.element(index).map_or(Input::Null, |one| self.source_input(one));
                Input::List((0..many.len()).map(element).collect())
            }
        }
    }

    fn source_input(&self, source: Source<'a>) -> Input {
        match source {
            Source::Value(value) => Input::from(value),
            Source::Text(text) => Input::Text(text.into()),
            Source::Flag(flag) => Input::Bool(flag),
            Source::File(file) => {
                let datafile = &self.bundle.datafiles()[file as usize];
                let mut entries = datafile.document.value.as_map().map(entries).unwrap_or_default();
                entries.retain(|(key, _)| &**key != "path");
                entries.push(("path".into(), Input::Text((*datafile.path).into())));
                Input::Object(entries)
            }
            _ => Input::Object(Vec::new()),
        }
    }
}

/// The target of a reference, which is a map whose only key is `$ref`; `None` for other values.
pub fn reference(value: &Value) -> Option<&Value> {
    let map = value.as_map()?;
    if map.keys().is_reference() { map.at(0) } else { None }
}
