//! The links of a datafile: references, resource paths, and values that must be unique.

use qontract_bundle::types::{Type, Types};
use qontract_bundle::walk::{
    self, PathSegment, SchemaIndex, Tree as _, VisitedValue, Visitor, WalkPosition, jsonpath,
};
use qontract_bundle::{Bundle, Datafile, Document, Value, json};

use crate::keywords;

/// One link of a datafile, in the order of the walk.
#[derive(Debug)]
pub struct Link<'b> {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The kind of the link.
    pub kind: LinkKind<'b>,
    /// The schema file at this point of the walk.
    pub schema_path: Option<&'b str>,
}

/// The kinds of links.
#[derive(Debug)]
pub enum LinkKind<'b> {
    /// A `$ref`.
    Reference(DatafileReference<'b>),
    /// The path of a resource.
    Resource(&'b str),
    /// A value that must be unique.
    Unique {
        /// The type that has the field; if its interface also marks the field as unique, the interface.
        type_name: &'b str,
        /// The field.
        field: &'b str,
        /// The value, as a canonical string.
        value: String,
    },
    /// An item of a list, and its identifier within the list.
    Item(ListItem<'b>),
}

/// A `$ref`.
#[derive(Clone, Copy, Debug)]
pub struct DatafileReference<'b> {
    /// The value.
    pub to: &'b Value,
    /// The datafile to which the `$ref` points, if it exists.
    pub target: Option<&'b Document>,
    /// The `$schemaRef` of the schema, which constrains the target, if the schema has one.
    pub expects: Option<&'b Value>,
}

/// An item of a list.
#[derive(Debug)]
pub struct ListItem<'b> {
    /// The path of the list, as `qontract-validator` writes it.
    pub list: String,
    /// The index of the item.
    pub index: usize,
    /// The identifier that distinguishes the item from other items.
    pub identifier: &'b str,
    /// The fields that make up the identifier.
    pub fields: Vec<&'b str>,
    /// Whether `qontract-validator` checks the item. It does not if the type comes from an interface.
    pub seen_by_peer: bool,
}

/// One fact about a leaf, in borrowed form, without allocations.
#[derive(Clone, Copy)]
pub enum LeafFact<'b> {
    /// A `$ref`.
    Reference(DatafileReference<'b>),
    /// The path of a resource.
    Resource(&'b str),
    /// A value that must be unique among the values of a field of a type.
    Unique { type_name: &'b str, field: &'b str, value: &'b Value },
    /// The identifier of the list item that contains the leaf, its type, and whether `qontract-validator`
    /// checks it.
    Item { identifier: &'b str, type_: &'b Type, seen_by_peer: bool },
}

/// A leaf of a bundle's datafile.
pub type Leaf<'w, 'b> = VisitedValue<'w, 'b, 'b, &'b Value, &'b Value>;

/// Derives the facts of a leaf.
#[derive(Clone, Copy)]
pub struct LeafReader<'b> {
    /// The bundle, to resolve references.
    pub bundle: &'b Bundle,
    /// The types of the data.
    pub types: &'b Types,
}

struct LinkCollector<'b> {
    reader: LeafReader<'b>,
    found: Vec<Link<'b>>,
}

/// All links of a datafile.
pub fn of<'b>(
    bundle: &'b Bundle,
    schema_index: &'b SchemaIndex<'b, &'b Value>,
    types: &'b Types,
    datafile: &'b Datafile,
) -> Vec<Link<'b>> {
    let mut links = LinkCollector { reader: LeafReader { bundle, types }, found: Vec::new() };
    walk(datafile, schema_index, types, &mut links);
    links.found
}

/// Walks a datafile along its schema.
pub fn walk<'b>(
    datafile: &'b Datafile,
    schema_index: &'b SchemaIndex<'b, &'b Value>,
    types: &'b Types,
    visitor: &mut impl Visitor<'b, 'b, &'b Value, &'b Value>,
) {
    let schema = datafile.document.schema().filter(|schema| !schema.is_empty());
    walk::walk(&*datafile.document.value, schema, schema_index, types, visitor);
}

