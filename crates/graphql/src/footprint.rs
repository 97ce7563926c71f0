//! The footprint of a query, computed before execution: the schemas, the keys of their datafiles, and the
//! resources that the query can read.
//!
//! **Invariant:** a footprint is never too small: a change outside of it does not change the response. A
//! reference is assumed to point to a datafile with the schema of its type. If a reference points to a
//! datafile with a different schema, its target is *mistyped*, and every change to a mistyped target counts
//! as a change to the data that the query reads.

mod mistyped_targets;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use qontract_bundle::{Document, Value};

pub use mistyped_targets::MistypedTargets;
pub(crate) use trace::trace;

/// The parts of the data that a query can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    datafiles: BTreeMap<Box<str>, Keys>,
    resources: bool,
    reads_backrefs: bool,
    fields: BTreeSet<(Box<str>, Box<str>)>,
    /// Per schema, the first field that reaches its datafiles.
    first_fields: BTreeMap<Box<str>, FirstField>,
    schema: bool,
}

/// The first field that reaches the datafiles of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FirstField {
    type_name: Box<str>,
    name: Box<str>,
}

/// The keys of an object that a query can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All keys, at any depth.
    All,
    /// These keys, each with the keys below it.
    Some(BTreeMap<Box<str>, Keys>),
}

impl Default for Keys {
    fn default() -> Self {
        Keys::Some(BTreeMap::new())
    }
}

impl Keys {
    /// Adds the keys of `other`.
    pub(crate) fn add(&mut self, other: &Keys) {
        match (&mut *self, other) {
            (Keys::All, _) => {}
            (_, Keys::All) => *self = Keys::All,
            (Keys::Some(mine), Keys::Some(theirs)) => {
                for (key, keys) in theirs {
                    mine.entry(key.clone()).or_default().add(keys);
                }
            }
        }
    }

    /// Adds a key.
    pub(crate) fn key(&mut self, key: &str, keys: &Keys) {
        if let Keys::Some(mine) = self {
            mine.entry(key.into()).or_default().add(keys);
        }
    }

    /// Whether the two values differ in a key that can be read.
    fn differ(&self, old: Option<&Value>, new: Option<&Value>) -> bool {
        let keys = match self {
            Keys::All => return old != new,
            Keys::Some(keys) => keys,
        };
        match (old, new) {
            (Some(Value::Map(old)), Some(Value::Map(new))) => {
                // Whether a map is a reference depends on its number of keys.
                let shape = |map: &qontract_bundle::Map| map.len() == 1 && map.get("$ref").is_some();
                shape(old) != shape(new)
                    || keys.iter().any(|(key, keys)| keys.differ(old.get(key), new.get(key)))
            }
            (Some(Value::List(old)), Some(Value::List(new))) => {
                old.len() != new.len()
                    || old.iter().zip(new).any(|(old, new)| self.differ(Some(old), Some(new)))
            }
            (old, new) => old != new,
        }
    }
}

/// A field of a type.
#[derive(Clone, Copy)]
pub(crate) struct FieldRef<'a> {
    pub type_name: &'a str,
    pub name: &'a str,
}

impl Footprint {
    /// The schemas whose datafiles can be read, with the keys that can be read.
    pub fn datafiles(&self) -> impl Iterator<Item = (&str, &Keys)> {
        self.datafiles.iter().map(|(schema, keys)| (&**schema, keys))
    }

    /// The keys that can be read in datafiles of a schema.
    pub fn keys(&self, schema: &str) -> Option<&Keys> {
        self.datafiles.get(schema)
    }

