//! The reference graph: all references that a request can follow, and the resources that each datafile names.
//!
//! Impact analysis walks this graph backwards to find the responses that a change can affect. Searching all
//! documents of a large bundle is slow, so the graph of a new bundle is built incrementally: documents that
//! are shared with the last bundle are not searched again.
//!
//! **Invariant:** the incremental graph equals the full one
//! (`incremental_reference_graph_equals_a_full_one`), except that it may list more types as inline.

mod lists;
mod search;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use crate::data_view::DataView;
use crate::footprint::MistypedTargets;
use crate::schema::{Dispatch, Kind, Resolver, Schema, TypeId};
use crate::source::{FileId, ResourceId};
use lists::IdLists;
use search::{CollectedRefs, DatafileRefs, MistypedRefs, PathHash, RefSearch, path_hash};

/// The references of one bundle, in both directions.
#[derive(Debug, PartialEq, Eq)]
pub struct ReferenceGraph {
    /// The references found in each datafile.
    collected: CollectedRefs,
    /// Per datafile, the datafiles that refer to it as the type of its schema.
    referrers: IdLists,
    /// Per resource, the datafiles that name it.
    naming: IdLists,
    /// The consequences of mistyped references, which read a datafile as a type other than that of its
    /// schema.
    mistyped: MistypedRefs,
}

/// Number of datafiles searched by one parallel task.
const CHUNK_SIZE: usize = 1024;

impl ReferenceGraph {
    /// Builds the graph from scratch: searches all datafiles, in parallel.
    pub(crate) fn build(schema: &Schema, view: DataView<'_>) -> Self {
        let types = types_of(schema, view);
        let files: Vec<FileId> = (0..).take(view.bundle.datafiles().len()).collect();
        let search = || RefSearch::new(schema, view);
        let parts = files.par_chunks(CHUNK_SIZE).map_init(search, |search, files| {
            for file in files {
                search.scan(*file, types_at(&types, view, *file));
            }
            search.take()
        });
        let mut all = CollectedRefs::default();
        for part in parts.collect::<Vec<_>>() {
            all.append(part);
        }
        Self::of(all, schema, view)
    }

    /// Builds the graph of `view` incrementally from `self`, the graph of `last`. Both bundles must have the
    /// same GraphQL types.
    ///
    /// Documents that both bundles share are not searched again, unless a datafile or resource that they
    /// refer to was added or removed, or a datafile that they refer to has a different schema.
    pub(crate) fn derive(&self, last: DataView<'_>, schema: &Schema, view: DataView<'_>) -> Self {
        let types = types_of(schema, view);
        let mut search = RefSearch::new(schema, view);
        if view.index.has_tables_of(last.index) {
            // The tables are shared, so all ids and schemas are unchanged.
            let files = last.bundle.datafiles().iter().zip(view.bundle.datafiles());
            for (file, (was, is)) in (0..).zip(files) {
                if Arc::ptr_eq(&was.document, &is.document) {
                    search.push_copy(&self.collected, file);
                } else {
                    search.scan(file, types_at(&types, view, file));
                }
            }
        } else {
            self.scan_changed(&mut search, &types, last, view);
        }
        let mut found = search.take();
        found.inline.extend(&self.collected.inline);
        Self::of(found, schema, view)
    }

    /// Searches the documents whose references may have changed, and remaps the ids in the references of the
    /// other documents.
    fn scan_changed(
        &self,
        search: &mut RefSearch<'_>,
        types: &[BTreeSet<TypeId>],
        last: DataView<'_>,
        view: DataView<'_>,
    ) {
        let moved = IdMapping::between(last, view);
        let mut before = (0..).zip(last.bundle.datafiles()).peekable();
        for (file, datafile) in (0..).zip(view.bundle.datafiles()) {
            while before.next_if(|(_, was)| was.path < datafile.path).is_some() {}
            let was = before.next_if(|(_, was)| was.path == datafile.path);
            let same = was.filter(|(_, was)| Arc::ptr_eq(&was.document, &datafile.document));
            match same.and_then(|(was, _)| moved.remap(&self.collected, was)) {
                Some(known) => search.push(file, known),
                None => search.scan(file, types_at(types, view, file)),
            }
        }
    }

