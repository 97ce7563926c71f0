//! Lookup tables of a bundle: paths and schemas of datafiles, resources by path, and back-references.

use std::sync::Arc;

use qontract_bundle::{Bundle, Document, Map, Value};
use rayon::prelude::*;

use crate::columns::Columns;
use crate::ref_targets::RefTargetCache;
use crate::schema::{BackReference, Schema, TypeId};
use crate::source::{FileId, ResourceId};

/// A hash map with a fast hash function that is not resistant to attacks: the keys are paths and schemas of
/// the bundle, not untrusted input.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// The lookup tables of one bundle.
#[derive(Debug)]
pub struct Index {
    /// The top-level maps of all datafiles, stored contiguously so that reading many of them does not follow
    /// a pointer for each.
    roots: Vec<Option<Map>>,
    tables: Arc<IndexTables>,
    ref_targets: RefTargetCache,
    columns: Columns,
}

/// The tables that depend only on the paths of a bundle, the schemas of its datafiles and their
/// back-reference targets. Bundles for which all of these are equal share one instance.
#[derive(Debug)]
struct IndexTables {
    /// The concatenated paths of all datafiles; `ends` has the end offset of each.
    paths: String,
    ends: Vec<usize>,
    resources: HashMap<Box<str>, ResourceId>,
    schemas: HashMap<Box<str>, u32>,
    schema_names: Vec<Box<str>>,
    schema_of: Vec<Option<u32>>,
    files_of: Vec<Vec<FileId>>,
    /// Per datafile, its index among the datafiles of its schema.
    rows: Vec<u32>,
    /// Per back-reference of the schema, the datafiles that refer to each path.
    pointing: Vec<HashMap<Box<str>, Vec<FileId>>>,
}

impl Index {
    /// Builds the index of a bundle from scratch.
    pub fn new(bundle: &Bundle, schema: &Schema) -> Self {
        // The documents are read in parallel, because the time is spent on CPU cache misses.
        let documents = bundle.datafiles().par_iter().map(|datafile| &*datafile.document);
        let (roots, names) =
            documents.map(|document| (document.value.as_map().cloned(), document.schema())).unzip();
        let tables = Arc::new(IndexTables::new(bundle, names, schema));
        // Builds the path index now, so that no request waits for it.
        bundle.index_of("");
        Self::of(roots, tables)
    }

    fn of(roots: Vec<Option<Map>>, tables: Arc<IndexTables>) -> Self {
        let ref_targets = RefTargetCache::new(roots.len());
        Self { roots, tables, ref_targets, columns: Columns::default() }
    }

    /// Builds the index of `bundle` incrementally from `self`, the index of `last`. Both bundles must have
    /// the same GraphQL types.
    ///
    /// The tables are shared, and only changed documents are read, if all paths are equal and every changed
    /// document has the same schema and back-reference targets as before. Otherwise the index is rebuilt from
    /// scratch. The caches of reference targets and columns always start empty.
    #[must_use]
    pub fn derive(&self, last: &Bundle, bundle: &Bundle, schema: &Schema) -> Self {
        if !bundle.has_paths_of(last) && !have_equal_paths(bundle, last) {
            return Self::new(bundle, schema);
        }
        let mut roots = self.roots.clone();
        let files = last.datafiles().iter().zip(bundle.datafiles()).zip(&mut roots);
        for ((was, is), root) in files.filter(|((a, b), _)| !Arc::ptr_eq(&a.document, &b.document)) {
            if !have_equal_targets(&was.document, &is.document, schema) {
                return Self::new(bundle, schema);
            }
            *root = is.document.value.as_map().cloned();
        }
        // Builds the path index now, so that no request waits for it.
        bundle.index_of("");
        Self::of(roots, Arc::clone(&self.tables))
    }
}

/// Whether two bundles have the same datafile paths and the same resource paths.
fn have_equal_paths(a: &Bundle, b: &Bundle) -> bool {
    a.datafiles().len() == b.datafiles().len()
        && a.resources().len() == b.resources().len()
        && a.datafiles().iter().zip(b.datafiles()).all(|(a, b)| a.path == b.path)
        && a.resources().iter().zip(b.resources()).all(|(a, b)| a.path == b.path)
}

/// Whether two documents have the same schema and the same targets for all back-references.
fn have_equal_targets(a: &Document, b: &Document, schema: &Schema) -> bool {
    let mut references = schema.back_references().iter();
    a.schema() == b.schema()
        && references.all(|reference| {
            let all = |document: &Document| {
                let mut found = Vec::new();
                targets(&document.value, &reference.path, &mut |target| found.push(target.to_owned()));
                found
            };
            a.schema() != Some(&*reference.schema) || all(a) == all(b)
        })
}

impl IndexTables {
    fn new(bundle: &Bundle, names: Vec<Option<&str>>, schema: &Schema) -> Self {
        let count = names.len();
        let mut tables = Self {
            paths: String::with_capacity(bundle.datafiles().iter().map(|file| file.path.len()).sum()),
            ends: Vec::with_capacity(count),
            resources: HashMap::default(),
            schemas: HashMap::default(),
            schema_names: Vec::new(),
            schema_of: Vec::with_capacity(count),
            files_of: Vec::new(),
            rows: Vec::with_capacity(count),
            pointing: Vec::new(),
        };
        for (id, (datafile, name)) in (0..).zip(bundle.datafiles().iter().zip(names)) {
            tables.paths.push_str(&datafile.path);
            tables.ends.push(tables.paths.len());
            let known = name.map(|name| match tables.schemas.get(name) {
                Some(known) => *known,
                None => tables.add_schema(name),
            });
            tables.schema_of.push(known);
            let files = known.map(|known| &mut tables.files_of[known as usize]);
            tables
                .rows
                .push(files.as_ref().map_or(0, |files| u32::try_from(files.len()).unwrap_or(u32::MAX)));
            if let Some(files) = files {
                files.push(id);
            }
        }
        let references = schema.back_references().par_iter();
        let (pointing, resources) = rayon::join(
            || references.map(|reference| tables.pointing_by(bundle, reference)).collect(),
            || (0..).zip(bundle.resources()).map(|(id, resource)| (resource.path.clone(), id)).collect(),
        );
        Self { resources, pointing, ..tables }
    }

