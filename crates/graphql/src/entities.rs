//! The entities of a request: the datafiles of which its first lists have an element each.
//!
//! Which of them two bundles answer otherwise about is found by comparing what is written for each.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use qontract_bundle::Document;
use qontract_bundle::diff::Diff;
use rayon::prelude::*;

use crate::answer::Executed;
use crate::engine::{Engine, Request};
use crate::execute::Record;
use crate::index::FileId;
use crate::plan::What;
use crate::schema::{Resolver, TypeId};
use crate::sink::Bytes;
use crate::touched::Touched;

/// Per list, by its key in the answer, the paths of some of its datafiles.
pub type Entities = BTreeMap<Box<str>, BTreeSet<Box<str>>>;

/// A list of entities as it was written: its key, and where what was written for each of its datafiles is.
pub(crate) type Written = (Box<str>, Vec<(FileId, Range<usize>)>);

impl Engine {
    /// The datafiles about which this bundle and another one, which differ so, answer otherwise; those that only one of them has are among them.
    /// Nothing is said if something else differs, or if there is no answer without errors. Only what the difference can reach is looked at.
    pub fn differing(
        &self,
        other: &Engine,
        diff: &Diff,
        (query, operation): (&str, &str),
    ) -> Option<Entities> {
        if !self.has_types_of(other) {
            return None;
        }
        let mut only = Entities::new();
        for engine in [self, other] {
            for (list, mut paths) in engine.reached(query, operation, &engine.changed(diff))? {
                only.entry(list).or_default().append(&mut paths);
            }
        }
        let written = |engine: &'_ Engine| -> Option<Parted> { engine.written(query, operation, &only) };
        let (mine, theirs) = rayon::join(|| written(self), || written(other));
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
    pub fn touched(&self, query: &str, operation: &str, only: &Entities) -> Option<BTreeSet<Box<str>>> {
        let record = Record { touched: Some(Touched::new(self.view())), ..Record::default() };
        let executed = self.recorded(query, operation, only, record)?;
        let files = executed.record.touched.iter().flat_map(Touched::files);
        Some(files.map(|file| Box::from(&*self.bundle().datafiles()[file].path)).collect())
    }

    /// Those of some datafiles that can be elements of a list of the first level, named by its key in the answer.
    pub fn elements(
        &self,
        (query, operation): (&str, &str),
        list: &str,
        among: BTreeSet<Box<str>>,
    ) -> BTreeSet<Box<str>> {
        let files = self.list(query, operation, list).map_or(&[][..], |(files, _)| files);
        let is_one =
            |path: &str| self.view().file(path).is_some_and(|file| files.binary_search(&file).is_ok());
        among.into_iter().filter(|path| is_one(path)).collect()
    }

    /// Whether what is an element of a list of the first level, named by its key in the answer, is never written down within another datafile.
    pub fn are_apart(&self, query: &str, operation: &str, list: &str) -> bool {
        let list = self.list(query, operation, list);
        list.is_none_or(|(_, type_)| !self.links().may_be_inline(self.schema(), type_))
    }

    /// The datafiles of the schema of a list of the first level, and their type.
    fn list(&self, query: &str, operation: &str, list: &str) -> Option<(&[FileId], TypeId)> {
        let request = Request { query, operation: Some(operation), ..Request::default() };
        let (plan, _) = self.planned(request)?;
        let root = &plan.selections[plan.root];
        let field = root.fields.iter().find(|field| *field.key == *list)?;
        let What::Field(number) = field.what else { return None };
        match &self.schema().type_(root.type_).fields[number].resolver {
            Resolver::Datafiles(name) => Some((self.index().files_of(name), field.shape.named)),
            _ => None,
        }
    }

    /// What datafiles have under these keys, as far as it is text: key and text. Upper and lower case, and slashes at the end, make no difference.
    pub fn texts<'k>(&self, paths: &BTreeSet<Box<str>>, keys: &[&'k str]) -> BTreeSet<(&'k str, String)> {
        let documents = paths.iter().filter_map(|path| self.bundle().datafile(path));
        let text =
            |document: &Document, key: &'k str| Some((key, loosely(document.value.get(key)?.as_str()?)));
        documents.flat_map(|document| keys.iter().filter_map(|key| text(document, key))).collect()
    }

    /// The paths of all datafiles that are of the schema of one of these and have one of these [texts](Self::texts) under its key.
    pub fn alike(&self, paths: &BTreeSet<Box<str>>, texts: &BTreeSet<(&str, String)>) -> BTreeSet<Box<str>> {
        let index = self.index();
        let documents = paths.iter().filter_map(|path| self.bundle().datafile(path));
        let schemas: BTreeSet<&str> = documents.filter_map(|document| document.schema()).collect();
        let mut wanted: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        for (key, text) in texts {
            wanted.entry(*key).or_default().insert(text);
        }
        let files: Vec<&FileId> = schemas.into_iter().flat_map(|schema| index.files_of(schema)).collect();
        let is_alike = |file: FileId| {
            wanted.iter().any(|(key, texts)| {
                let text = index.root(file).and_then(|map| map.get(key)?.as_str());
                text.is_some_and(|text| texts.contains(&*loosely(text)))
            })
        };
        let alike = files.into_par_iter().filter(|file| is_alike(**file));
        alike.map(|file| Box::from(index.path(*file))).collect()
    }

    fn written(&self, query: &str, operation: &str, only: &Entities) -> Option<Parted> {
        let record = Record { entities: Some(Vec::new()), ..Record::default() };
        let executed = self.recorded(query, operation, only, record)?;
        let lists = executed.record.entities.filter(|_| executed.failures.is_empty())?;
        Some(Parted { text: executed.data.0, lists })
    }

    fn recorded(
        &self,
        query: &str,
        operation: &str,
        only: &Entities,
        record: Record,
    ) -> Option<Executed<Bytes>> {
        let request = Request { query, operation: Some(operation), only: Some(only), ..Request::default() };
        let (plan, variables) = self.planned(request)?;
        Some(self.execute_with(&plan, &variables, request, (Bytes::default(), record)))
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

/// A text without what makes no difference.
fn loosely(text: &str) -> String {
    text.trim_end_matches('/').to_lowercase()
}
