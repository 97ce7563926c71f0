//! Schema index: the parts of schemas that the walk needs, parsed once, so that each step is one lookup.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{RESOURCE_REF, Shape, Tree};

/// All schemas by path, and the positions within them.
#[derive(Debug)]
pub struct SchemaIndex<'t, T> {
    roots: HashMap<&'t str, EntryIndex, RandomState>,
    entries: Vec<SchemaEntry<'t, T>>,
}

/// The index of a schema entry.
type EntryIndex = usize;

/// The keywords of one subschema that the walk uses.
#[derive(Debug)]
struct SchemaEntry<'t, T> {
    tree: T,
    properties: HashMap<&'t str, EntryIndex, RandomState>,
    items: Option<EntryIndex>,
    /// The `$ref`.
    reference: Option<&'t str>,
    /// Whether the schema has a `$schemaRef`.
    is_reference: bool,
    /// The branches of `oneOf`, if it is a list.
    branches: Option<Box<[EntryIndex]>>,
    /// The values of `enum`.
    values: Box<[Shape<'t>]>,
}

/// A position within a schema.
#[derive(Debug)]
pub struct SchemaPosition<'g, T> {
    index: &'g SchemaIndex<'g, T>,
    entry_index: EntryIndex,
}

// The trait is not derived, because a derived implementation would require `T: Clone`.
impl<T> Clone for SchemaPosition<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SchemaPosition<'_, T> {}

impl<'t, T: Tree<'t>> SchemaIndex<'t, T> {
    /// Indexes the schemas, each with its path.
    pub fn new(schemas: impl IntoIterator<Item = (&'t str, T)>) -> Self {
        let mut index = Self { roots: HashMap::default(), entries: Vec::new() };
        for (path, tree) in schemas {
            let number = index.read(tree);
            index.roots.insert(path, number);
        }
        index
    }

    fn read(&mut self, tree: T) -> EntryIndex {
        let text = |key: &str| tree.get(key).and_then(Tree::text);
        let listed = |key: &str| tree.get(key).filter(|list| list.shape() == Shape::List);
        let values = tree.get("enum").into_iter().flat_map(Tree::items).map(Tree::shape).collect();
        let number = self.entries.len();
        self.entries.push(SchemaEntry {
            tree,
            properties: HashMap::default(),
            items: None,
            reference: text("$ref"),
            is_reference: tree.get("$schemaRef").is_some(),
            branches: None,
            values,
        });
        let items = tree.get("items").map(|items| self.read(items));
        let branches = listed("oneOf").map(|list| list.items().map(|branch| self.read(branch)).collect());
        let properties = tree.get("properties").into_iter().flat_map(Tree::entries);
        let properties = properties.map(|(key, schema)| (key, self.read(schema))).collect();
        let stop = &mut self.entries[number];
        (stop.items, stop.branches, stop.properties) = (items, branches, properties);
        number
    }
}

impl<'g, T: Copy> SchemaIndex<'g, T> {
    /// The schema at `path`.
    pub fn schema(&'g self, path: &str) -> Option<SchemaPosition<'g, T>> {
        Some(SchemaPosition { index: self, entry_index: *self.roots.get(path)? })
    }
}

impl<'g, T: Copy> SchemaPosition<'g, T> {
    fn entry(self) -> &'g SchemaEntry<'g, T> {
        &self.index.entries[self.entry_index]
    }

    fn at(self, number: EntryIndex) -> Self {
        Self { entry_index: number, ..self }
    }

    /// The schema node itself.
    pub fn tree(self) -> T {
        self.entry().tree
    }

    /// The schema of the value of `key`.
    pub fn property(self, key: &str) -> Option<Self> {
        self.entry().properties.get(key).map(|number| self.at(*number))
    }

    /// The schema of the items of a list.
    pub fn items(self) -> Option<Self> {
        self.entry().items.map(|number| self.at(number))
    }

    /// Whether the value refers to another file: the schema has a `$schemaRef`.
    pub fn is_reference(self) -> bool {
        self.entry().is_reference
    }

    /// The whole-file schema that the `$ref` of this one names, and its path.
    pub fn referenced_schema(self) -> Option<(&'g str, Self)> {
        let path = self.entry().reference.filter(|_| !self.is_reference())?;
        Some((path, self.index.schema(path)?))
    }

    /// The branches of `oneOf`.
    pub fn branches(self) -> Option<impl Iterator<Item = Self> + Clone> {
        let branches = self.entry().branches.as_deref().filter(|_| !self.is_reference())?;
        Some(branches.iter().map(move |number| self.at(*number)))
    }

    /// The values of `enum`.
    pub fn values(self) -> &'g [Shape<'g>] {
        &self.entry().values
    }

    /// Whether the value here names a resource.
    pub fn names_resource(self) -> bool {
        self.entry().reference == Some(RESOURCE_REF)
    }
}