    fn add_schema(&mut self, name: &str) -> u32 {
        let id = u32::try_from(self.schema_names.len()).unwrap_or(u32::MAX);
        self.schemas.insert(name.into(), id);
        self.schema_names.push(name.into());
        self.files_of.push(Vec::new());
        id
    }

    fn pointing_by(&self, bundle: &Bundle, reference: &BackReference) -> HashMap<Box<str>, Vec<FileId>> {
        let mut pointing: HashMap<Box<str>, Vec<FileId>> = HashMap::default();
        for file in self.files_of(&reference.schema) {
            let value = &bundle.datafiles()[*file as usize].document.value;
            targets(value, &reference.path, &mut |target| match pointing.get_mut(target) {
                // All targets of one datafile are visited consecutively, so a duplicate is always the last
                // entry.
                Some(files) if files.last() == Some(file) => {}
                Some(files) => files.push(*file),
                None => {
                    pointing.insert(target.into(), vec![*file]);
                }
            });
        }
        pointing
    }

    fn files_of(&self, schema: &str) -> &[FileId] {
        self.schemas.get(schema).map_or(&[], |id| &self.files_of[*id as usize])
    }
}

impl Index {
    /// Whether both indexes share their tables. If so, the ids, paths and schemas of both bundles are equal.
    pub fn has_tables_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tables, &other.tables)
    }

    /// The path of a datafile.
    pub fn path(&self, file: FileId) -> &str {
        let file = file as usize;
        let start = file.checked_sub(1).map_or(0, |before| self.tables.ends[before]);
        &self.tables.paths[start..self.tables.ends[file]]
    }

    /// The top-level map of a datafile; `None` if the datafile is not a map.
    pub fn root(&self, file: FileId) -> Option<&Map> {
        self.roots[file as usize].as_ref()
    }

    /// The cache of reference targets.
    pub fn ref_targets(&self) -> &RefTargetCache {
        &self.ref_targets
    }

    /// The column cache, for fields that long lists read.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The index of a datafile among the [datafiles of its schema](Self::files_of).
    pub fn row(&self, file: FileId) -> usize {
        self.tables.rows[file as usize] as usize
    }

    /// The resource at `path`.
    pub fn resource(&self, path: &str) -> Option<ResourceId> {
        self.tables.resources.get(path).copied()
    }

    /// The datafiles of a schema, ordered by path.
    pub fn files_of(&self, schema: &str) -> &[FileId] {
        self.tables.files_of(schema)
    }

    /// All schemas that have datafiles, with the number of datafiles of each.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, usize)> {
        self.tables.schema_names.iter().zip(&self.tables.files_of).map(|(name, files)| (&**name, files.len()))
    }

    /// The schema id of a datafile; `None` if it has no `$schema`.
    pub fn schema_of(&self, file: FileId) -> Option<u32> {
        self.tables.schema_of[file as usize]
    }

    /// The id of a schema; `None` if no datafile has the schema.
    pub fn schema_id(&self, name: &str) -> Option<u32> {
        self.tables.schemas.get(name).copied()
    }

    /// The name of the schema with this id.
    pub fn schema_name(&self, id: u32) -> &str {
        &self.tables.schema_names[id as usize]
    }

    /// The number of schemas that have datafiles.
    pub fn schema_count(&self) -> usize {
        self.tables.schema_names.len()
    }

    /// For each schema id, whether datafiles of the schema have this type.
    pub(crate) fn expected(&self, schema: &Schema, type_: TypeId) -> Vec<bool> {
        let names = schema.schemas_of(type_);
        let is_one = |id| names.iter().any(|name| **name == *self.schema_name(id));
        (0..).take(self.schema_count()).map(is_one).collect()
    }

    /// The datafiles that refer to `path` through this back-reference of the schema.
    pub fn pointing(&self, back_reference: usize, path: &str) -> &[FileId] {
        self.tables.pointing[back_reference].get(path).map_or(&[], Vec::as_slice)
    }

    /// The mean number of datafiles that refer to a path through this back-reference, over all paths that
    /// have any.
    pub fn mean_pointing(&self, back_reference: usize) -> usize {
        let pointing = &self.tables.pointing[back_reference];
        // The iteration order of the hash map does not affect the sum.
        let total: usize = pointing.values().map(Vec::len).sum();
        total.div_ceil(pointing.len().max(1))
    }
}

/// Calls `found` with the target of every reference at `path`. Elements of lists along the path are searched;
/// values that are not references, such as `null` or strings, are skipped.
pub fn targets<'v>(value: &'v Value, path: &[Box<str>], found: &mut dyn FnMut(&'v str)) {
    match (value, path) {
        (Value::List(items), _) => items.iter().for_each(|item| targets(item, path, found)),
        (Value::Map(map), [key, rest @ ..]) => {
            if let Some(value) = map.get(key) {
                targets(value, rest, found);
            }
        }
        (Value::Map(map), []) => {
            if let Some(Value::Str(target)) = map.get("$ref") {
                found(target);
            }
        }
        _ => {}
    }
}
