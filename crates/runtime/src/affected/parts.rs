//! What a change can be seen in: elements of the lists that a room asks for. Where one of them is worked through one by one, only what is declared
//! of these is compared.

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

/// Two bundles of this process, and how they differ.
pub struct Sides<'p> {
    pub base: &'p Arc<Engine>,
    pub head: &'p Arc<Engine>,
    pub diff: Diff,
}

impl<'p> Sides<'p> {
    /// Those of a pair, unless one of them is elsewhere.
    pub fn of(pair: &'p Pair) -> Option<Self> {
        let (base, head) = (pair.base.source().engine()?, pair.head.source().engine()?);
        let diff = Diff::between(base.bundle(), head.bundle());
        // Whatever is asked about them needs their links, and those of head are found quicker beside those of base.
        head.link_beside(base);
        Some(Self { base, head, diff })
    }

    fn engines(&self) -> [&'p Engine; 2] {
        [self.base, self.head]
    }
}

/// The elements in which a change can be seen.
pub struct Parts<'p> {
    sides: &'p Sides<'p>,
    about: &'p About,
    /// Those about which the bundles answer otherwise.
    differing: Entities,
    /// Elements of the list that is worked through one by one for which something may be looked up that is otherwise now.
    looking: BTreeSet<Box<str>>,
}

impl<'p> Parts<'p> {
    /// Those of a room; nothing is said if something else can be seen.
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

    /// Whether it can be seen nowhere.
    pub fn is_empty(&self) -> bool {
        self.differing.is_empty() && self.looking.is_empty()
    }

    /// Elements that name a resource which is another one now, or which makes the room look up more: what that is, is not known.
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

    /// The elements of all lists of which something is read from these datafiles.
    fn reached(&self, engine: &Engine, paths: &BTreeSet<Box<str>>) -> Option<Entities> {
        let mut reached = Entities::new();
        for query in &self.about.queries {
            add(&mut reached, engine.reached(query.named(), paths)?);
        }
        Some(reached)
    }

    /// What differs between what is declared of these elements, and of those that could be in their way; nothing is said unless the room works
    /// through them one by one.
    pub fn compare(mut self, room: &Room, pair: &Pair, options: &Options) -> Option<Comparison> {
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
        let declare = |data: &Data| room.declare(&data.of_part(&part), options).ok().flatten();
        Some(declare(&pair.base)?.compare(&*declare(&pair.head)?))
    }

    /// Whether elements of joined lists lead to elements of the list by references alone, as far as the data shows.
    fn are_apart(&self, list: &str) -> bool {
        let mut queries = self.about.queries.iter();
        queries.all(|query| self.sides.engines().iter().all(|engine| engine.are_apart(query.named(), list)))
    }

    /// The elements of the list that differing elements of joined lists concern.
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

    /// Adds all elements that could be in the way of one of these, and those that could be in theirs.
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