impl<'b> Visitor<'b, 'b, &'b Value, &'b Value> for LinkCollector<'b> {
    fn leaf(&mut self, leaf: Leaf<'_, 'b>, parent: Option<WalkPosition<'b, &'b Value>>) {
        let VisitedValue { path, at, .. } = leaf;
        let found = &mut self.found;
        let mut push = |path: &[PathSegment<'b>], what| {
            found.push(Link { pointer: pointer(path), kind: what, schema_path: at.schema_path });
        };
        self.reader.facts(&leaf, parent, &mut |fact| match fact {
            LeafFact::Reference(reference) => push(path, LinkKind::Reference(reference)),
            LeafFact::Resource(resource) => push(path, LinkKind::Resource(resource)),
            LeafFact::Unique { type_name, field, value } => {
                push(path, LinkKind::Unique { type_name, field, value: text(value) });
            }
            LeafFact::Item { identifier, type_, seen_by_peer } => {
                let [list @ .., PathSegment::Index(index), _] = path else { return };
                let mut fields: Vec<&str> = type_.context_unique_fields().map(|field| &*field.name).collect();
                fields.sort_unstable();
                let item = ListItem { list: jsonpath(list), index: *index, identifier, fields, seen_by_peer };
                push(&path[..path.len() - 1], LinkKind::Item(item));
            }
        });
    }
}

impl<'b> LeafReader<'b> {
    /// Calls `found` with each fact of a leaf.
    pub fn facts(
        self,
        leaf: &Leaf<'_, 'b>,
        parent: Option<WalkPosition<'b, &'b Value>>,
        found: &mut dyn FnMut(LeafFact<'b>),
    ) {
        let VisitedValue { path, value, at } = *leaf;
        if let Some(resource) = value.text().filter(|_| at.names_resource()) {
            found(LeafFact::Resource(resource));
        }
        let mut target = None;
        if let Some(PathSegment::Key("$ref")) = path.last() {
            target = value.text().and_then(|path| self.bundle.datafile(path)).map(AsRef::as_ref);
            let expects = at.schema.and_then(|schema| schema.tree().get("$schemaRef"));
            found(LeafFact::Reference(DatafileReference { to: value, target, expects }));
        }
        if let (Some(type_), Some(field)) = (at.type_, at.field.filter(|field| field.is_unique)) {
            let type_name = self.unique_in(type_, &field.name);
            found(LeafFact::Unique { type_name, field: &field.name, value });
        }
        let item = match path {
            [.., PathSegment::Index(_), PathSegment::Key("__identifier")] => {
                let seen_by_peer = parent.is_some_and(|parent| parent.field.is_some());
                value.text().zip(at.type_).map(|(identifier, type_)| (identifier, type_, seen_by_peer))
            }
            [.., PathSegment::Index(_), PathSegment::Key("$ref")] => target
                .and_then(|target| self.list_identity(target))
                .map(|(identifier, type_)| (identifier, type_, true)),
            _ => None,
        };
        if let Some((identifier, type_, seen_by_peer)) = item {
            found(LeafFact::Item { identifier, type_, seen_by_peer });
        }
    }

    /// The type within which a field is unique: the interface, if it also marks the field.
    fn unique_in(self, type_: &'b Type, field: &str) -> &'b str {
        let interface = type_.interface.as_deref().and_then(|name| self.types.get(name));
        let marks = |interface: &&Type| interface.field(field).is_some_and(|field| field.is_unique);
        interface.filter(marks).map_or(&type_.name, |interface| &interface.name)
    }

    /// The identifier of a datafile as an item of a list, and its type.
    fn list_identity(self, target: &'b Document) -> Option<(&'b str, &'b Type)> {
        let identifier = target.value.get("__identifier")?.as_str()?;
        Some((identifier, self.types.by_schema(target.schema()?)?))
    }
}

/// The canonical string of a value: equal values have equal strings.
pub fn text(value: &Value) -> String {
    let mut text = Vec::new();
    json::write_python(value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn pointer(path: &[PathSegment<'_>]) -> String {
    let mut pointer = String::new();
    for step in path {
        match step {
            PathSegment::Key(key) => keywords::push_token(&mut pointer, key),
            PathSegment::Index(index) => keywords::push_token(&mut pointer, &index.to_string()),
        }
    }
    pointer
}
