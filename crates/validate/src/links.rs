//! The links of a datafile: references, resource paths, and values that must be unique.

use qontract_bundle::types::{Type, Types};
use qontract_bundle::walk::{self, At, Guide, Step, Tree as _, Visited, Visitor, jsonpath};
use qontract_bundle::{Bundle, Datafile, Document, Value, json};

use crate::keywords;

/// One link of a datafile, in the order of the walk.
#[derive(Debug)]
pub struct Link<'b> {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The kind of the link.
    pub what: What<'b>,
    /// The schema file that the walk was in.
    pub schema_path: Option<&'b str>,
}

/// The kinds of links.
#[derive(Debug)]
pub enum What<'b> {
    /// A `$ref`.
    Reference(Reference<'b>),
    /// The path of a resource.
    Resource(&'b str),
    /// A value that must be unique.
    Unique {
        /// The type that has the field; the interface if that marks it too.
        type_name: &'b str,
        /// The field.
        field: &'b str,
        /// The value, as text.
        value: String,
    },
    /// An item of a list, and its identifier within the list.
    Item(Item<'b>),
}

/// A `$ref`.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'b> {
    /// Its value.
    pub to: &'b Value,
    /// The datafile that it points to, if it exists.
    pub target: Option<&'b Document>,
    /// The `$schemaRef` of the schema, which constrains the target, if there is one.
    pub expects: Option<&'b Value>,
}

/// An item of a list.
#[derive(Debug)]
pub struct Item<'b> {
    /// The path of the list, as the established validator writes it.
    pub list: String,
    /// The index of the item.
    pub index: usize,
    /// The identifier that distinguishes it from other items.
    pub identifier: &'b str,
    /// The fields that make up the identifier.
    pub fields: Vec<&'b str>,
    /// Whether the established validator checks it: it does not if the type came from an interface.
    pub seen_by_peer: bool,
}

/// One fact about a leaf, in borrowed form: nothing is allocated.
#[derive(Clone, Copy)]
pub enum Said<'b> {
    /// A `$ref`.
    Reference(Reference<'b>),
    /// The path of a resource.
    Resource(&'b str),
    /// A value that must be unique among the values of a field of a type.
    Unique { type_name: &'b str, field: &'b str, value: &'b Value },
    /// The identifier of the list item that contains the leaf, its type, and whether the established
    /// validator checks it.
    Item { identifier: &'b str, type_: &'b Type, seen_by_peer: bool },
}

/// A leaf of a bundle's datafile.
pub type Leaf<'w, 'b> = Visited<'w, 'b, 'b, &'b Value, &'b Value>;

/// Derives the facts of a leaf.
#[derive(Clone, Copy)]
pub struct Reader<'b> {
    /// The bundle, to resolve references.
    pub bundle: &'b Bundle,
    /// The types of the data.
    pub types: &'b Types,
}

struct Links<'b> {
    reader: Reader<'b>,
    found: Vec<Link<'b>>,
}

/// All links of a datafile.
pub fn of<'b>(
    bundle: &'b Bundle,
    guide: &'b Guide<'b, &'b Value>,
    types: &'b Types,
    datafile: &'b Datafile,
) -> Vec<Link<'b>> {
    let mut links = Links { reader: Reader { bundle, types }, found: Vec::new() };
    walk(datafile, guide, types, &mut links);
    links.found
}

/// Walks a datafile along its schema.
pub fn walk<'b>(
    datafile: &'b Datafile,
    guide: &'b Guide<'b, &'b Value>,
    types: &'b Types,
    visitor: &mut impl Visitor<'b, 'b, &'b Value, &'b Value>,
) {
    let schema = datafile.document.schema().filter(|schema| !schema.is_empty());
    walk::walk(&*datafile.document.value, schema, guide, types, visitor);
}

