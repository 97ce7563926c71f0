//! The entities of a request: the datafiles of which its first lists have an element each.
//!
//! Which of them two bundles answer otherwise about is found by comparing what is written for each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use qontract_bundle::diff::Diff;

use crate::answer::Executed;
use crate::engine::{Engine, Output, Request};
use crate::execute::Record;
use crate::index::FileId;
use crate::plan::What;
use crate::schema::{Resolver, TypeId};
use crate::sink::Bytes;
use crate::touched::Touched;

/// Per list, by its key in the answer, the paths of some of its datafiles.
pub type Entities = BTreeMap<Box<str>, BTreeSet<Box<str>>>;

/// An operation of a request's text, by its name.
#[derive(Clone, Copy, Debug)]
pub struct Named<'q> {
    /// The text.
    pub query: &'q str,
    /// The name.
    pub operation: &'q str,
}

impl<'q> From<Named<'q>> for Request<'q> {
    fn from(Named { query, operation }: Named<'q>) -> Self {
        Self { query, operation: Some(operation), ..Self::default() }
    }
}

/// A list of entities as it was written: its key, and where what was written for each of its datafiles is.
pub(crate) type Written = (Box<str>, Vec<(FileId, Range<usize>)>);

impl Engine {
    /// The datafiles about which this bundle and another one, which differ so, answer otherwise; those that only one of them has are among them.
    /// Nothing is said if something else differs, or if there is no answer without errors. Only what the difference can reach is looked at.
    pub fn differing(&self, other: &Engine, diff: &Diff, asked: Named<'_>) -> Option<Entities> {
        if !self.has_types_of(other) {
            return None;
        }
        let mut only = Entities::new();
        for engine in [self, other] {
            for (list, mut paths) in engine.reached(asked, &engine.changed(diff))? {
                only.entry(list).or_default().append(&mut paths);
            }
        }
        let (mine, theirs) = rayon::join(|| self.written(asked, &only), || other.written(asked, &only));
        let (mine, theirs) = (mine?, theirs?);
        if !mine.rest().eq(theirs.rest()) {
            return None;
        }
        let mut differing = Entities::new();
        let (mine, mut left) = (mine.parts(self), theirs.parts(other));
        for (entity, text) in mine {
            if left.remove(&entity) != Some(text) {
                differing.entry(entity.0.into()).or_default().insert(entity.1.into());
            }
        }
        for (list, path) in left.into_keys() {
            differing.entry(list.into()).or_default().insert(path.into());
        }
        Some(differing)
    }

    /// The datafiles that are read to answer about these alone.
    pub fn touched(&self, asked: Named<'_>, only: &Entities) -> Option<BTreeSet<Box<str>>> {
        let record = Record { touched: Some(Touched::new(self.view())), ..Record::default() };
        let executed = self.recorded(asked, only, record)?;
        let files = executed.record.touched.iter().flat_map(Touched::files);
        Some(files.map(|file| Box::from(&*self.bundle().datafiles()[file].path)).collect())
    }

    /// Those of some datafiles that can be elements of a list of the first level, named by its key in the answer.
    pub fn elements(&self, asked: Named<'_>, list: &str, among: BTreeSet<Box<str>>) -> BTreeSet<Box<str>> {
        let files = self.list(asked, list).map_or(&[][..], |(files, _)| files);
        let is_one =
            |path: &str| self.view().file(path).is_some_and(|file| files.binary_search(&file).is_ok());
        among.into_iter().filter(|path| is_one(path)).collect()
    }

    /// Whether what is an element of a list of the first level, named by its key in the answer, is never written down within another datafile, and
    /// nothing else is taken for one.
    pub fn are_apart(&self, asked: Named<'_>, list: &str) -> bool {
        let list = self.list(asked, list);
        let (links, schema) = (self.links(), self.schema());
        list.is_none_or(|(_, type_)| {
            !links.may_be_inline(schema, type_) && !links.is_taken_for(schema, type_)
        })
    }

    /// The datafiles of the schema of a list of the first level, and their type.
    fn list(&self, asked: Named<'_>, list: &str) -> Option<(&[FileId], TypeId)> {
        let (plan, _) = self.planned(asked.into())?;
        let root = &plan.selections[plan.root];
        let field = root.fields.iter().find(|field| *field.key == *list)?;
        let What::Field(number) = field.what else { return None };
        match &self.schema().type_(root.type_).fields[number].resolver {
            Resolver::Datafiles(name) => Some((self.index().files_of(name), field.shape.named)),
            _ => None,
        }
    }

    fn written(&self, asked: Named<'_>, only: &Entities) -> Option<Parted> {
        let record = Record { entities: Some(Vec::new()), ..Record::default() };
        let executed = self.recorded(asked, only, record)?;
        let lists = executed.record.entities.filter(|_| executed.failures.is_empty())?;
        Some(Parted { text: executed.data.0, lists })
    }

    fn recorded(&self, asked: Named<'_>, only: &Entities, record: Record) -> Option<Executed<Bytes>> {
        let request = Request { only: Some(only), ..asked.into() };
        let (plan, variables) = self.planned(request)?;
        Some(self.execute_with(&plan, &variables, request, Output { sink: Bytes::default(), record }))
    }
}

/// An answer, and where the parts of its entities are.
struct Parted {
    text: Vec<u8>,
    lists: Vec<Written>,
}

impl Parted {
    /// What is written for each datafile, by list and path.
    fn parts<'p>(&'p self, engine: &'p Engine) -> BTreeMap<(&'p str, &'p str), &'p [u8]> {
        let mut all = BTreeMap::new();
        for (list, parts) in &self.lists {
            for (file, place) in parts {
                let text = &self.text[place.clone()];
                // Whether one comes first says nothing about it.
                let text = text.strip_prefix(b",").unwrap_or(text);
                all.insert((&**list, engine.index().path(*file)), text);
            }
        }
        all
    }

    /// What is written besides.
    fn rest(&self) -> impl Iterator<Item = &u8> {
        let places = || self.lists.iter().flat_map(|(_, parts)| parts).map(|(_, place)| place);
        let ends = places().map(|place| place.start).chain([self.text.len()]);
        let starts = std::iter::once(0).chain(places().map(|place| place.end));
        starts.zip(ends).flat_map(|(start, end)| &self.text[start..end])
    }
}
