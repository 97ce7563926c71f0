//! Origins of the objects of an answer: file and JSON pointer. Lines are resolved late, by callers that have
//! the files.
//!
//! **Invariant:** provenance is part of an answer's bytes only if requested, and never part of its digest.

use qontract_bundle::json::JavaScriptWriter;

/// The origin of one object of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOrigin {
    /// JSON pointer into the answer's `data`.
    pub at: Box<str>,
    /// The kind of its file.
    pub kind: OriginKind,
    /// The path of the file.
    pub path: Box<str>,
    /// JSON pointer into the file; empty for the whole file.
    pub pointer: Box<str>,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// A datafile.
    Datafile,
    /// A resource.
    Resource,
}

/// The origins of all objects of an answer, in the order of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    origins: Vec<ObjectOrigin>,
}

impl Provenance {
    /// The origins, in the order of the answer.
    pub fn origins(&self) -> &[ObjectOrigin] {
        &self.origins
    }

    /// The origin of the object at a JSON pointer into the answer's `data`.
    pub fn of(&self, at: &str) -> Option<&ObjectOrigin> {
        self.origins.iter().find(|origin| &*origin.at == at)
    }

    /// Number of recorded objects.
    pub(crate) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Drops the objects after the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.origins.truncate(count);
    }

    /// Adds an object of a datafile.
    pub(crate) fn add(&mut self, at: String, path: Box<str>, pointer: String) {
        let (at, pointer) = (at.into(), pointer.into());
        self.origins.push(ObjectOrigin { at, kind: OriginKind::Datafile, path, pointer });
    }

    /// Adds a resource.
    pub(crate) fn add_resource(&mut self, at: String, path: Box<str>) {
        let at = at.into();
        self.origins.push(ObjectOrigin { at, kind: OriginKind::Resource, path, pointer: "".into() });
    }

    /// Appends `{"/apps_v1/0":{"datafile":"/apps/a.yml","pointer":"","place":"data/apps/a.yml:1"},…}`.
    pub(crate) fn write(&self, place: &dyn Fn(&ObjectOrigin) -> Option<String>, out: &mut Vec<u8>) {
        let mut json = JavaScriptWriter(out);
        json.raw("{");
        for (index, origin) in self.origins.iter().enumerate() {
            let ObjectOrigin { at, kind, path, pointer } = origin;
            if index > 0 {
                json.raw(",");
            }
            json.str(at);
            json.raw(match kind {
                OriginKind::Datafile => ":{\"datafile\":",
                OriginKind::Resource => ":{\"resource\":",
            });
            json.str(path);
            json.raw(",\"pointer\":");
            json.str(pointer);
            if let Some(place) = place(origin) {
                json.raw(",\"place\":");
                json.str(&place);
            }
            json.raw("}");
        }
        json.raw("}");
    }
}
