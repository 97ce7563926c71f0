//! Impact analysis: finds the elements of a request's root lists whose responses may change if some datafiles
//! change.
//!
//! Walks the plan backwards, from the innermost selections to the root. The output for an object may change
//! if its datafile changes, or if the output for an object that it refers to may change.
//!
//! **Invariant:** elements that are not affected have identical responses
//! (`elements_that_are_not_affected_have_identical_answers`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use foldhash::fast::RandomState;
use qontract_bundle::Resource;
use qontract_bundle::diff::Diff;
use rayon::prelude::*;

use crate::data_view::DataView;
use crate::element_selection::ElementSelection;
use crate::elements::NamedOperation;
use crate::engine::Engine;
use crate::index::targets;
use crate::plan::{FieldPlan, FieldTarget, Plan, SelectionId, ValueForm};
use crate::reference_graph::ReferenceGraph;
use crate::schema::{Resolver, Schema, TypeId};
use crate::source::{FileId, ResourceId};

type Files = HashSet<FileId, RandomState>;

impl Engine {
    /// Finds the elements of a request's root lists whose responses may change if these datafiles change.
    ///
    /// The result has one entry per list, possibly empty; lists with arguments are omitted. The result is
    /// `None` if the request cannot be executed, or if the affected elements cannot be bounded because the
    /// request reads the datafiles that name a resource, or back-references to an inline object.
    pub fn affected_elements(
        &self,
        operation: NamedOperation<'_>,
        paths: &BTreeSet<Box<str>>,
    ) -> Option<ElementSelection> {
        let (plan, _) = self.planned_query(operation.into())?;
        let (schema, view, links) = (self.schema(), self.view(), self.references());
        let files = paths.iter().filter_map(|path| view.file(path)).collect();
        ImpactWalk { schema, view, links, plan: &plan, files, affected_by_selection: HashMap::new() }.lists()
    }

    /// The datafiles that name at least one of these resources.
    pub fn datafiles_naming<'p>(&self, resources: impl IntoIterator<Item = &'p str>) -> BTreeSet<Box<str>> {
        let named = resources.into_iter().filter_map(|path| self.index().resource(path));
        let files = named.flat_map(|resource| self.references().naming(resource));
        files.map(|file| self.index().path(file).into()).collect()
    }

    /// The datafiles that name at least one resource for which the predicate is true.
    pub fn datafiles_naming_where(&self, is_such: impl Fn(&Resource) -> bool + Sync) -> BTreeSet<Box<str>> {
        // The graph is built before the thread pool is entered: a pool thread that waits for the graph could
        // block the pool that builds it.
        let (resources, links) = (self.bundle().resources(), self.references());
        let is_named =
            |place: usize| ResourceId::try_from(place).is_ok_and(|id| links.naming(id).next().is_some());
        let such = (0..resources.len()).into_par_iter();
        let such = such.filter(|place| is_named(*place) && is_such(&resources[*place]));
        let such: Vec<&str> = such.map(|place| &*resources[place].path).collect();
        self.datafiles_naming(such)
    }

    /// The datafiles that are in the diff, or that name a resource in the diff.
    pub(crate) fn changed_datafiles(&self, diff: &Diff) -> BTreeSet<Box<str>> {
        let mut paths = self.datafiles_naming(diff.resources.iter().map(|change| &*change.path));
        paths.extend(diff.datafiles.iter().map(|change| Box::from(&*change.path)));
        paths
    }
}

/// A backward walk over a plan.
struct ImpactWalk<'a> {
    schema: &'a Schema,
    view: DataView<'a>,
    links: &'a ReferenceGraph,
    plan: &'a Plan,
    /// The datafiles that change.
    files: Files,
    /// Memoized results, per selection: the datafiles whose objects may have a different output.
    affected_by_selection: HashMap<SelectionId, Rc<Files>>,
}

