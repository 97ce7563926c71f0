//! What a datafile says about other files and about itself among them: references, resources, unique values.

use qontract_bundle::types::{Type, Types};
use qontract_bundle::walk::{self, At, Guide, Step, Tree as _, Visited, Visitor};
use qontract_bundle::{Bundle, Datafile, Value, json};

use crate::keywords;

/// One thing found on the walk through a datafile, in the order of the walk.
#[derive(Debug)]
pub struct Link<'b> {
    /// JSON pointer of the value.
    pub pointer: String,
    /// What it is.
    pub what: What<'b>,
    /// The schema file that the walk was in.
    pub schema_path: Option<&'b str>,
}

/// What a link is.
#[derive(Debug)]
pub enum What<'b> {
    /// The value of a `$ref`.
    Reference {
        /// The value.
        to: &'b Value,
        /// What the schema says about the target, if it does.
        expects: Option<&'b Value>,
    },
    /// The path of a resource.
    Resource(&'b str),
    /// A value that must be the only one.
    Unique {
        /// The type that has the field; the interface if that marks it too.
        type_name: &'b str,
        /// The field.
        field: &'b str,
        /// The value, as text.
        value: String,
    },
    /// An item of a list, and what tells it from the others.
    Item(Item<'b>),
}

/// An item of a list.
#[derive(Debug)]
pub struct Item<'b> {
    /// The way to the list, as the established validator writes it.
    pub list: String,
    /// Which item.
    pub index: usize,
    /// What tells it from the others.
    pub identifier: &'b str,
    /// The fields that do.
    pub fields: Vec<&'b str>,
    /// Whether the established validator sees it: not if its type came from an interface.
    pub seen_by_peer: bool,
}

/// What a leaf says about other files, or about itself among them, before anything is written down.
#[derive(Clone, Copy)]
pub enum Said<'b> {
    /// The value of a `$ref`, and what the schema says about the target.
    Reference { to: &'b Value, expects: Option<&'b Value> },
    /// The path of a resource.
    Resource(&'b str),
    /// A value that must be the only one of a field of a type.
    Unique { type_name: &'b str, field: &'b str, value: &'b Value },
    /// What tells the item of a list that the leaf stands in from the others; its type; whether the established validator sees it.
    Item { identifier: &'b str, type_: &'b Type, seen_by_peer: bool },
}

/// A leaf of a bundle's datafile.
pub type Leaf<'w, 'b> = Visited<'w, 'b, 'b, &'b Value, &'b Value>;

/// What it takes to understand a leaf.
#[derive(Clone, Copy)]
pub struct Reader<'b> {
    /// Where references lead.
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

/// Walks a datafile along the schema that it names.
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
        self.reader.leaf(&leaf, parent, &mut |said| match said {
            Said::Reference { to, expects } => push(path, What::Reference { to, expects }),
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
    /// Calls `found` with all that a leaf says.
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
        if let Some(Step::Key("$ref")) = path.last() {
            let expects = at.schema.and_then(|schema| schema.tree().get("$schemaRef"));
            found(Said::Reference { to: value, expects });
        }
        if let (Some(type_), Some(field)) = (at.type_, at.field.filter(|field| field.is_unique)) {
            let type_name = self.unique_in(type_, &field.name);
            found(Said::Unique { type_name, field: &field.name, value });
        }
        if let [.., Step::Index(_), Step::Key(key)] = path
            && let Some((identifier, type_, seen_by_peer)) = self.item_of(key, value, at, parent)
        {
            found(Said::Item { identifier, type_, seen_by_peer });
        }
    }

    /// The type among whose objects a field is unique: the interface, if that marks the field too.
    fn unique_in(self, type_: &'b Type, field: &str) -> &'b str {
        let interface = type_.interface.as_deref().and_then(|name| self.types.get(name));
        let marks = |interface: &&Type| interface.field(field).is_some_and(|field| field.is_unique);
        interface.filter(marks).map_or(&type_.name, |interface| &interface.name)
    }

    /// The identifier of a list item that this leaf of it tells, its own or that of the file it refers to.
    fn item_of(
        self,
        key: &str,
        value: &'b Value,
        at: At<'b, &'b Value>,
        parent: Option<At<'b, &'b Value>>,
    ) -> Option<(&'b str, &'b Type, bool)> {
        match key {
            "__identifier" => {
                let seen_by_peer = parent.is_some_and(|parent| parent.field.is_some());
                Some((value.text()?, at.type_?, seen_by_peer))
            }
            "$ref" => {
                let target = &self.bundle.datafile(value.text()?)?.value;
                let identifier = target.get("__identifier")?.as_str()?;
                let type_ = self.types.by_schema(target.get("$schema")?.as_str()?)?;
                Some((identifier, type_, true))
            }
            _ => None,
        }
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

/// A path as the established validator writes it: `a.[0].b`.
fn jsonpath(path: &[Step<'_>]) -> String {
    let steps: Vec<String> = path
        .iter()
        .map(|step| match step {
            Step::Key(key) => (*key).to_owned(),
            Step::Index(index) => format!("[{index}]"),
        })
        .collect();
    steps.join(".")
}