    fn of(collected: CollectedRefs, schema: &Schema, view: DataView<'_>) -> Self {
        let reversed = || {
            let referrers = collected.targets.reversed(view.bundle.datafiles().len());
            (referrers, collected.resources.reversed(view.bundle.resources().len()))
        };
        let follow = || RefSearch::new(schema, view).follow_mistyped(&collected.loose);
        let ((referrers, naming), mistyped) = rayon::join(reversed, follow);
        Self { collected, referrers, naming, mistyped }
    }

    /// The datafiles that at least one reference reads as a type other than that of their schema.
    pub(crate) fn mistyped_targets(&self) -> &MistypedTargets {
        &self.mistyped.targets
    }

    /// The datafiles that refer to this datafile as the type of its schema.
    pub(crate) fn referrers(&self, file: FileId) -> &[FileId] {
        self.referrers.of(file)
    }

    /// The datafiles that refer to this datafile through a mistyped reference, or that refer to it while they
    /// are themselves read as a different type.
    pub(crate) fn mistyped_referrers(&self, file: FileId) -> impl Iterator<Item = FileId> {
        self.mistyped.referrers.get(&file).into_iter().flatten().copied()
    }

    /// The datafiles that name a resource, possibly with duplicates.
    pub(crate) fn naming(&self, resource: ResourceId) -> impl Iterator<Item = FileId> {
        let loosely = self.mistyped.naming.get(&resource).into_iter().flatten();
        self.naming.of(resource).iter().chain(loosely).copied()
    }

    /// Whether objects of a type may be inline in a datafile, instead of in a separate datafile.
    pub(crate) fn may_be_inline(&self, schema: &Schema, type_: TypeId) -> bool {
        related_types(schema, type_)
            .any(|type_| self.collected.inline.contains(&type_) || self.mistyped.inline.contains(&type_))
    }

    /// Whether a reference reads a datafile of a different schema as this type.
    pub(crate) fn has_mistyped_refs_to(&self, schema: &Schema, type_: TypeId) -> bool {
        related_types(schema, type_).any(|type_| self.mistyped.read_as.contains(&type_))
    }
}

/// A type, its object types if it is an interface, and all interfaces of these types.
fn related_types(schema: &Schema, type_: TypeId) -> impl Iterator<Item = TypeId> {
    let types = std::iter::once(type_).chain(schema.type_(type_).possible.iter().copied());
    types.flat_map(|type_| schema.type_(type_).interfaces.iter().copied().chain([type_]))
}

/// Per schema id, the types as which its datafiles are read.
fn types_of(schema: &Schema, view: DataView<'_>) -> Vec<BTreeSet<TypeId>> {
    let mut types = vec![BTreeSet::new(); view.index.schema_count()];
    let mut add = |name: &str, type_: TypeId| {
        if let Some(id) = view.index.schema_id(name) {
            types[id as usize].insert(type_);
        }
    };
    for (type_, definition) in schema.types().iter().enumerate() {
        // If the type is resolved by schema, the datafiles belong to the object types, which are visited
        // separately.
        if !matches!(definition.kind, Kind::Interface(Dispatch::Schema)) {
            schema.schemas_of(type_).iter().for_each(|name| add(name, type_));
        }
        for field in &definition.fields {
            if let Resolver::BackReferences(reference) = field.resolver {
                add(&schema.back_references()[reference].schema, field.shape.named);
            }
        }
    }
    types
}

fn types_at<'t>(
    types: &'t [BTreeSet<TypeId>],
    view: DataView<'_>,
    file: FileId,
) -> Option<&'t BTreeSet<TypeId>> {
    view.index.schema_of(file).map(|id| &types[id as usize])
}

/// Maps the ids of datafiles and resources in one bundle to the ids in another. Files that were removed or
/// have a different schema map to `None`, because references to them may resolve differently.
struct IdMapping {
    files: Vec<Option<FileId>>,
    resources: Vec<Option<ResourceId>>,
    /// Hashes of the added paths, which dangling references may now resolve to.
    new: HashSet<PathHash>,
}

