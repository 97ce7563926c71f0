//! Writes a diff in the format of the server's `/diff` endpoint.

use super::{Change, DatafileChange, Diff, ResourceChange};
use crate::json::JavaScriptWriter;
use crate::model::{Backref, Document, Resource};
use crate::value::Value;

impl Diff {
    /// The whole diff: `{"datafiles":{…},"resources":{…}}`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut json = JavaScriptWriter(&mut out);
        json.raw("{\"datafiles\":{");
        for (index, change) in self.datafiles.iter().enumerate() {
            json.raw(if index > 0 { "," } else { "" });
            json.str(&change.path);
            json.raw(":");
            change.write(&mut json);
        }
        json.raw("},\"resources\":{");
        for (index, change) in self.resources.iter().enumerate() {
            json.raw(if index > 0 { "," } else { "" });
            json.str(&change.path);
            json.raw(":");
            change.write(&mut json);
        }
        json.raw("}}");
        out
    }
}

impl DatafileChange {
    /// `{"datafilepath":…,"datafileschema":…,"old":…,"new":…}`
    pub fn write(&self, json: &mut JavaScriptWriter<'_>) {
        json.raw("{\"datafilepath\":");
        json.str(&self.path);
        if let Some(schema) = self.schema() {
            json.raw(",\"datafileschema\":");
            json.str(schema);
        }
        // In this format, the path is the last field of a datafile.
        let path = Value::str(&self.path);
        let document = |json: &mut JavaScriptWriter<'_>, document: &Document| match &*document.value {
            Value::Map(map) => json.map(map, &[("path", &path)]),
            other => json.value(other),
        };
        sides(json, &self.change, |json, side| document(json, side));
        json.raw("}");
    }
}

impl ResourceChange {
    /// `{"resourcepath":…,"old":…,"new":…}`
    pub fn write(&self, json: &mut JavaScriptWriter<'_>) {
        json.raw("{\"resourcepath\":");
        json.str(&self.path);
        sides(json, &self.change, |json, side| resource(json, side));
        json.raw("}");
    }
}

fn sides<T>(
    json: &mut JavaScriptWriter<'_>,
    change: &Change<T>,
    write: impl Fn(&mut JavaScriptWriter<'_>, &T),
) {
    if let Some(old) = change.before() {
        json.raw(",\"old\":");
        write(json, old);
    }
    if let Some(new) = change.after() {
        json.raw(",\"new\":");
        write(json, new);
    }
}

fn resource(json: &mut JavaScriptWriter<'_>, resource: &Resource) {
    json.raw("{\"$schema\":");
    match &resource.schema {
        Some(schema) => json.str(schema),
        None => json.raw("null"),
    }
    json.raw(",\"backrefs\":[");
    for (index, Backref { path, datafile_schema, jsonpath }) in resource.backrefs.iter().enumerate() {
        json.raw(if index > 0 { ",{\"datafileSchema\":" } else { "{\"datafileSchema\":" });
        json.str(datafile_schema);
        json.raw(",\"jsonpath\":");
        json.str(jsonpath);
        json.raw(",\"path\":");
        json.str(path);
        json.raw("}");
    }
    json.raw("],\"content\":");
    json.str(&resource.content);
    json.raw(",\"path\":");
    json.str(&resource.path);
    json.raw(",\"sha256sum\":");
    json.str(&resource.sha256sum);
    json.raw("}");
}