impl<'b> Visitor<'b, 'b, &'b Value, &'b Value> for Links<'b> {
    fn leaf(&mut self, leaf: Leaf<'_, 'b>, parent: Option<At<'b, &'b Value>>) {
        let Visited { path, at, .. } = leaf;
        let found = &mut self.found;
        let mut push = |path: &[Step<'b>], what| {
            found.push(Link { pointer: pointer(path), what, schema_path: at.schema_path });
        };
        self.reader.leaf(&leaf, parent, &mut |fact| match fact {
            Said::Reference(reference) => push(path, What::Reference(reference)),
            Said::Resource(resource) => push(path, What::Resource(resource)),
            Said::Unique { type_name, field, value } => {
                push(path, What::Unique { type_name, field, value: text(value) });
            }
            Said::Item { identifier, type_, seen_by_peer } => {
                let [list @ .., Step::Index(index), _] = path else { return };
                let mut fields: Vec<&str> = type_.context_unique_fields().map(|field| &*field.name).collect();
                fields.sort_unstable();
                let item = Item { list: jsonpath(list), index: *index, identifier, fields, seen_by_peer };
                push(&path[..path.len() - 1], What::Item(item));
            }
        });
    }
}

impl<'b> Reader<'b> {
    /// Calls `found` with each fact of a leaf.
    pub fn leaf(
        self,
        leaf: &Leaf<'_, 'b>,
        parent: Option<At<'b, &'b Value>>,
        found: &mut dyn FnMut(Said<'b>),
    ) {
        let Visited { path, value, at } = *leaf;
        if let Some(resource) = value.text().filter(|_| at.names_resource()) {
            found(Said::Resource(resource));
        }
        let mut target = None;
        if let Some(Step::Key("$ref")) = path.last() {
            target = value.text().and_then(|path| self.bundle.datafile(path)).map(AsRef::as_ref);
            let expects = at.schema.and_then(|schema| schema.tree().get("$schemaRef"));
            found(Said::Reference(Reference { to: value, target, expects }));
        }
        if let (Some(type_), Some(field)) = (at.type_, at.field.filter(|field| field.is_unique)) {
            let type_name = self.unique_in(type_, &field.name);
            found(Said::Unique { type_name, field: &field.name, value });
        }
        let item = match path {
            [.., Step::Index(_), Step::Key("__identifier")] => {
                let seen_by_peer = parent.is_some_and(|parent| parent.field.is_some());
                value.text().zip(at.type_).map(|(identifier, type_)| (identifier, type_, seen_by_peer))
            }
            [.., Step::Index(_), Step::Key("$ref")] => target
                .and_then(|target| self.listed(target))
                .map(|(identifier, type_)| (identifier, type_, true)),
            _ => None,
        };
        if let Some((identifier, type_, seen_by_peer)) = item {
            found(Said::Item { identifier, type_, seen_by_peer });
        }
    }

    /// The type within which a field is unique: the interface, if that also marks the field.
    fn unique_in(self, type_: &'b Type, field: &str) -> &'b str {
        let interface = type_.interface.as_deref().and_then(|name| self.types.get(name));
        let marks = |interface: &&Type| interface.field(field).is_some_and(|field| field.is_unique);
        interface.filter(marks).map_or(&type_.name, |interface| &interface.name)
    }

    /// The identifier of a datafile as an item of a list, and its type.
    fn listed(self, target: &'b Document) -> Option<(&'b str, &'b Type)> {
        let identifier = target.value.get("__identifier")?.as_str()?;
        Some((identifier, self.types.by_schema(target.schema()?)?))
    }
}

/// A value as text that is equal for equal values.
pub fn text(value: &Value) -> String {
    let mut text = Vec::new();
    json::write_python(value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn pointer(path: &[Step<'_>]) -> String {
    let mut pointer = String::new();
    for step in path {
        match step {
            Step::Key(key) => keywords::push(&mut pointer, key),
            Step::Index(index) => keywords::push(&mut pointer, &index.to_string()),
        }
    }
    pointer
}