impl IdMapping {
    fn between(last: DataView<'_>, view: DataView<'_>) -> Self {
        fn schema(view: DataView<'_>, file: FileId) -> Option<&str> {
            view.index.schema_of(file).map(|id| view.index.schema_name(id))
        }
        fn files(view: DataView<'_>) -> impl Iterator<Item = &str> {
            view.bundle.datafiles().iter().map(|file| &*file.path)
        }
        fn resources(view: DataView<'_>) -> impl Iterator<Item = &str> {
            view.bundle.resources().iter().map(|resource| &*resource.path)
        }
        let mut new = HashSet::new();
        let mut moved = map_paths(files(last), files(view), &mut new);
        for (was, is) in (0..).zip(&mut moved) {
            *is = is.filter(|is| schema(last, was) == schema(view, *is));
        }
        let resources = map_paths(resources(last), resources(view), &mut new);
        Self { files: moved, resources, new }
    }

    /// The references of a datafile with the ids of the new bundle; `None` if they may resolve differently,
    /// so that the datafile must be searched again.
    fn remap(&self, found: &CollectedRefs, file: FileId) -> Option<DatafileRefs> {
        fn moved(list: &[u32], to: &[Option<u32>]) -> Option<Vec<u32>> {
            list.iter().map(|one| to[*one as usize]).collect()
        }
        let dangling = found.dangling.get(&file);
        if !self.new.is_empty() && dangling.into_iter().flatten().any(|trace| self.new.contains(trace)) {
            return None;
        }
        let mut loose = BTreeSet::new();
        for (target, type_) in found.loose.get(&file).into_iter().flatten() {
            loose.insert((self.files[*target as usize]?, *type_));
        }
        Some(DatafileRefs {
            targets: moved(found.targets.of(file), &self.files)?,
            resources: moved(found.resources.of(file), &self.resources)?,
            loose,
            dangling: dangling.cloned().unwrap_or_default(),
        })
    }
}

