//! Searches datafiles for references and for paths of resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::hash::BuildHasher as _;
use std::rc::Rc;

use foldhash::fast::{FixedState, RandomState};
use qontract_bundle::{KeySet, Map, Value};

use super::lists::IdLists;
use crate::data_view::{DataView, reference};
use crate::footprint::MistypedTargets;
use crate::schema::{Kind, Resolver, Schema, TypeId};
use crate::source::{FileId, ResourceId};

/// The references of consecutive datafiles.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CollectedRefs {
    /// Per datafile, the datafiles to which it refers as the type of their schema.
    pub targets: IdLists,
    /// Per datafile, the resources that it names.
    pub resources: IdLists,
    /// Per datafile, its mistyped references: the target, and the type as which the target is read.
    pub loose: BTreeMap<FileId, BTreeSet<(FileId, TypeId)>>,
    /// Per datafile, the hashes of the paths that it names and that belong to no datafile or resource.
    pub dangling: BTreeMap<FileId, Vec<PathHash>>,
    /// Types that have an inline object in a datafile. After an incremental build, this includes the types of
    /// the last bundle.
    pub inline: BTreeSet<TypeId>,
}

impl CollectedRefs {
    /// Appends the references of the datafiles that follow.
    pub fn append(&mut self, next: Self) {
        let Self { targets, resources, mut loose, mut dangling, inline } = next;
        self.targets.append(&targets);
        self.resources.append(&resources);
        self.loose.append(&mut loose);
        self.dangling.append(&mut dangling);
        self.inline.extend(inline);
    }
}

/// The references of one datafile: its targets, resources, mistyped references and dangling paths.
#[derive(Default)]
pub struct DatafileRefs {
    pub targets: Vec<FileId>,
    pub resources: Vec<ResourceId>,
    pub loose: BTreeSet<(FileId, TypeId)>,
    pub dangling: Vec<PathHash>,
}

/// A hash of a path. A collision is harmless: it only causes an unnecessary search of a datafile.
pub type PathHash = u64;

/// Hashes a path.
pub fn path_hash(path: &str) -> PathHash {
    FixedState::with_seed(0).hash_one(path)
}

/// The consequences of mistyped references: a target is read as a different type, whose fields may follow further
/// references in the target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MistypedRefs {
    /// Per datafile, the datafiles that refer to it through a mistyped reference, or that are themselves read
    /// as a different type when they refer to it.
    pub referrers: BTreeMap<FileId, BTreeSet<FileId>>,
    /// Per resource, the datafiles that name it while they are read as a different type.
    pub naming: BTreeMap<ResourceId, BTreeSet<FileId>>,
    /// The datafiles that are read as a type other than that of their schema.
    pub targets: MistypedTargets,
    /// The types as which mistyped targets are read.
    pub read_as: BTreeSet<TypeId>,
    /// Types that have an inline object in one of the mistyped targets.
    pub inline: BTreeSet<TypeId>,
}

/// The content of a field: a value of a type, or the path of a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldContent {
    Value(TypeId),
    Resource,
}

/// For maps with the same key set: the offsets of the fields of a type, and their content.
type FieldOffsets = Rc<[(usize, FieldContent)]>;

/// A search through datafiles, each as the types of its schema.
pub struct RefSearch<'a> {
    schema: &'a Schema,
    view: DataView<'a>,
    /// The references found so far in the datafile that is being searched.
    current: DatafileRefs,
    /// Cached offsets, by type and identity of the key set.
    fields: HashMap<(TypeId, usize), FieldOffsets, RandomState>,
    /// Per type, computed on first use: for each schema id, whether datafiles of the schema have the type.
    expected: Vec<Option<Rc<[bool]>>>,
    /// Per type, whether an inline object of the type was found.
    inline: Vec<bool>,
    collected: CollectedRefs,
}

impl<'a> RefSearch<'a> {
    pub fn new(schema: &'a Schema, view: DataView<'a>) -> Self {
        Self {
            schema,
            view,
            current: DatafileRefs::default(),
            fields: HashMap::default(),
            expected: vec![None; schema.types().len()],
            inline: vec![false; schema.types().len()],
            collected: CollectedRefs::default(),
        }
    }

    /// Takes the references that were found since the last call.
    pub fn take(&mut self) -> CollectedRefs {
        let inline = self.take_inline();
        CollectedRefs { inline, ..std::mem::take(&mut self.collected) }
    }

    fn take_inline(&mut self) -> BTreeSet<TypeId> {
        let inline = self.inline.iter_mut().enumerate();
        inline.filter_map(|(type_, is)| std::mem::take(is).then_some(type_)).collect()
    }

    /// Adds the next datafile, with references from an earlier search.
    pub fn push(&mut self, file: FileId, known: DatafileRefs) {
        let DatafileRefs { mut targets, mut resources, loose, mut dangling } = known;
        self.collected.targets.push(&mut targets);
        self.collected.resources.push(&mut resources);
        if !loose.is_empty() {
            self.collected.loose.insert(file, loose);
        }
        if !dangling.is_empty() {
            dangling.sort_unstable();
            dangling.dedup();
            self.collected.dangling.insert(file, dangling);
        }
    }

