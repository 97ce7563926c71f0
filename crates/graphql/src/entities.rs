//! The entities of a request: the datafiles of which its first lists have an element each.
//!
//! Which of them two bundles answer otherwise about is found by comparing what is written for each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use qontract_bundle::Document;

use crate::engine::{Engine, Planned, Request};
use crate::execute::Record;
use crate::index::FileId;
use crate::sink::Bytes;

/// Per list, by its key in the answer, the paths of some of its datafiles.
pub type Entities = BTreeMap<Box<str>, BTreeSet<Box<str>>>;

/// Some datafiles of one list.
#[derive(Clone, Copy, Debug)]
pub struct Only<'r> {
    /// The key of the list in the answer.
    pub list: &'r str,
    /// The paths of the datafiles.
    pub paths: &'r BTreeSet<Box<str>>,
}

/// A list of entities as it was written: its key, and where what was written for each of its datafiles is.
pub(crate) type Written = (Box<str>, Vec<(FileId, Range<usize>)>);

impl Engine {
    /// The datafiles about which this bundle and another one answer otherwise; those that only one of them has are among them. Nothing is
    /// said if something else differs, or if there is no answer without errors.
    pub fn differing(&self, other: &Engine, query: &str, operation: &str) -> Option<Entities> {
        if !self.has_types_of(other) {
            return None;
        }
        let (mine, theirs) =
            rayon::join(|| self.written(query, operation), || other.written(query, operation));
        let (mine, theirs) = (mine?, theirs?);
        if !mine.rest().eq(theirs.rest()) {
            return None;
        }
        let mut differing = Entities::new();
        let mut left = theirs.parts();
        for (entity, text) in mine.parts() {
            if left.remove(&entity) != Some(text) {
                differing.entry(entity.0.into()).or_default().insert(entity.1.into());
            }
        }
        for (list, path) in left.into_keys() {
            differing.entry(list.into()).or_default().insert(path.into());
        }
        Some(differing)
    }

    /// What datafiles have under these keys, as far as it is text: key and text.
    pub fn texts<'k>(&self, paths: &BTreeSet<Box<str>>, keys: &[&'k str]) -> BTreeSet<(&'k str, String)> {
        let documents = paths.iter().filter_map(|path| self.bundle().datafile(path));
        let text =
            |document: &Document, key: &'k str| Some((key, document.value.get(key)?.as_str()?.to_owned()));
        documents.flat_map(|document| keys.iter().filter_map(|key| text(document, key))).collect()
    }

    /// The paths of all datafiles that are of the schema of one of these and have one of these texts under its key.
    pub fn alike(&self, paths: &BTreeSet<Box<str>>, texts: &BTreeSet<(&str, String)>) -> BTreeSet<Box<str>> {
        let index = self.index();
        let documents = paths.iter().filter_map(|path| self.bundle().datafile(path));
        let schemas: BTreeSet<&str> = documents.filter_map(|document| document.schema()).collect();
        let keys: BTreeSet<&str> = texts.iter().map(|(key, _)| *key).collect();
        let mut alike = BTreeSet::new();
        for file in schemas.into_iter().flat_map(|schema| index.files_of(schema)) {
            let has = |key: &&str| {
                let text = index.root(*file).and_then(|map| map.get(key)?.as_str());
                text.is_some_and(|text| texts.contains(&(*key, text.to_owned())))
            };
            if keys.iter().any(has) {
                alike.insert(index.path(*file).into());
            }
        }
        alike
    }

    fn written(&self, query: &str, operation: &str) -> Option<Parted<'_>> {
        let request = Request { query, operation: Some(operation), ..Request::default() };
        let document = self.document(request.query);
        let document = document.as_ref().as_ref().ok()?;
        let Planned::Query { plan, variables, .. } = self.plan(document, request).ok()? else { return None };
        let record = Record { entities: Some(Vec::new()), ..Record::default() };
        let executed = self.execute_with(&plan, &variables, request, (Bytes::default(), record));
        let lists = executed.record.entities.filter(|_| executed.failures.is_empty())?;
        Some(Parted { engine: self, text: executed.data.0, lists })
    }
}

/// An answer, and where the parts of its entities are.
struct Parted<'e> {
    engine: &'e Engine,
    text: Vec<u8>,
    lists: Vec<Written>,
}

impl Parted<'_> {
    /// What is written for each datafile, by list and path.
    fn parts(&self) -> BTreeMap<(&str, &str), &[u8]> {
        let mut all = BTreeMap::new();
        for (list, parts) in &self.lists {
            for (file, place) in parts {
                let text = &self.text[place.clone()];
                // Whether one comes first says nothing about it.
                let text = text.strip_prefix(b",").unwrap_or(text);
                all.insert((&**list, self.engine.index().path(*file)), text);
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