    /// The fields of GraphQL types that can be read, as type and field name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(type_name, name)| (&**type_name, &**name))
    }

    /// The first field (type and field name) that reaches datafiles of a schema.
    pub fn first_field_to(&self, schema: &str) -> Option<(&str, &str)> {
        self.first_fields.get(schema).map(|FirstField { type_name, name }| (&**type_name, &**name))
    }

    /// Whether resources can be read.
    pub fn resources(&self) -> bool {
        self.resources
    }

    /// Whether the query reads the back-references of resources.
    pub fn reads_backrefs(&self) -> bool {
        self.reads_backrefs
    }

    /// Whether the query reads the schema itself.
    pub fn schema(&self) -> bool {
        self.schema
    }

    /// Whether a change to one datafile, including its addition or removal, can change the response.
    ///
    /// Every change to a mistyped target counts: the caller checks [`MistypedTargets`] first. A change to the
    /// set of datafiles that name a resource counts only if [`reads_backrefs`](Self::reads_backrefs) is true.
    pub fn sees(&self, old: Option<&Document>, new: Option<&Document>) -> bool {
        let schema =
            |document: Option<&Document>| document.map(|document| document.schema().map(str::to_owned));
        if schema(old) != schema(new) {
            let is_read =
                |document: &Document| document.schema().is_some_and(|name| self.keys(name).is_some());
            return old.is_some_and(is_read) || new.is_some_and(is_read);
        }
        let keys = old.and_then(Document::schema).and_then(|name| self.keys(name));
        keys.is_some_and(|keys| keys.differ(old.map(|old| &*old.value), new.map(|new| &*new.value)))
    }

    /// Whether the value at a JSON pointer into a datafile of a schema, or a value below it, can be read.
    ///
    /// ```text
    /// a query that reads `labels` and `quota { limits { name } }`
    /// /labels/tier → true    /quota/limits/3/name → true    /quota → true    /quota/limits/3/size → false
    /// ```
    pub fn reads(&self, schema: &str, pointer: &str) -> bool {
        let Some(mut keys) = self.keys(schema) else { return false };
        for step in pointer.split('/').skip(1) {
            let Keys::Some(some) = keys else { return true };
            let step = step.replace("~1", "/").replace("~0", "~");
            match some.get(&*step) {
                Some(below) => keys = below,
                // A list element has the same keys as its list.
                None if step.bytes().all(|byte| byte.is_ascii_digit()) => {}
                // Every query depends on whether a map is a reference.
                None => return step == "$ref",
            }
        }
        true
    }

    pub(crate) fn file(&mut self, schema: &str, keys: &Keys, field: FieldRef<'_>) {
        self.datafiles.entry(schema.into()).or_default().add(keys);
        self.first_fields
            .entry(schema.into())
            .or_insert_with(|| FirstField { type_name: field.type_name.into(), name: field.name.into() });
    }

    pub(crate) fn field(&mut self, type_: &str, field: &str) {
        self.fields.insert((type_.into(), field.into()));
    }

    /// Records that any resource can be read, with these keys.
    pub(crate) fn any_resource(&mut self, keys: &Keys) {
        self.resources = true;
        self.reads_backrefs |= match keys {
            Keys::All => true,
            Keys::Some(keys) => keys.contains_key("backrefs"),
        };
    }

    pub(crate) fn whole_schema(&mut self) {
        self.schema = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldRef, Footprint, Keys};

    #[test]
    fn only_fields_that_a_query_reads_are_in_its_footprint() {
        let some = |keys: &[(&str, Keys)]| {
            Keys::Some(keys.iter().map(|(key, keys)| ((*key).into(), keys.clone())).collect())
        };
        let name = some(&[("name", Keys::default())]);
        let limits = some(&[("limits", name)]);
        let keys = some(&[("labels", Keys::All), ("quota", limits), ("a/b", Keys::default())]);
        let mut footprint = Footprint::default();
        footprint.file("/ns.yml", &keys, FieldRef { type_name: "Query", name: "ns" });
        let check = |pointer: &str, expect: bool| {
            assert_eq!(footprint.reads("/ns.yml", pointer), expect, "{pointer}");
            assert!(!footprint.reads("/other.yml", pointer), "{pointer}");
        };
        check("", true);
        check("/labels", true);
        check("/labels/tier", true);
        check("/labels/deep/er", true);
        check("/quota", true);
        check("/quota/limits/3", true);
        check("/quota/limits/3/name", true);
        check("/quota/limits/3/size", false);
        check("/quota/$ref", true);
        check("/a~1b", true);
        check("/a", false);
        check("/description", false);
    }
}