/// Returns the index of each path in `others` and adds the hashes of the other paths to `new`. Both iterators
/// must be sorted.
fn map_paths<'p>(
    paths: impl Iterator<Item = &'p str>,
    others: impl Iterator<Item = &'p str>,
    new: &mut HashSet<PathHash>,
) -> Vec<Option<u32>> {
    let mut others = (0..).zip(others).peekable();
    let place = |path| {
        while let Some((_, other)) = others.next_if(|(_, other)| *other < path) {
            new.insert(path_hash(other));
        }
        others.next_if(|(_, other)| *other == path).map(|(place, _)| place)
    };
    let places = paths.map(place).collect();
    new.extend(others.map(|(_, other)| path_hash(other)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use qontract_bundle::{Pool, load};
    use serde_json::{Value, json};

    fn bundle(data: &Value) -> Value {
        let list = |name: &str, type_: &str, schema: &str| json!({"name": name, "type": type_, "isList": true, "datafileSchema": schema});
        let field = |name: &str, type_: &str| json!({"name": name, "type": type_});
        let resource = json!({"path": "", "content": "c", "sha256sum": "s", "backrefs": []});
        json!({
            "git_commit": "", "git_commit_timestamp": "", "schemas": {}, "data": data,
            "resources": {"/r/a": resource, "/r/b": resource},
            "graphql": [
                {"name": "Query", "fields": [list("teams", "Team", "/team.yml"), list("roles", "Role", "/role.yml")]},
                {"name": "Team", "fields": [field("name", "string"), field("lead", "Role"), {"name": "file", "type": "PathObject_v1", "isResource": true}]},
                {"name": "Role", "fields": [field("name", "string"), {"name": "grants", "type": "Grant", "isList": true}]},
                {"name": "Grant", "fields": [field("team", "Team")]},
                {"name": "PathObject_v1", "fields": [field("path", "string")]},
            ],
        })
    }

    fn check(change: impl FnOnce(&mut Value)) {
        let mut data = json!({
            "/roles/dev.yml": {"$schema": "/role.yml", "name": "dev", "grants": [{"team": {"$ref": "/teams/a.yml"}}, {"team": {"$ref": "/teams/b.yml"}}]},
            "/roles/ops.yml": {"$schema": "/role.yml", "name": "ops", "grants": []},
            "/teams/a.yml": {"$schema": "/team.yml", "name": "a", "lead": {"$ref": "/roles/dev.yml"}, "file": "/r/a"},
            "/teams/b.yml": {"$schema": "/team.yml", "name": "b", "file": "/r/b"},
        });
        let pool = Pool::default();
        let engine = |data: &Value| {
            let bytes = serde_json::to_vec(&bundle(data)).unwrap();
            Engine::new(Arc::new(load(&bytes, &pool).unwrap())).unwrap()
        };
        let last = engine(&data);
        change(&mut data);
        let next = engine(&data);
        // The comparison is done with shared tables, if they are equal, and again with separate tables.
        for next in [last.derive(Arc::clone(next.bundle())).unwrap(), next] {
            let full = ReferenceGraph::build(next.schema(), next.view());
            let incremental = last.references().derive(last.view(), next.schema(), next.view());
            assert_eq!(incremental, full, "{data:#}");
            // The change is also reverted incrementally.
            let back = full.derive(next.view(), last.schema(), last.view());
            let inline = last.references().collected.inline.clone();
            assert_eq!(
                ReferenceGraph { collected: CollectedRefs { inline, ..back.collected }, ..back },
                *last.references(),
                "{data:#}"
            );
        }
    }

    #[test]
    fn types_with_mistyped_references_are_known() {
        let (own, other) = (json!({"$ref": "/teams/a.yml"}), json!({"$ref": "/roles/dev.yml"}));
        for (team, taken_for) in [(own, [false, false]), (other, [true, false])] {
            let data = json!({
                "/roles/dev.yml": {"$schema": "/role.yml", "grants": [{"team": team}]},
                "/teams/a.yml": {"$schema": "/team.yml", "lead": {"$ref": "/roles/dev.yml"}},
            });
            let bytes = serde_json::to_vec(&bundle(&data)).unwrap();
            let engine = Engine::new(Arc::new(load(&bytes, &Pool::default()).unwrap())).unwrap();
            let found = ["Team", "Role"].map(|name| {
                let type_ = engine.schema().type_id(name).unwrap();
                engine.references().has_mistyped_refs_to(engine.schema(), type_)
            });
            assert_eq!(found, taken_for, "{data:#}");
        }
    }

    #[test]
    fn incremental_reference_graph_equals_a_full_one() {
        check(|_| {});
        check(|data| data["/teams/a.yml"]["lead"] = json!({"$ref": "/roles/ops.yml"}));
        check(|data| data["/roles/ops.yml"]["grants"] = json!([{"team": {"$ref": "/teams/a.yml"}}]));
        check(|data| data["/teams/b.yml"]["file"] = json!("/r/a"));
        check(|data| data["/a-first.yml"] = json!({"$schema": "/role.yml", "name": "new"}));
        check(|data| {
            data["/z-last.yml"] = json!({"$schema": "/team.yml", "lead": {"$ref": "/roles/ops.yml"}});
        });
        check(|data| drop(data.as_object_mut().unwrap().remove("/roles/ops.yml")));
        check(|data| drop(data.as_object_mut().unwrap().remove("/teams/b.yml")));
        check(|data| data["/teams/a.yml"]["$schema"] = json!("/role.yml"));
        check(|data| data["/teams/a.yml"]["lead"] = json!({"$ref": "/teams/b.yml"}));
        check(|data| data["/teams/a.yml"]["lead"] = json!({"$ref": "/nowhere.yml"}));
        check(|data| data["/teams/a.yml"]["lead"] = json!({"name": "within"}));
        check(|data| data["/teams/a.yml"]["name"] = json!({"$ref": "/roles/ops.yml"}));
        check(|data| data["/teams/b.yml"]["file"] = json!("/r/none"));
    }
}
