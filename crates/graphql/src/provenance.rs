//! Where the objects of an answer come from: file and JSON pointer. Lines are found late, by whoever has the files.
//!
//! **Invariant:** provenance is never part of an answer's bytes unless it was asked for, and never of its digest.

use qontract_bundle::json::JavaScript;

/// Where one object of an answer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// JSON pointer into the answer's `data`.
    pub at: Box<str>,
    /// What kind of file it is in.
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

/// Where all objects of an answer come from, in the order of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    origins: Vec<Origin>,
}

impl Provenance {
    /// The origins, in the order of the answer.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// The origin of the object at a JSON pointer into the answer's `data`.
    pub fn of(&self, at: &str) -> Option<&Origin> {
        self.origins.iter().find(|origin| &*origin.at == at)
    }

    /// How many objects are recorded.
    pub(crate) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Forgets the objects after the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.origins.truncate(count);
    }

    /// Adds an object of a datafile.
    pub(crate) fn add(&mut self, at: String, path: Box<str>, pointer: String) {
        let (at, pointer) = (at.into(), pointer.into());
        self.origins.push(Origin { at, kind: OriginKind::Datafile, path, pointer });
    }

    /// Adds a resource.
    pub(crate) fn add_resource(&mut self, at: String, path: Box<str>) {
        let at = at.into();
        self.origins.push(Origin { at, kind: OriginKind::Resource, path, pointer: "".into() });
    }

    /// Appends `{"/apps_v1/0":{"datafile":"/apps/a.yml","pointer":"","place":"data/apps/a.yml:1"},…}`.
    pub(crate) fn write(&self, place: &dyn Fn(&Origin) -> Option<String>, out: &mut Vec<u8>) {
        let mut json = JavaScript(out);
        json.raw("{");
        for (index, origin) in self.origins.iter().enumerate() {
            let Origin { at, kind, path, pointer } = origin;
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
