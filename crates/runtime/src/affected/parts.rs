//! Incremental comparison of declared states: declares and compares only the list elements that a change can
//! affect.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::diff::Diff;
use qontract_graphql::{Engine, Entities};

use super::Pair;
use crate::about::{About, LooksUp, OneByOne};
use crate::data::Data;
use crate::options::Options;
use crate::room::Room;
use crate::state::Comparison;

/// The engines of two bundles in this process, and their diff.
pub struct Sides<'p> {
    pub base: &'p Arc<Engine>,
    pub head: &'p Arc<Engine>,
    pub diff: Diff,
}

impl<'p> Sides<'p> {
    /// The engines of a pair; `None` if one of the bundles is remote.
    pub fn of(pair: &'p Pair) -> Option<Self> {
        let (base, head) = (pair.base.source().engine()?, pair.head.source().engine()?);
        let diff = Diff::between(base.bundle(), head.bundle());
        // Every later step needs the link graphs; the graph of head is built incrementally from that of base.
        head.link_beside(base);
        Some(Self { base, head, diff })
    }

    fn engines(&self) -> [&'p Engine; 2] {
        [self.base, self.head]
    }
}

/// The list elements that a change can affect.
pub struct Parts<'p> {
    sides: &'p Sides<'p>,
    about: &'p About,
    /// Elements whose part of an answer differs.
    differing: Entities,
    /// Elements of the independent list whose ad-hoc reads may differ.
    looking: BTreeSet<Box<str>>,
}

impl<'p> Parts<'p> {
    /// Finds the elements that the change can affect; `None` if it can affect anything else.
    pub fn find(about: &'p About, sides: &'p Sides<'p>) -> Option<Self> {
        let mut parts = Self { sides, about, differing: Entities::new(), looking: BTreeSet::new() };
        for query in &about.queries {
            let differing = sides.base.differing(sides.head, &sides.diff, query.named())?;
            add(&mut parts.differing, differing);
        }
        match about.looks_up {
            LooksUp::Never => {}
            LooksUp::ToDeclare => parts.looking = parts.find_looking(about.one_by_one?)?,
            LooksUp::Always => return None,
        }
        Some(parts)
    }

    /// Whether the change affects no element.
    pub fn is_empty(&self) -> bool {
        self.differing.is_empty() && self.looking.is_empty()
    }

    /// Elements that name a changed resource, or a resource that triggers further ad-hoc reads, which are not
    /// known.
    fn find_looking(&self, OneByOne { list, .. }: OneByOne) -> Option<BTreeSet<Box<str>>> {
        let mut looking = BTreeSet::new();
        let changed = || self.sides.diff.resources.iter().map(|change| &*change.path);
        for engine in self.sides.engines() {
            let mut named = engine.naming_such(|resource| (self.about.looks_up_more_for)(&resource.content));
            named.append(&mut engine.naming(changed()));
            looking.append(&mut self.reached(engine, &named)?.remove(list)?);
        }
        Some(looking)
    }

    /// The elements of all lists whose answers read from these datafiles.
    fn reached(&self, engine: &Engine, paths: &BTreeSet<Box<str>>) -> Option<Entities> {
        let mut reached = Entities::new();
        for query in &self.about.queries {
            add(&mut reached, engine.reached(query.named(), paths)?);
        }
        Some(reached)
    }

    /// Declares these elements, and the elements that can conflict with them, for base and head, and compares
    /// the results. `None` unless the integration declares the elements independently.
    pub fn compare(mut self, integration: &Room, pair: &Pair, options: &Options) -> Option<Comparison> {
        let OneByOne { list, unlike, joined } = self.about.one_by_one?;
        let mut paths = self.differing.remove(list).unwrap_or_default();
        if !self.differing.keys().all(|other| joined.contains(&&**other)) {
            return None;
        }
        if !joined.is_empty() && !self.are_apart(list) {
            return None;
        }
        paths.append(&mut self.looking);
        paths.append(&mut self.concerned(list, joined)?);
        self.close(&mut paths, unlike);
        let mut part = std::mem::take(&mut self.differing);
        for engine in self.sides.engines() {
            let mut reached = self.reached(engine, &paths)?;
            reached.retain(|other, _| joined.contains(&&**other));
            add(&mut part, reached);
        }
        part.insert(list.into(), paths);
        let part = Arc::new(part);
        let declare = |data: &Data| integration.declare(&data.of_part(&part), options).ok().flatten();
        Some(declare(&pair.base)?.compare(&*declare(&pair.head)?))
    }

    /// Whether elements of joined lists reach elements of the list only through references, as far as the
    /// data shows.
    fn are_apart(&self, list: &str) -> bool {
        let mut queries = self.about.queries.iter();
        queries.all(|query| self.sides.engines().iter().all(|engine| engine.are_apart(query.named(), list)))
    }

    /// The elements of the list that differing elements of joined lists affect.
    fn concerned(&self, list: &str, joined: &[&str]) -> Option<BTreeSet<Box<str>>> {
        let mut concerned = BTreeSet::new();
        if self.differing.is_empty() {
            return Some(concerned);
        }
        let nothing = joined.iter().copied().chain([list]).map(|list| (list.into(), BTreeSet::new()));
        let mut only: Entities = nothing.collect();
        add(&mut only, self.differing.clone());
        for engine in self.sides.engines() {
            for query in &self.about.queries {
                let touched = engine.touched(query.named(), &only)?;
                concerned.extend(engine.elements(query.named(), list, touched));
            }
        }
        Some(concerned)
    }

    /// Adds all elements that can conflict with one of these, transitively.
    fn close(&self, paths: &mut BTreeSet<Box<str>>, unlike: &[&str]) {
        let engines = self.sides.engines();
        loop {
            let known = paths.len();
            let texts = engines.iter().flat_map(|engine| engine.texts(paths, unlike)).collect();
            let alike: Vec<_> = engines.iter().flat_map(|engine| engine.alike(paths, &texts)).collect();
            paths.extend(alike);
            if paths.len() == known {
                break;
            }
        }
    }
}

fn add(all: &mut Entities, more: Entities) {
    for (list, mut paths) in more {
        all.entry(list).or_default().append(&mut paths);
    }
}
