//! Incremental comparison of declared states: declares and compares only the list elements that a change can
//! affect.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::diff::Diff;
use qontract_graphql::{ElementSelection, Engine};

use super::BundlePair;
use crate::data::Data;
use crate::integration::Integration;
use crate::meta::{AdHocReads, DeclaredQuery, IndependentList, IntegrationMeta};
use crate::options::Options;
use crate::state::Comparison;

/// The engines of two bundles in this process, and their diff.
pub struct EnginePair<'p> {
    pub base: &'p Arc<Engine>,
    pub head: &'p Arc<Engine>,
    pub diff: Diff,
}

impl<'p> EnginePair<'p> {
    /// The engines of a pair; `None` if one of the bundles is remote.
    pub fn of(pair: &'p BundlePair) -> Option<Self> {
        let (base, head) = (pair.base.source().engine()?, pair.head.source().engine()?);
        let diff = Diff::between(base.bundle(), head.bundle());
        // Every later step needs the reference graphs; the graph of head is built incrementally from that of
        // base.
        head.derive_references(base);
        Some(Self { base, head, diff })
    }

    fn engines(&self) -> [&'p Engine; 2] {
        [self.base, self.head]
    }

    /// The queries that both bundles know. `None` if only one of them knows a query that is executed only if it is
    /// known: its result differs as a whole.
    pub fn known_queries<'m>(&self, meta: &'m IntegrationMeta) -> Option<Vec<&'m DeclaredQuery>> {
        let mut known = Vec::new();
        for query in &meta.queries {
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
    meta: &'p IntegrationMeta,
    /// The queries that both bundles know.
    queries: Vec<&'p DeclaredQuery>,
    /// Elements whose part of a query result differs.
    differing: ElementSelection,
    /// Elements of the independent list whose ad-hoc reads may differ.
    ad_hoc_readers: BTreeSet<Box<str>>,
}

impl<'p> PartialComparison<'p> {
    /// Finds the elements that the change can affect; `None` if the change can also affect anything else.
    pub fn find(meta: &'p IntegrationMeta, sides: &'p EnginePair<'p>) -> Option<Self> {
        let queries = sides.known_queries(meta)?;
        let (differing, ad_hoc_readers) = (ElementSelection::new(), BTreeSet::new());
        let mut parts = Self { sides, meta, queries, differing, ad_hoc_readers };
        for query in parts.queries.clone() {
            let differing = sides.base.differing_elements(sides.head, &sides.diff, query.operation())?;
            merge(&mut parts.differing, differing);
        }
        match meta.ad_hoc_reads {
            AdHocReads::Never => {}
            AdHocReads::DuringDeclare => {
                parts.ad_hoc_readers = parts.find_ad_hoc_readers(meta.independent_list?)?;
            }
            AdHocReads::Anytime => return None,
        }
        Some(parts)
    }

    /// Whether the change affects no element.
    pub fn is_empty(&self) -> bool {
        self.differing.is_empty() && self.ad_hoc_readers.is_empty()
    }

    /// Elements that name a changed resource, or a resource that triggers further ad-hoc reads, which cannot
    /// be predicted.
    fn find_ad_hoc_readers(
        &self,
        IndependentList { list, .. }: IndependentList,
    ) -> Option<BTreeSet<Box<str>>> {
        let mut looking = BTreeSet::new();
        let changed = || self.sides.diff.resources.iter().map(|change| &*change.path);
        for engine in self.sides.engines() {
            let mut named = engine
                .datafiles_naming_where(|resource| (self.meta.triggers_ad_hoc_reads)(&resource.content));
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

    /// Declares these elements, and the elements that can conflict with them, for base and head, and compares
    /// the results. `None` unless the integration declares the elements independently.
    pub fn compare(
        mut self,
        integration: &Integration,
        pair: &BundlePair,
        options: &Options,
    ) -> Option<Comparison> {
        let IndependentList { list, conflict_keys, joined_lists: joined } = self.meta.independent_list?;
        let mut paths = self.differing.remove(list).unwrap_or_default();
        if !self.differing.keys().all(|other| joined.contains(&&**other)) {
            return None;
        }
        if !joined.is_empty() && !self.lists_are_separate(list) {
            return None;
        }
        paths.append(&mut self.ad_hoc_readers);
        paths.append(&mut self.affected_by_joined(list, joined)?);
        self.expand_conflicts(&mut paths, conflict_keys);
        let mut part = std::mem::take(&mut self.differing);
        for engine in self.sides.engines() {
            let mut reached = self.elements_read_from(engine, &paths)?;
            reached.retain(|other, _| joined.contains(&&**other));
            merge(&mut part, reached);
        }
        part.insert(list.into(), paths);
        let part = Arc::new(part);
        let declare = |data: &Data| integration.declare(&data.restricted_to(&part), options).ok().flatten();
        Some(declare(&pair.base)?.compare(&*declare(&pair.head)?))
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