    /// Adds the next datafile, with its references from `before`, in which the datafile has the same id.
    pub fn push_copy(&mut self, before: &CollectedRefs, file: FileId) {
        self.collected.targets.push_ordered(before.targets.of(file));
        self.collected.resources.push_ordered(before.resources.of(file));
        if let Some(loose) = before.loose.get(&file) {
            self.collected.loose.insert(file, loose.clone());
        }
        if let Some(dangling) = before.dangling.get(&file) {
            self.collected.dangling.insert(file, dangling.clone());
        }
    }

    /// Searches the next datafile as each of these types. Targets that are read as the type of their schema
    /// are not followed, because they are searched separately.
    pub fn scan(&mut self, file: FileId, types: Option<&BTreeSet<TypeId>>) {
        for type_ in types.into_iter().flatten() {
            self.scan_as(file, *type_);
        }
        let here = std::mem::take(&mut self.current);
        self.push(file, here);
    }

    /// Searches the targets of mistyped references transitively, with the types that they are read as.
    pub fn follow_mistyped(mut self, found: &BTreeMap<FileId, BTreeSet<(FileId, TypeId)>>) -> MistypedRefs {
        let mut loose = MistypedRefs::default();
        let mut visited: BTreeSet<(FileId, TypeId)> = BTreeSet::new();
        let mut left = Vec::new();
        for (referrer, taken) in found {
            for (target, type_) in taken {
                loose.referrers.entry(*target).or_default().insert(*referrer);
                left.push((*target, *type_));
            }
        }
        while let Some((file, type_)) = left.pop() {
            loose.targets.insert(self.view.index.path(file));
            loose.read_as.insert(type_);
            if !self.schema.type_(type_).is_composite() || !visited.insert((file, type_)) {
                continue;
            }
            self.scan_as(file, type_);
            let DatafileRefs { targets, resources, loose: taken, dangling: _ } =
                std::mem::take(&mut self.current);
            for target in targets.into_iter().chain(taken.iter().map(|(target, _)| *target)) {
                loose.referrers.entry(target).or_default().insert(file);
            }
            for resource in resources {
                loose.naming.entry(resource).or_default().insert(file);
            }
            left.extend(taken);
        }
        loose.inline = self.take_inline();
        loose
    }

    /// Searches a datafile as this type.
    fn scan_as(&mut self, file: FileId, type_: TypeId) {
        let value = &self.view.bundle.datafiles()[file as usize].document.value;
        self.value(value, type_);
    }

    /// Searches a value as `type_`.
    fn value(&mut self, value: &Value, type_: TypeId) {
        let Some(map) = value.as_map() else { return };
        for (place, holds) in self.fields(type_, map.keys()).iter() {
            match (map.at(*place), holds) {
                (Some(held), FieldContent::Value(named)) => self.scan_field(held, *named),
                (Some(Value::Str(path)), FieldContent::Resource) => self.resource(path),
                _ => {}
            }
        }
    }

    fn fields(&mut self, type_: TypeId, keys: &KeySet) -> FieldOffsets {
        let schema = self.schema;
        let found = self.fields.entry((type_, keys.id())).or_insert_with(|| {
            let definition = schema.type_(type_);
            let types = match definition.kind {
                Kind::Interface(_) => definition.possible.as_slice(),
                _ => std::slice::from_ref(&type_),
            };
            let fields = types.iter().flat_map(|type_| &schema.type_(*type_).fields);
            let placed = fields.filter_map(|field| {
                let holds = match field.resolver {
                    Resolver::Key => FieldContent::Value(field.shape.named),
                    Resolver::Resource => FieldContent::Resource,
                    _ => return None,
                };
                Some((keys.index_of(&field.name)?, holds))
            });
            placed.collect::<BTreeSet<_>>().into_iter().collect()
        });
        Rc::clone(found)
    }

    fn scan_field(&mut self, held: &Value, type_: TypeId) {
        match held {
            Value::List(items) => items.iter().for_each(|item| self.scan_field(item, type_)),
            Value::Map(map) => match reference(held) {
                Some(target) => self.target(map, target, type_),
                None if self.schema.type_(type_).is_composite() => {
                    self.inline[type_] = true;
                    self.value(held, type_);
                }
                None => {}
            },
            _ => {}
        }
    }

    fn resource(&mut self, path: &str) {
        match self.view.index.resource(path) {
            Some(resource) => self.current.resources.push(resource),
            None => self.current.dangling.push(path_hash(path)),
        }
    }

    fn target(&mut self, map: &Map, target: &Value, type_: TypeId) {
        let view = self.view;
        let find =
            || Ok::<_, Infallible>(target.as_str().and_then(|text| view.file(text.split('$').next()?)));
        // For requests, a reference that contains `$` is an error, so it must not be in the cache that the
        // search shares with requests.
        let is_plain = target.as_str().is_some_and(|text| !text.contains('$'));
        let Ok(file) = if is_plain { view.index.ref_targets().get(map, find) } else { find() };
        let Some(file) = file else {
            let path = target.as_str().and_then(|text| text.split('$').next());
            self.current.dangling.extend(path.map(path_hash));
            return;
        };
        if view.index.schema_of(file).is_some_and(|id| self.expected(type_)[id as usize]) {
            self.current.targets.push(file);
        } else {
            self.current.loose.insert((file, type_));
        }
    }

    /// For each schema id, whether datafiles of the schema have this type.
    fn expected(&mut self, type_: TypeId) -> Rc<[bool]> {
        let (schema, index) = (self.schema, self.view.index);
        Rc::clone(self.expected[type_].get_or_insert_with(|| index.expected(schema, type_).into()))
    }
}
