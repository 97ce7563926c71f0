//! Limits the depth of nested lists in introspection queries.

use std::collections::HashMap;

use super::{Checker, MAX_FRAGMENT_DEPTH};
use crate::document::syntax::tree::{Field, Selection, SelectionSet};

/// Number of nested lists at which a field is reported.
const MAX_NESTED_LISTS: usize = 3;

/// Cached results for fragments, by the depth at which they are entered.
#[derive(Default)]
pub struct IntrospectionState<'t> {
    within_limit: HashMap<&'t str, usize>,
    too_deep: HashMap<&'t str, usize>,
    /// Whether the walk is inside a reported field, whose selections are not checked again.
    inside: bool,
}

impl IntrospectionState<'_> {
    pub(super) fn leave(&mut self) {
        self.inside = false;
    }
}

/// The state of one search, from a field downwards.
struct DepthSearch<'t> {
    visited: HashMap<&'t str, usize>,
    lists: usize,
    steps: usize,
}

impl<'c, 't> Checker<'c, 't> {
    /// Reports a field with too many nested lists; returns whether it was reported.
    pub(super) fn introspection_depth(&mut self, field: &'c Field<'t>) -> bool {
        if self.introspection.inside || !matches!(field.name, "__schema" | "__type") {
            return false;
        }
        let Some(set) = &field.set else { return false };
        if !self.exceeds(set, &mut DepthSearch { visited: HashMap::new(), lists: 0, steps: 0 }) {
            return false;
        }
        self.report("Maximum introspection depth exceeded".to_owned(), [field.at]);
        self.introspection.inside = true;
        true
    }

    fn exceeds(&mut self, set: &'c SelectionSet<'t>, search: &mut DepthSearch<'t>) -> bool {
        if search.steps > MAX_FRAGMENT_DEPTH {
            self.too_deep = true;
            return false;
        }
        search.steps += 1;
        let exceeds = set.selections.iter().any(|selection| match selection {
            Selection::Field(field) => {
                let list = matches!(field.name, "fields" | "interfaces" | "possibleTypes" | "inputFields");
                search.lists += usize::from(list);
                let exceeds = search.lists >= MAX_NESTED_LISTS
                    || field.set.as_ref().is_some_and(|set| self.exceeds(set, search));
                search.lists -= usize::from(list);
                exceeds
            }
            Selection::Inline(inline) => self.exceeds(&inline.set, search),
            Selection::Spread(spread) => self.exceeds_in_fragment(spread.name.text, search),
        });
        search.steps -= 1;
        exceeds
    }

    fn exceeds_in_fragment(&mut self, name: &'t str, search: &mut DepthSearch<'t>) -> bool {
        let depth = search.lists;
        if self.introspection.too_deep.get(name).is_some_and(|entered| *entered <= depth) {
            return true;
        }
        let covers = |entered: Option<&usize>| entered.is_some_and(|entered| *entered >= depth);
        if covers(search.visited.get(name)) || covers(self.introspection.within_limit.get(name)) {
            return false;
        }
        let Some(fragment) = self.fragments.get(name) else { return false };
        search.visited.insert(name, depth);
        let exceeds = self.exceeds(&fragment.set, search);
        let cache =
            if exceeds { &mut self.introspection.too_deep } else { &mut self.introspection.within_limit };
        cache.insert(name, depth);
        exceeds
    }
}
