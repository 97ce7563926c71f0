//! Limits how deep an introspection query may nest lists.

use std::collections::HashMap;

use super::{Checker, MAX_FRAGMENT_DEPTH};
use crate::document::syntax::tree::{Field, Selection, SelectionSet};

/// This many nested lists exceed the limit.
const MAX_NESTED_LISTS: usize = 3;

/// Cached results for fragments, by the depth at which they are entered.
#[derive(Default)]
pub struct IntrospectionState<'t> {
    within_limit: HashMap<&'t str, usize>,
    too_deep: HashMap<&'t str, usize>,
    /// Inside of a field that was reported: its selections are not checked again.
    inside: bool,
}

impl IntrospectionState<'_> {
    pub(super) fn leave(&mut self) {
        self.inside = false;
    }
}

/// One search from a field downwards.
struct DepthSearch<'t> {
    visited: HashMap<&'t str, usize>,
    lists: usize,
    steps: usize,
}

impl<'c, 't> Checker<'c, 't> {
    /// Reports a field with too many nested lists; returns whether it did.
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

    fn exceeds(&mut self, set: &'c SelectionSet<'t>, look: &mut DepthSearch<'t>) -> bool {
        if look.steps > MAX_FRAGMENT_DEPTH {
            self.too_deep = true;
            return false;
        }
        look.steps += 1;
        let found = set.selections.iter().any(|selection| match selection {
            Selection::Field(field) => {
                let list = matches!(field.name, "fields" | "interfaces" | "possibleTypes" | "inputFields");
                look.lists += usize::from(list);
                let found = look.lists >= MAX_NESTED_LISTS
                    || field.set.as_ref().is_some_and(|set| self.exceeds(set, look));
                look.lists -= usize::from(list);
                found
            }
            Selection::Inline(inline) => self.exceeds(&inline.set, look),
            Selection::Spread(spread) => self.exceeds_in_fragment(spread.name.text, look),
        });
        look.steps -= 1;
        found
    }

    fn exceeds_in_fragment(&mut self, name: &'t str, look: &mut DepthSearch<'t>) -> bool {
        let depth = look.lists;
        if self.introspection.too_deep.get(name).is_some_and(|known| *known <= depth) {
            return true;
        }
        let covers = |known: Option<&usize>| known.is_some_and(|known| *known >= depth);
        if covers(look.visited.get(name)) || covers(self.introspection.within_limit.get(name)) {
            return false;
        }
        let Some(fragment) = self.fragments.get(name) else { return false };
        look.visited.insert(name, depth);
        let found = self.exceeds(&fragment.set, look);
        let kept =
            if found { &mut self.introspection.too_deep } else { &mut self.introspection.within_limit };
        kept.insert(name, depth);
        found
    }
}