impl ImpactWalk<'_> {
    fn lists(mut self) -> Option<ElementSelection> {
        let mut lists = BTreeMap::new();
        let plan = self.plan;
        let root = &plan.selections[plan.root];
        for field in &root.fields {
            let FieldTarget::Field(number) = field.target else { continue };
            let Resolver::Datafiles(name) = &self.schema.type_(root.type_).fields[number].resolver else {
                continue;
            };
            // Such lists are skipped: the elements that match arguments depend on other datafiles, and a list
            // without selections is written as a whole.
            if field.arguments.is_some() || selections(&field.form).next().is_none() {
                continue;
            }
            let mut paths = BTreeSet::new();
            for selection in selections(&field.form) {
                let reached = self.selection(selection)?;
                let all = self.view.index.files_of(name);
                #[expect(clippy::iter_over_hash_type, reason = "the result is sorted")]
                for file in &*reached {
                    if all.binary_search(file).is_ok() {
                        paths.insert(self.view.index.path(*file).into());
                    }
                }
            }
            lists.insert(field.key.clone(), paths);
        }
        Some(lists)
    }

    /// The datafiles whose objects may have a different output of this selection; `None` if they cannot be
    /// bounded.
    fn selection(&mut self, id: SelectionId) -> Option<Rc<Files>> {
        if let Some(known) = self.affected_by_selection.get(&id) {
            return Some(Rc::clone(known));
        }
        let plan = self.plan;
        let selection = &plan.selections[id];
        let mut reached = self.files.clone();
        // If a reference occurs where a scalar is expected, the whole target is written.
        #[expect(clippy::iter_over_hash_type, reason = "the result is a set")]
        for file in &self.files {
            reached.extend(self.links.mistyped_referrers(*file));
        }
        for field in &selection.fields {
            self.field(selection.type_, field, &mut reached)?;
        }
        let reached = Rc::new(reached);
        self.affected_by_selection.insert(id, Rc::clone(&reached));
        Some(reached)
    }

    #[expect(clippy::iter_over_hash_type, reason = "the result is a set")]
    fn field(&mut self, type_: TypeId, field: &FieldPlan, reached: &mut Files) -> Option<()> {
        let FieldTarget::Field(number) = field.target else { return Some(()) };
        let (schema, view, links) = (self.schema, self.view, self.links);
        let resolver = &schema.type_(type_).fields[number].resolver;
        match resolver {
            Resolver::Key | Resolver::BackReferences(_) => {}
            // Resources are compared as a whole: datafiles that name a changed resource are already among the
            // changed datafiles.
            Resolver::Resource => return self.reads_only_content(type_, field).then_some(()),
            Resolver::SchemaKey | Resolver::Meta => return Some(()),
            Resolver::Datafiles(_) | Resolver::Resources => return None,
        }
        if let Resolver::BackReferences(_) = resolver {
            // The back-references of an inline object are those of the path in its key `path`, which may be
            // any string.
            if links.may_be_inline(schema, type_) || selections(&field.form).next().is_none() {
                return None;
            }
        }
        let expected = view.index.expected(schema, field.shape.named);
        for selection in selections(&field.form) {
            let below = self.selection(selection)?;
            if let Resolver::BackReferences(reference) = resolver {
                let reference = &schema.back_references()[*reference];
                for file in &*below {
                    let value = &view.bundle.datafiles()[*file as usize].document.value;
                    targets(value, &reference.path, &mut |target| reached.extend(view.file(target)));
                }
                continue;
            }
            for file in &*below {
                reached.insert(*file);
                reached.extend(links.mistyped_referrers(*file));
                if view.index.schema_of(*file).is_some_and(|id| expected[id as usize]) {
                    reached.extend(links.referrers(*file));
                }
            }
        }
        Some(())
    }

    /// Whether a resource field reads only the content of the resource that the key of the field names:
    /// neither its back-references nor another resource.
    fn reads_only_content(&self, type_: TypeId, field: &FieldPlan) -> bool {
        let (schema, plan) = (self.schema, self.plan);
        let is_own_path = |number: usize| {
            // `path` of a datafile is not a key of the data but the datafile's own path.
            &*schema.type_(type_).fields[number].name == "path" && !schema.schemas_of(type_).is_empty()
        };
        let is_within = |selection: SelectionId| {
            let selection = &plan.selections[selection];
            let fields = &schema.type_(selection.type_).fields;
            selection.fields.iter().all(|field| match field.target {
                FieldTarget::Field(number) => match fields[number].resolver {
                    Resolver::Key => &*fields[number].name != "backrefs",
                    Resolver::SchemaKey => true,
                    _ => false,
                },
                FieldTarget::TypeName | FieldTarget::Schema | FieldTarget::Type => true,
            })
        };
        !matches!(field.target, FieldTarget::Field(number) if is_own_path(number))
            && selections(&field.form).all(is_within)
    }
}

/// The selections of a value: none for scalars and enums, one per object type otherwise.
fn selections(form: &ValueForm) -> impl Iterator<Item = SelectionId> {
    let (one, many) = match form {
        ValueForm::Scalar(_) | ValueForm::Enum => (None, [].as_slice()),
        ValueForm::Object(selection) => (Some(*selection), [].as_slice()),
        ValueForm::Abstract(selections) => (None, selections.as_slice()),
    };
    one.into_iter().chain(many.iter().map(|(_, selection)| *selection))
}
