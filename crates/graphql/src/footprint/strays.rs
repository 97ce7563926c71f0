//! Datafiles that some reference takes for what they are not.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::rc::Rc;

use foldhash::fast::RandomState;
use qontract_bundle::{Keys, Map, Value};
use rayon::prelude::*;

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
        let mut parts: Vec<(TypeId, &[FileId])> = Vec::new();
        for type_ in 0..schema.types().len() {
            for name in schema.schemas_of(type_) {
                parts.extend(view.index.files_of(&name).chunks(TOGETHER).map(|files| (type_, files)));
            }
        }
        let found = parts.into_par_iter().map_init(
            || Search::new(schema, view),
            |search, (type_, files)| {
                for file in files {
                    search.file(*file, type_);
                }
                std::mem::take(&mut search.found)
            },
        );
        found.reduce(Self::default, |mut all, mut more| {
            all.paths.append(&mut more.paths);
            all
        })
    }
}

/// Where the fields of a type are in maps of the same keys, and what they are taken for.
type Placed = Rc<[(usize, TypeId)]>;

/// So many datafiles are looked at in one go.
const TOGETHER: usize = 1024;

/// Looks through datafiles, each as what it is; through strays also as what they are taken for.
struct Search<'a> {
    schema: &'a Schema,
    view: View<'a>,
    /// Strays that were looked through.
    visited: HashSet<(FileId, TypeId), RandomState>,
    /// Per type and set of keys.
    fields: HashMap<(TypeId, usize), Placed, RandomState>,
    /// Per type, once it was asked for: which schemas its datafiles have, by their numbers.
    expected: Vec<Option<Rc<[bool]>>>,
    found: Strays,
}

impl<'a> Search<'a> {
    fn new(schema: &'a Schema, view: View<'a>) -> Self {
        let (visited, fields, found) = (HashSet::default(), HashMap::default(), Strays::default());
        Self { schema, view, visited, fields, expected: vec![None; schema.types().len()], found }
    }

    fn file(&mut self, file: FileId, type_: TypeId) {
        let value = &self.view.bundle.datafiles()[file as usize].document.value;
        self.value(value, type_);
    }

    /// A value that is read as `type_`.
    fn value(&mut self, value: &Value, type_: TypeId) {
        let Some(map) = value.as_map() else { return };
        for (place, named) in self.fields(type_, map.keys()).iter() {
            if let Some(held) = map.at(*place) {
                self.held(held, *named);
            }
        }
    }

    fn fields(&mut self, type_: TypeId, keys: &Keys) -> Placed {
        let schema = self.schema;
        let found = self.fields.entry((type_, keys.id())).or_insert_with(|| {
            let definition = schema.type_(type_);
            let types = match definition.kind {
                Kind::Interface(_) => definition.possible.as_slice(),
                _ => std::slice::from_ref(&type_),
            };
            let fields = types.iter().flat_map(|type_| &schema.type_(*type_).fields);
            let keyed = fields.filter(|field| matches!(field.resolver, Resolver::Key));
            let placed = keyed.filter_map(|field| Some((keys.place(&field.name)?, field.shape.named)));
            placed.collect::<BTreeSet<_>>().into_iter().collect()
        });
        Rc::clone(found)
    }

    fn held(&mut self, held: &Value, type_: TypeId) {
        match held {
            Value::List(items) => items.iter().for_each(|item| self.held(item, type_)),
            Value::Map(map) => match reference(held) {
                Some(target) => self.target(map, target, type_),
                None if self.schema.type_(type_).is_composite() => self.value(held, type_),
                None => {}
            },
            _ => {}
        }
    }

    fn target(&mut self, map: &Map, target: &Value, type_: TypeId) {
        let view = self.view;
        let find =
            || Ok::<_, Infallible>(target.as_str().and_then(|text| view.file(text.split('$').next()?)));
        // One with a `$` is an error to who follows it: what is remembered is without.
        let is_plain = target.as_str().is_some_and(|text| !text.contains('$'));
        let Ok(file) = if is_plain { view.index.leads().get(map, find) } else { find() };
        let Some(file) = file else { return };
        let is_expected = view.index.schema_of(file).is_some_and(|id| self.expected(type_)[id as usize]);
        // What is taken for what it is is looked through for itself.
        if is_expected {
            return;
        }
        self.found.paths.insert((*view.bundle.datafiles()[file as usize].path).into());
        if self.schema.type_(type_).is_composite() && self.visited.insert((file, type_)) {
            self.file(file, type_);
        }
    }

    /// Which schemas the datafiles of a type have, by their numbers.
    fn expected(&mut self, type_: TypeId) -> Rc<[bool]> {
        let (schema, index) = (self.schema, self.view.index);
        let known = self.expected[type_].get_or_insert_with(|| {
            let names = schema.schemas_of(type_);
            let is_one = |id| names.iter().any(|name| **name == *index.schema_name(id));
            (0..).take(index.schema_count()).map(is_one).collect()
        });
        Rc::clone(known)
    }
}
