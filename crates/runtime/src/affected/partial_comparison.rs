//! Incremental comparison of declared states: finds the list elements that a change can affect, so that only
//! they are declared and compared.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::diff::Diff;
use qontract_graphql::{ElementSelection, Engine};

use crate::comparison_query::{ComparedList, ComparedQuery, ComparisonQuery};
use crate::meta::AdHocReads;

/// The engines of two bundles in this process, and their diff.
pub struct EnginePair<'p> {
    pub base: &'p Arc<Engine>,
    pub head: &'p Arc<Engine>,
    pub diff: Diff,
}

impl<'p> EnginePair<'p> {
    /// Diffs the bundles of two engines.
    pub fn new(base: &'p Arc<Engine>, head: &'p Arc<Engine>) -> Self {
        let diff = Diff::between(base.bundle(), head.bundle());
        // Every later step needs the reference graphs; the graph of head is built incrementally from the graph of
        // base.
        head.derive_references(base);
        Self { base, head, diff }
    }

    fn engines(&self) -> [&'p Engine; 2] {
        [self.base, self.head]
    }

    /// The queries that are executed on both bundles. `None` if a query that is executed only if the types have its
    /// fields is executed on only one bundle: then its whole result differs.
    pub fn known_queries<'m>(&self, query: &'m ComparisonQuery) -> Option<Vec<&'m ComparedQuery>> {
        let mut known = Vec::new();
        for query in &query.queries {
            match self.engines().map(|engine| query.is_known_to(engine)) {
                [true, true] => known.push(query),
                [false, false] => {}
                [true, false] | [false, true] => return None,
            }
        }
        Some(known)
    }
}

/// The list elements that a change can affect.
pub struct PartialComparison<'p> {
    sides: &'p EnginePair<'p>,
    query: &'p ComparisonQuery,
    /// The queries that are executed on both bundles.
    queries: Vec<&'p ComparedQuery>,
    /// Elements for which a part of a query result differs.
    differing: ElementSelection,
    /// Elements of the independent list whose ad-hoc reads may differ.
    ad_hoc_readers: BTreeSet<Box<str>>,
}

impl<'p> PartialComparison<'p> {
    /// Finds the elements that the change can affect; `None` if the change can also affect other parts of the state.
    ///
    /// `triggers` returns whether a resource may cause further ad-hoc reads.
    pub fn find(
        query: &'p ComparisonQuery,
        sides: &'p EnginePair<'p>,
        triggers: fn(&str) -> bool,
    ) -> Option<Self> {
        let queries = sides.known_queries(query)?;
        let (differing, ad_hoc_readers) = (ElementSelection::new(), BTreeSet::new());
        let mut parts = Self { sides, query, queries, differing, ad_hoc_readers };
        for query in parts.queries.clone() {
            let differing = sides.base.differing_elements(sides.head, &sides.diff, query.operation())?;
            merge(&mut parts.differing, differing);
        }
        match query.ad_hoc_reads {
            AdHocReads::Never => {}
            AdHocReads::DuringDeclare => {
                let list = query.independent_list.as_ref()?;
                parts.ad_hoc_readers = parts.find_ad_hoc_readers(&list.list, triggers)?;
            }
            AdHocReads::Anytime => return None,
        }
        Some(parts)
    }

    /// Whether the change affects no element.
    pub fn is_empty(&self) -> bool {
        self.differing.is_empty() && self.ad_hoc_readers.is_empty()
    }

    /// Elements that name a changed resource, or a resource that triggers further ad-hoc reads. Such further reads
    /// cannot be predicted.
    fn find_ad_hoc_readers(&self, list: &str, triggers: fn(&str) -> bool) -> Option<BTreeSet<Box<str>>> {
        let mut looking = BTreeSet::new();
        let changed = || self.sides.diff.resources.iter().map(|change| &*change.path);
        for engine in self.sides.engines() {
            let mut named = engine.datafiles_naming_where(|resource| triggers(&resource.content));
            named.append(&mut engine.datafiles_naming(changed()));
            looking.append(&mut self.elements_read_from(engine, &named)?.remove(list)?);
        }
        Some(looking)
    }

    /// The elements of all lists whose query results are read from these datafiles.
    fn elements_read_from(&self, engine: &Engine, paths: &BTreeSet<Box<str>>) -> Option<ElementSelection> {
        let mut reached = ElementSelection::new();
        for query in &self.queries {
            merge(&mut reached, engine.affected_elements(query.operation(), paths)?);
        }
        Some(reached)
    }

    /// These elements and the elements that can conflict with them: if their declared states are equal in base and
    /// head, the declared states of all elements are equal. `None` unless the integration declares the elements
    /// independently.
    pub fn selection(mut self) -> Option<ElementSelection> {
        let ComparedList { list, conflict_keys, joined_lists } = self.query.independent_list.as_ref()?;
        let joined: Vec<&str> = joined_lists.iter().map(String::as_str).collect();
        let mut paths = self.differing.remove(list.as_str()).unwrap_or_default();
        if !self.differing.keys().all(|other| joined.contains(&&**other)) {
            return None;
        }
        if !joined.is_empty() && !self.lists_are_separate(list) {
            return None;
        }
        paths.append(&mut self.ad_hoc_readers);
        paths.append(&mut self.affected_by_joined(list, &joined)?);
        let conflict_keys: Vec<&str> = conflict_keys.iter().map(String::as_str).collect();
        self.expand_conflicts(&mut paths, &conflict_keys);
        let mut part = std::mem::take(&mut self.differing);
        for engine in self.sides.engines() {
            let mut reached = self.elements_read_from(engine, &paths)?;
            reached.retain(|other, _| joined.contains(&&**other));
            merge(&mut part, reached);
        }
        part.insert(list.as_str().into(), paths);
        Some(part)
    }

    /// Whether, in this data, elements of joined lists reach elements of the list only through references.
    fn lists_are_separate(&self, list: &str) -> bool {
        let mut queries = self.queries.iter();
        queries.all(|query| {
            self.sides.engines().iter().all(|engine| engine.are_standalone(query.operation(), list))
        })
    }

    /// The elements of the list that are affected by differing elements of joined lists.
    fn affected_by_joined(&self, list: &str, joined: &[&str]) -> Option<BTreeSet<Box<str>>> {
        let mut affected = BTreeSet::new();
        if self.differing.is_empty() {
            return Some(affected);
        }
        let nothing = joined.iter().copied().chain([list]).map(|list| (list.into(), BTreeSet::new()));
        let mut only: ElementSelection = nothing.collect();
        merge(&mut only, self.differing.clone());
        for engine in self.sides.engines() {
            for query in &self.queries {
                let datafiles = engine.datafiles_read(query.operation(), &only)?;
                affected.extend(engine.elements(query.operation(), list, datafiles));
            }
        }
        Some(affected)
    }

    /// Adds all elements that can conflict with one of these elements, transitively.
    fn expand_conflicts(&self, paths: &mut BTreeSet<Box<str>>, conflict_keys: &[&str]) {
        let engines = self.sides.engines();
        loop {
            let before = paths.len();
            let values = engines.iter().flat_map(|engine| engine.key_values(paths, conflict_keys)).collect();
            let conflicting: Vec<_> =
                engines.iter().flat_map(|engine| engine.with_same_keys(paths, &values)).collect();
            paths.extend(conflicting);
            if paths.len() == before {
                break;
            }
        }
    }
}

fn merge(all: &mut ElementSelection, more: ElementSelection) {
    for (list, mut paths) in more {
        all.entry(list).or_default().append(&mut paths);
    }
}
