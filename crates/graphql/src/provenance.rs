//! Provenance: the origin of each object in a response, as a file and a JSON pointer. Line numbers are
//! resolved later, by callers that have the files.
//!
//! **Invariant:** provenance is part of the response body only if it is requested, and it is never part of a
//! digest.

use qontract_bundle::json::JavaScriptWriter;

/// The origin of one object in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOrigin {
    /// JSON pointer into the `data` of the response.
    pub at: Box<str>,
    /// Whether the file is a datafile or a resource.
    pub kind: OriginKind,
    /// The path of the file.
    pub path: Box<str>,
    /// JSON pointer into the file; empty for the whole file.
    pub pointer: Box<str>,
}

/// The kind of file from which an object was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// A datafile.
    Datafile,
    /// A resource.
    Resource,
}

/// The origins of all objects in a response, in response order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    origins: Vec<ObjectOrigin>,
}

impl Provenance {
    /// The origins, in response order.
    pub fn origins(&self) -> &[ObjectOrigin] {
        &self.origins
    }

    /// The origin of the object at a JSON pointer into the `data` of the response.
    pub fn of(&self, at: &str) -> Option<&ObjectOrigin> {
        self.origins.iter().find(|origin| &*origin.at == at)
    }

    /// The number of recorded objects.
    pub(crate) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Keeps the first `count` origins and drops the others.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.origins.truncate(count);
    }

    /// Adds the origin of an object that is read from a datafile.
    pub(crate) fn add(&mut self, at: String, path: Box<str>, pointer: String) {
        let (at, pointer) = (at.into(), pointer.into());
        self.origins.push(ObjectOrigin { at, kind: OriginKind::Datafile, path, pointer });
    }

    /// Adds the origin of an object that is a resource.
    pub(crate) fn add_resource(&mut self, at: String, path: Box<str>) {
        let at = at.into();
        self.origins.push(ObjectOrigin { at, kind: OriginKind::Resource, path, pointer: "".into() });
    }

    /// Appends the origins as JSON:
    /// `{"/apps_v1/0":{"datafile":"/apps/a.yml","pointer":"","place":"data/apps/a.yml:1"},…}`.
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
