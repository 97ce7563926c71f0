//! Checks that fields with the same response name can be merged.
//!
//! Fields are compared in the same order as in graphql-js, with the same budget for comparisons.

mod conflict;

use std::collections::HashMap;
use std::rc::Rc;

use super::{Fragments, MAX_FRAGMENT_DEPTH};
use crate::document::syntax::tree::{Argument, Field, Selection, SelectionSet};
use crate::schema::{FieldDef, Kind, Schema, Shape, TypeId};
pub use conflict::Conflict;
use conflict::{abbreviated, same_value};

/// The reason why the comparison ended early.
pub enum OverlapAbort {
    /// The budget is exceeded.
    Budget,
    /// Fragments are nested too deeply.
    TooDeep,
}

type OverlapResult<T> = Result<T, OverlapAbort>;

/// A field and its parent type.
#[derive(Clone, Copy)]
struct FieldDetail<'c, 't> {
    parent: Option<TypeId>,
    node: &'c Field<'t>,
    definition: Option<&'c FieldDef>,
}

/// The fields of a selection set by response name, and the fragments that the set spreads.
struct CollectedFields<'c, 't> {
    groups: Vec<(&'t str, Rc<[FieldDetail<'c, 't>]>)>,
    index: HashMap<&'t str, usize>,
    fragments: Rc<[&'t str]>,
    /// Fragments with which this set was compared, and whether only as mutually exclusive.
    compared: HashMap<&'t str, bool>,
    /// For each other collection, the groups that occur in both collections.
    shared: HashMap<usize, Rc<[(usize, usize)]>>,
}

/// The state of the comparison, with memoized results and the remaining budget.
pub struct Overlap<'c, 't> {
    schema: &'c Schema,
    fragments: &'c Fragments<'c, 't>,
    collected: Vec<CollectedFields<'c, 't>>,
    /// Indexes of collections, by parent type and offset of the selection set.
    collection_ids: HashMap<(Option<TypeId>, usize), usize>,
    /// Pairs of fragments that were compared, and whether only as mutually exclusive.
    pairs: HashMap<(&'t str, &'t str), bool>,
    budget: usize,
    steps: usize,
}

impl<'c, 't> Overlap<'c, 't> {
    pub fn new(schema: &'c Schema, fragments: &'c Fragments<'c, 't>) -> Self {
        let (collection_ids, pairs) = (HashMap::new(), HashMap::new());
        Self { schema, fragments, collected: Vec::new(), collection_ids, pairs, budget: 500_000, steps: 0 }
    }

    fn spend(&mut self, cost: usize) -> OverlapResult<()> {
        self.budget = self.budget.checked_sub(cost).ok_or(OverlapAbort::Budget)?;
        Ok(())
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> OverlapResult<T>) -> OverlapResult<T> {
        if self.steps >= MAX_FRAGMENT_DEPTH {
            return Err(OverlapAbort::TooDeep);
        }
        self.steps += 1;
        let result = inner(self);
        self.steps -= 1;
        result
    }

    /// The conflicts within a selection set.
    pub fn within(
        &mut self,
        parent: Option<TypeId>,
        set: &'c SelectionSet<'t>,
    ) -> OverlapResult<Vec<Conflict<'t>>> {
        let mut conflicts = Vec::new();
        if all_differ(set) {
            return Ok(conflicts);
        }
        let own = self.collect(parent, set);
        for group in 0..self.collected[own].groups.len() {
            let (name, fields) = self.collected[own].groups[group].clone();
            for (index, first) in fields.iter().enumerate() {
                for second in &fields[index + 1..] {
                    conflicts.extend(self.conflict(false, name, *first, *second)?);
                }
            }
        }
        let fragments = Rc::clone(&self.collected[own].fragments);
        if fragments.len() > 1 || !self.collected[own].groups.is_empty() {
            for (index, first) in fragments.iter().enumerate() {
                self.with_fragment(&mut conflicts, false, own, first)?;
                for second in &fragments[index + 1..] {
                    self.between_fragments(&mut conflicts, false, first, second)?;
                }
            }
        }
        Ok(conflicts)
    }

    /// Compares fields with those of a fragment, and of the fragments in it.
    fn with_fragment(
        &mut self,
        conflicts: &mut Vec<Conflict<'t>>,
        exclusive: bool,
        own: usize,
        name: &'t str,
    ) -> OverlapResult<()> {
        self.spend(1)?;
        let collected = &mut self.collected[own];
        if collected.groups.is_empty() {
            return Ok(());
        }
        match collected.compared.get(name) {
            Some(false) => return Ok(()),
            Some(true) if exclusive => return Ok(()),
            _ => {}
        }
        collected.compared.insert(name, exclusive);
        let Some(other) = self.collect_fragment(name) else { return Ok(()) };
        if own == other {
            return Ok(());
        }
        self.between(conflicts, exclusive, own, other)?;
        let inner = Rc::clone(&self.collected[other].fragments);
        for name in inner.iter() {
            self.deeper(|overlap| overlap.with_fragment(conflicts, exclusive, own, name))?;
        }
        Ok(())
    }

    /// Compares the fields of two fragments, and of the fragments in them.
    fn between_fragments(
        &mut self,
        conflicts: &mut Vec<Conflict<'t>>,
        exclusive: bool,
        first: &'t str,
        second: &'t str,
    ) -> OverlapResult<()> {
        self.spend(2)?;
        let covers = |known: Option<&bool>| known.is_some_and(|known| exclusive || !*known);
        if first == second
            || covers(self.pairs.get(&(first, second)))
            || covers(self.pairs.get(&(second, first)))
        {
            return Ok(());
        }
        self.pairs.insert((first, second), exclusive);
        let (Some(one), Some(other)) = (self.fragments.get(first), self.fragments.get(second)) else {
            return Ok(());
        };
        let (one, other) = (one.name.text, other.name.text);
        let (Some(one), Some(other)) = (self.collect_fragment(one), self.collect_fragment(other)) else {
            return Ok(());
        };
        self.between(conflicts, exclusive, one, other)?;
        let inner = Rc::clone(&self.collected[other].fragments);
        for name in inner.iter() {
            self.deeper(|overlap| overlap.between_fragments(conflicts, exclusive, first, name))?;
        }
        let inner = Rc::clone(&self.collected[one].fragments);
        for name in inner.iter() {
            self.deeper(|overlap| overlap.between_fragments(conflicts, exclusive, name, second))?;
        }
        Ok(())
    }

    /// Compares two collections of fields.
    fn between(
        &mut self,
        conflicts: &mut Vec<Conflict<'t>>,
        exclusive: bool,
        one: usize,
        other: usize,
    ) -> OverlapResult<()> {
        if self.collected[one].groups.is_empty() || self.collected[other].groups.is_empty() {
            return Ok(());
        }
        for (mine, theirs) in self.shared(one, other)?.iter() {
            let (name, mine) = self.collected[one].groups[*mine].clone();
            let (_, theirs) = self.collected[other].groups[*theirs].clone();
            for first in mine.iter() {
                for second in theirs.iter() {
                    conflicts.extend(self.conflict(exclusive, name, *first, *second)?);
                }
            }
        }
        Ok(())
    }

    /// The groups that two collections share.
    fn shared(&mut self, one: usize, other: usize) -> OverlapResult<Rc<[(usize, usize)]>> {
        if let Some(shared) = self.collected[one].shared.get(&other) {
            return Ok(Rc::clone(shared));
        }
        self.spend(self.collected[one].groups.len())?;
        let index = &self.collected[other].index;
        let both = |(mine, (name, _)): (usize, &(&str, _))| Some((mine, *index.get(name)?));
        let shared: Rc<[_]> = self.collected[one].groups.iter().enumerate().filter_map(both).collect();
        self.collected[one].shared.insert(other, Rc::clone(&shared));
        Ok(shared)
    }

    /// The conflict between two fields with the same response name.
    fn conflict(
        &mut self,
        parents_exclude: bool,
        name: &'t str,
        one: FieldDetail<'c, 't>,
        other: FieldDetail<'c, 't>,
    ) -> OverlapResult<Option<Conflict<'t>>> {
        let is_object = |parent: Option<TypeId>| {
            parent.is_some_and(|parent| matches!(self.schema.type_(parent).kind, Kind::Object))
        };
        let exclusive =
            parents_exclude || one.parent != other.parent && is_object(one.parent) && is_object(other.parent);
        self.spend(2)?;
        let same_name = one.node.name == other.node.name;
        let (type_, other_type) = (one.type_(), other.type_());
        if one.is_simple() && other.is_simple() && type_ == other_type && same_name {
            return Ok(None);
        }
        let conflict_because = |reason| Conflict::new(name, reason, one.node.at, other.node.at);
        if !exclusive {
            if !same_name {
                let (one, other) = (abbreviated(one.node.name), abbreviated(other.node.name));
                return Ok(Some(conflict_because(format!("\"{one}\" and \"{other}\" are different fields"))));
            }
            if !self.same_arguments(&one.node.arguments, &other.node.arguments)? {
                return Ok(Some(conflict_because("they have differing arguments".to_owned())));
            }
        }
        if let (Some(type_), Some(other_type)) = (type_, other_type)
            && self.types_conflict(type_, other_type)
        {
            let (type_, other_type) = (self.schema.show(type_), self.schema.show(other_type));
            let reason = format!("they return conflicting types \"{type_}\" and \"{other_type}\"");
            return Ok(Some(conflict_because(reason)));
        }
        let (Some(set), Some(other_set)) = (&one.node.set, &other.node.set) else { return Ok(None) };
        let first = self.collect(type_.map(|type_| type_.named), set);
        let second = self.collect(other_type.map(|type_| type_.named), other_set);
        let conflicts = self.deeper(|overlap| overlap.between_sets(exclusive, first, second))?;
        Ok(Conflict::of_inner(name, one.node.at, other.node.at, &conflicts))
    }

