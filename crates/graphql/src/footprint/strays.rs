//! Datafiles that some reference takes for what they are not.

use std::collections::{BTreeSet, HashSet};

use qontract_bundle::Value;

use crate::index::FileId;
use crate::schema::{Kind, Resolver, Schema, TypeId};
use crate::source::{View, reference};

/// Paths of datafiles that are referred to as something else than their schema says.
#[derive(Clone, Debug, Default)]
pub struct Strays {
    paths: BTreeSet<Box<str>>,
}

impl Strays {
    /// Whether the datafile at `path` is one.
    pub fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Their paths, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|path| &**path)
    }

    /// Looks at every reference of the data.
    pub(crate) fn find(schema: &Schema, view: View<'_>) -> Self {
        let mut search = Search { schema, view, visited: HashSet::new(), found: Self::default() };
        for type_ in 0..schema.types().len() {
            for name in schema.schemas_of(type_) {
                for file in view.index.files_of(&name) {
                    search.file(*file, type_);
                }
            }
        }
        search.found
    }
}

struct Search<'a> {
    schema: &'a Schema,
    view: View<'a>,
    visited: HashSet<(FileId, TypeId)>,
    found: Strays,
}

impl Search<'_> {
    fn file(&mut self, file: FileId, type_: TypeId) {
        if self.visited.insert((file, type_)) {
            let value = &self.view.bundle.datafiles()[file as usize].document.value;
            self.value(value, type_);
        }
    }

    /// A value that is read as `type_`.
    fn value(&mut self, value: &Value, type_: TypeId) {
        let schema = self.schema;
        let definition = schema.type_(type_);
        let types = match definition.kind {
            Kind::Interface(_) => definition.possible.as_slice(),
            _ => std::slice::from_ref(&type_),
        };
        for field in types.iter().flat_map(|type_| &schema.type_(*type_).fields) {
            if let (Resolver::Key, Some(held)) = (&field.resolver, value.get(&field.name)) {
                self.held(held, field.shape.named);
            }
        }
    }

    fn held(&mut self, held: &Value, type_: TypeId) {
        match held {
            Value::List(items) => items.iter().for_each(|item| self.held(item, type_)),
            Value::Map(_) => match reference(held) {
                Some(target) => self.target(target, type_),
                None if self.schema.type_(type_).is_composite() => self.value(held, type_),
                None => {}
            },
            _ => {}
        }
    }

    fn target(&mut self, target: &Value, type_: TypeId) {
        let Some(file) = target.as_str().and_then(|text| self.view.file(text.split('$').next()?)) else {
            return;
        };
        let name = self.view.index.schema_of(file).map(|id| self.view.index.schema_name(id));
        let expected = self.schema.schemas_of(type_);
        if !name.is_some_and(|name| expected.iter().any(|known| **known == *name)) {
            self.found.paths.insert((*self.view.bundle.datafiles()[file as usize].path).into());
        }
        if self.schema.type_(type_).is_composite() {
            self.file(file, type_);
        }
    }
}
