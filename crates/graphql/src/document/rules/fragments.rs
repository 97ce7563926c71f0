//! Reports fragment cycles, and collects the fragments that operations use.

use std::collections::{HashMap, HashSet};

use super::{Checker, DeferredChecks, ErrorReport, Fragments, MAX_FRAGMENT_DEPTH, ReportEnded};
use crate::document::syntax::tree::{Definition, Fragment, Operation, Spread};

/// The path of spreads from one fragment to another, and the position of each fragment in it.
#[derive(Default)]
struct SpreadPath<'c, 't> {
    spreads: Vec<&'c Spread<'t>>,
    begins: HashMap<&'t str, usize>,
}

impl<'c, 't> Checker<'c, 't> {
    /// Reports cycles from a fragment back to itself.
    pub(super) fn cycles(&mut self, fragment: &'c Fragment<'t>) {
        self.follow(fragment, &mut SpreadPath::default());
    }

    fn follow(&mut self, fragment: &'c Fragment<'t>, path: &mut SpreadPath<'c, 't>) {
        let name = fragment.name.text;
        if !self.visited.insert(name) {
            return;
        }
        if path.spreads.len() > MAX_FRAGMENT_DEPTH {
            self.too_deep = true;
            return;
        }
        path.begins.insert(name, path.spreads.len());
        for spread in fragment.set.spreads() {
            let next = spread.name.text;
            path.spreads.push(spread);
            if let Some(begin) = path.begins.get(next) {
                let cycle = &path.spreads[*begin..];
                let via = cycle[..cycle.len() - 1].iter();
                let via: Vec<String> = via.map(|spread| format!("\"{}\"", spread.name.text)).collect();
                let via = if via.is_empty() { String::new() } else { format!(" via {}", via.join(", ")) };
                let places: Vec<usize> = cycle.iter().map(|spread| spread.at).collect();
                self.report(format!("Cannot spread fragment \"{next}\" within itself{via}."), places);
            } else if let Some(next) = self.fragments.get(next) {
                self.follow(next, path);
            }
            path.spreads.pop();
        }
        path.begins.remove(name);
    }
}

/// The fragments that operations use, with the remaining budget for collecting them.
pub struct FragmentUsages<'c, 't> {
    fragments: &'c Fragments<'c, 't>,
    /// The index of a list, by the sorted names of the fragments that operations spread.
    list_by_names: HashMap<Vec<&'t str>, usize>,
    lists: Vec<FragmentList<'c, 't>>,
    budget: usize,
}

struct FragmentList<'c, 't> {
    fragments: Vec<&'c Fragment<'t>>,
    /// Number of variable usages in these fragments; `None` until they are counted.
    usages: Option<usize>,
}

impl<'c, 't> FragmentUsages<'c, 't> {
    pub(super) fn new(fragments: &'c Fragments<'c, 't>) -> Self {
        Self { fragments, list_by_names: HashMap::new(), lists: Vec::new(), budget: 50_000 }
    }

    fn spend(&mut self, cost: usize) -> Option<()> {
        self.budget = self.budget.checked_sub(cost)?;
        Some(())
    }

    /// All fragments that the operations use, as the index of a list; `None` if the budget is exceeded.
    pub(super) fn of_operations(&mut self, operations: &[&'c Operation<'t>]) -> Option<usize> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut names: Vec<&'t str> = Vec::new();
        let mut add = |names: &mut Vec<&'t str>, spreads: Vec<&'c Spread<'t>>| {
            names.extend(spreads.iter().map(|spread| spread.name.text).filter(|name| seen.insert(name)));
        };
        for operation in operations {
            add(&mut names, operation.set.spreads());
        }
        let mut key = names.clone();
        key.sort_unstable();
        if let Some(list) = self.list_by_names.get(&key) {
            return Some(*list);
        }
        self.spend(names.len())?;
        let mut fragments = Vec::new();
        let mut index = 0;
        while let Some(name) = names.get(index) {
            index += 1;
            if let Some(fragment) = self.fragments.get(name).copied() {
                fragments.push(fragment);
                let spreads = fragment.set.spreads();
                self.spend(spreads.len())?;
                add(&mut names, spreads);
            }
        }
        self.lists.push(FragmentList { fragments, usages: None });
        self.list_by_names.insert(key, self.lists.len() - 1);
        Some(self.lists.len() - 1)
    }

    pub(super) fn list(&self, list: usize) -> &[&'c Fragment<'t>] {
        &self.lists[list].fragments
    }

    /// Charges the variable usages in the fragments of a list, once for counting and again for each operation
    /// that has them.
    pub(super) fn spend_on_usages(&mut self, list: usize, counts: impl Iterator<Item = usize>) -> Option<()> {
        let counted = self.lists[list].usages;
        let total = counted.unwrap_or_else(|| counts.sum());
        if counted.is_none() {
            self.spend(self.lists[list].fragments.len())?;
            self.spend(total)?;
            self.lists[list].usages = Some(total);
        }
        self.spend(total)
    }
}

impl DeferredChecks<'_, '_> {
    pub(super) fn unused_fragments(&mut self, report: &mut ErrorReport<'_>) -> Result<(), ReportEnded> {
        let definitions = &self.document.definitions;
        let operations: Vec<&Operation<'_>> = self.document.operations().collect();
        let list = self.recursion.of_operations(&operations).ok_or_else(|| report.aborted())?;
        let used: HashSet<&str> =
            self.recursion.list(list).iter().map(|fragment| fragment.name.text).collect();
        for definition in definitions {
            if let Definition::Fragment(fragment) = definition
                && !used.contains(fragment.name.text)
            {
                let message = format!("Fragment \"{}\" is never used.", fragment.name.text);
                report.add(message, &[fragment.at])?;
            }
        }
        Ok(())
    }
}