    fn between_sets(
        &mut self,
        exclusive: bool,
        one: usize,
        other: usize,
    ) -> OverlapResult<Vec<Conflict<'t>>> {
        let mut conflicts = Vec::new();
        self.between(&mut conflicts, exclusive, one, other)?;
        let of_one = Rc::clone(&self.collected[one].fragments);
        let of_other = Rc::clone(&self.collected[other].fragments);
        for name in of_other.iter() {
            self.with_fragment(&mut conflicts, exclusive, one, name)?;
        }
        for name in of_one.iter() {
            self.with_fragment(&mut conflicts, exclusive, other, name)?;
        }
        for first in of_one.iter() {
            for second in of_other.iter() {
                self.between_fragments(&mut conflicts, exclusive, first, second)?;
            }
        }
        Ok(conflicts)
    }

    fn same_arguments(&mut self, one: &[Argument<'_>], other: &[Argument<'_>]) -> OverlapResult<bool> {
        if one.len() != other.len() {
            return Ok(false);
        }
        for argument in one {
            self.spend(1)?;
            // If a name occurs several times, the last argument is used.
            let same_name = other.iter().rfind(|other| other.name.text == argument.name.text);
            if !same_name.is_some_and(|other| same_value(&argument.value, &other.value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn types_conflict(&self, one: Shape, other: Shape) -> bool {
        let leaf = |shape: Shape| !self.schema.type_(shape.named).is_composite();
        (one.list, one.required) != (other.list, other.required)
            || one.named != other.named && (leaf(one) || leaf(other))
    }

    fn collect_fragment(&mut self, name: &str) -> Option<usize> {
        let fragment = self.fragments.get(name)?;
        Some(self.collect(self.schema.type_id(fragment.condition.text), &fragment.set))
    }

    fn collect(&mut self, parent: Option<TypeId>, set: &'c SelectionSet<'t>) -> usize {
        if let Some(id) = self.collection_ids.get(&(parent, set.at)) {
            return *id;
        }
        let mut gathered = FieldGroups::default();
        self.gather(parent, set, &mut gathered);
        let FieldGroups { groups, index, fragments } = gathered;
        let groups = groups.into_iter().map(|(name, fields)| (name, fields.into())).collect();
        let (compared, shared) = (HashMap::new(), HashMap::new());
        self.collected.push(CollectedFields { groups, index, fragments: fragments.into(), compared, shared });
        self.collection_ids.insert((parent, set.at), self.collected.len() - 1);
        self.collected.len() - 1
    }

    fn gather(&self, parent: Option<TypeId>, set: &'c SelectionSet<'t>, gathered: &mut FieldGroups<'c, 't>) {
        for selection in &set.selections {
            match selection {
                Selection::Field(node) => {
                    let definition = parent.and_then(|parent| self.schema.type_(parent).field(node.name));
                    gathered.add(node.alias.unwrap_or(node.name), FieldDetail { parent, node, definition });
                }
                Selection::Spread(spread) => {
                    if !gathered.fragments.contains(&spread.name.text) {
                        gathered.fragments.push(spread.name.text);
                    }
                }
                Selection::Inline(inline) => {
                    let type_ = match inline.condition {
                        Some(condition) => self.schema.type_id(condition.text),
                        None => parent,
                    };
                    self.gather(type_, &inline.set, gathered);
                }
            }
        }
    }
}

/// Whether all fields of a set have distinct response names. If so, nothing has to be compared.
fn all_differ<'t>(set: &SelectionSet<'t>) -> bool {
    let name = |selection: &Selection<'t>| match selection {
        Selection::Field(field) => Some(field.alias.unwrap_or(field.name)),
        _ => None,
    };
    let Some(mut names) = set.selections.iter().map(name).collect::<Option<Vec<_>>>() else { return false };
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

/// A collection under construction.
#[derive(Default)]
struct FieldGroups<'c, 't> {
    groups: Vec<(&'t str, Vec<FieldDetail<'c, 't>>)>,
    index: HashMap<&'t str, usize>,
    fragments: Vec<&'t str>,
}

impl<'c, 't> FieldGroups<'c, 't> {
    fn add(&mut self, name: &'t str, detail: FieldDetail<'c, 't>) {
        let group = *self.index.entry(name).or_insert(self.groups.len());
        match self.groups.get_mut(group) {
            Some((_, fields)) => fields.push(detail),
            None => self.groups.push((name, vec![detail])),
        }
    }
}

impl FieldDetail<'_, '_> {
    fn type_(&self) -> Option<Shape> {
        self.definition.map(|definition| definition.shape)
    }

    fn is_simple(&self) -> bool {
        self.node.arguments.is_empty() && self.node.set.is_none()
    }
}
