//! Schema index: the parts of schemas that the walk needs, parsed once, so that each step is one lookup.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{RESOURCE_REF, Shape, Tree};

/// All schemas by path, and the positions within them.
#[derive(Debug)]
pub struct Guide<'t, T> {
    wholes: HashMap<&'t str, Number, RandomState>,
    stops: Vec<Stop<'t, T>>,
}

/// The index of a schema entry.
type Number = usize;

/// The keywords of one subschema that the walk uses.
#[derive(Debug)]
struct Stop<'t, T> {
    tree: T,
    properties: HashMap<&'t str, Number, RandomState>,
    items: Option<Number>,
    /// The `$ref`.
    reference: Option<&'t str>,
    /// Whether the schema has a `$schemaRef`.
    is_reference: bool,
    /// The branches of its `oneOf`, if that is a list.
    branches: Option<Box<[Number]>>,
    /// The values of its `enum`.
    values: Box<[Shape<'t>]>,
}

/// A position within a schema.
#[derive(Debug)]
pub struct Place<'g, T> {
    guide: &'g Guide<'g, T>,
    number: Number,
}

// By hand: a derived impl would require `T: Clone`.
impl<T> Clone for Place<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<'_, T> {}

impl<'t, T: Tree<'t>> Guide<'t, T> {
    /// Indexes the schemas, each with its path.
    pub fn new(schemas: impl IntoIterator<Item = (&'t str, T)>) -> Self {
        let mut guide = Self { wholes: HashMap::default(), stops: Vec::new() };
        for (path, tree) in schemas {
            let number = guide.read(tree);
            guide.wholes.insert(path, number);
        }
        guide
    }

    fn read(&mut self, tree: T) -> Number {
        let text = |key: &str| tree.get(key).and_then(Tree::text);
        let listed = |key: &str| tree.get(key).filter(|list| list.shape() == Shape::List);
        let values = tree.get("enum").into_iter().flat_map(Tree::items).map(Tree::shape).collect();
        let number = self.stops.len();
        self.stops.push(Stop {
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
        let stop = &mut self.stops[number];
        (stop.items, stop.branches, stop.properties) = (items, branches, properties);
        number
    }
}

impl<'g, T: Copy> Guide<'g, T> {
    /// The schema of datafiles that name `path`.
    pub fn schema(&'g self, path: &str) -> Option<Place<'g, T>> {
        Some(Place { guide: self, number: *self.wholes.get(path)? })
    }
}

impl<'g, T: Copy> Place<'g, T> {
    fn stop(self) -> &'g Stop<'g, T> {
        &self.guide.stops[self.number]
    }

    fn at(self, number: Number) -> Self {
        Self { number, ..self }
    }

    /// The schema node itself.
    pub fn tree(self) -> T {
        self.stop().tree
    }

    /// The schema of the value of `key`.
    pub fn property(self, key: &str) -> Option<Self> {
        self.stop().properties.get(key).map(|number| self.at(*number))
    }

    /// The schema of the items of a list.
    pub fn items(self) -> Option<Self> {
        self.stop().items.map(|number| self.at(number))
    }

    /// Whether the value refers to another file: the schema has a `$schemaRef`.
    pub fn is_reference(self) -> bool {
        self.stop().is_reference
    }

    /// The whole-file schema that the `$ref` of this one names, and its path.
    pub fn whole(self) -> Option<(&'g str, Self)> {
        let path = self.stop().reference.filter(|_| !self.is_reference())?;
        Some((path, self.guide.schema(path)?))
    }

    /// The branches of `oneOf`.
    pub fn branches(self) -> Option<impl Iterator<Item = Self> + Clone> {
        let branches = self.stop().branches.as_deref().filter(|_| !self.is_reference())?;
        Some(branches.iter().map(move |number| self.at(*number)))
    }

    /// The values of `enum`.
    pub fn values(self) -> &'g [Shape<'g>] {
        &self.stop().values
    }

    /// Whether the value here names a resource.
    pub fn names_resource(self) -> bool {
        self.stop().reference == Some(RESOURCE_REF)
    }
}
