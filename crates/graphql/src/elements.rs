//! The root elements of a request: each element of a root list corresponds to one datafile.
//!
//! Finds the elements for which two bundles give different responses, by comparing the bytes of each element.

use std::collections::{BTreeMap, BTreeSet};

use qontract_bundle::diff::Diff;

use crate::answer::Execution;
use crate::element_selection::{ElementRange, ElementRanges, ElementSelection};
use crate::engine::{Engine, ExecutionOutput, Request};
use crate::execute::ExecutionRecord;
use crate::plan::FieldTarget;
use crate::read_set::ReadSet;
use crate::schema::{Resolver, TypeId};
use crate::sink::JsonBytes;
use crate::source::FileId;

/// An operation of a document, by name.
#[derive(Clone, Copy, Debug)]
pub struct NamedOperation<'q> {
    /// The document.
    pub query: &'q str,
    /// The name of the operation.
    pub operation: &'q str,
}

impl<'q> From<NamedOperation<'q>> for Request<'q> {
    fn from(NamedOperation { query, operation }: NamedOperation<'q>) -> Self {
        Self { query, operation: Some(operation), ..Self::default() }
    }
}

impl Engine {
    /// The datafiles for which this bundle and another one, which differ by `diff`, give different responses.
    /// Includes datafiles that exist in only one of the bundles. `None` if any other part of the responses
    /// differs, or if a response has errors. Only elements that the diff can affect are executed.
    pub fn differing_elements(
        &self,
        other: &Engine,
        diff: &Diff,
        operation: NamedOperation<'_>,
    ) -> Option<ElementSelection> {
        if !self.has_types_of(other) {
            return None;
        }
        let mut only = ElementSelection::new();
        for engine in [self, other] {
            for (list, mut paths) in engine.affected_elements(operation, &engine.changed_datafiles(diff))? {
                only.entry(list).or_default().append(&mut paths);
            }
        }
        let (mine, theirs) = rayon::join(
            || self.partitioned_answer(operation, &only),
            || other.partitioned_answer(operation, &only),
        );
        let (mine, theirs) = (mine?, theirs?);
        if !mine.rest().eq(theirs.rest()) {
            return None;
        }
        let mut differing = ElementSelection::new();
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

    /// The datafiles that a query for only these elements reads.
    pub fn datafiles_read(
        &self,
        operation: NamedOperation<'_>,
        only: &ElementSelection,
    ) -> Option<BTreeSet<Box<str>>> {
        let record =
            ExecutionRecord { touched: Some(ReadSet::new(self.view())), ..ExecutionRecord::default() };
        let executed = self.execute_recorded(operation, only, record)?;
        let files = executed.record.touched.iter().flat_map(ReadSet::files);
        Some(files.map(|file| Box::from(&*self.bundle().datafiles()[file].path)).collect())
    }

    /// Those of the given datafiles that can be elements of a root list, which is given by its key in the
    /// response.
    pub fn elements(
        &self,
        operation: NamedOperation<'_>,
        list: &str,
        among: BTreeSet<Box<str>>,
    ) -> BTreeSet<Box<str>> {
        let files = self.list(operation, list).map_or(&[][..], |(files, _)| files);
        let is_one =
            |path: &str| self.view().file(path).is_some_and(|file| files.binary_search(&file).is_ok());
        among.into_iter().filter(|path| is_one(path)).collect()
    }

    /// Whether the elements of a root list, given by its key in the response, are always separate datafiles
    /// of their own schema: no element is inline in another datafile, and no datafile of another schema is
    /// read as an element.
    pub fn are_standalone(&self, operation: NamedOperation<'_>, list: &str) -> bool {
        let list = self.list(operation, list);
        let (links, schema) = (self.references(), self.schema());
        list.is_none_or(|(_, type_)| {
            !links.may_be_inline(schema, type_) && !links.has_mistyped_refs_to(schema, type_)
        })
    }

    /// The datafiles of the schema of a root list, and their type.
    fn list(&self, operation: NamedOperation<'_>, list: &str) -> Option<(&[FileId], TypeId)> {
        let (plan, _) = self.planned_query(operation.into())?;
        let root = &plan.selections[plan.root];
        let field = root.fields.iter().find(|field| *field.key == *list)?;
        let FieldTarget::Field(number) = field.target else { return None };
        match &self.schema().type_(root.type_).fields[number].resolver {
            Resolver::Datafiles(name) => Some((self.index().files_of(name), field.shape.named)),
            _ => None,
        }
    }

    fn partitioned_answer(
        &self,
        operation: NamedOperation<'_>,
        only: &ElementSelection,
    ) -> Option<PartitionedAnswer> {
        let record = ExecutionRecord { elements: Some(Vec::new()), ..ExecutionRecord::default() };
        let executed = self.execute_recorded(operation, only, record)?;
        let lists = executed.record.elements.filter(|_| executed.failures.is_empty())?;
        Some(PartitionedAnswer { text: executed.data.0, lists })
    }

    fn execute_recorded(
        &self,
        operation: NamedOperation<'_>,
        only: &ElementSelection,
        record: ExecutionRecord,
    ) -> Option<Execution<JsonBytes>> {
        let request = Request { only_elements: Some(only), ..operation.into() };
        let (plan, variables) = self.planned_query(request)?;
        Some(self.execute_with(
            &plan,
            &variables,
            request,
            ExecutionOutput { sink: JsonBytes::default(), record },
        ))
    }
}

/// A response, and the byte ranges of its root elements.
struct PartitionedAnswer {
    text: Vec<u8>,
    lists: Vec<ElementRanges>,
}

impl PartitionedAnswer {
    /// The bytes of each datafile, by list and path.
    fn parts<'p>(&'p self, engine: &'p Engine) -> BTreeMap<(&'p str, &'p str), &'p [u8]> {
        let mut all = BTreeMap::new();
        for ElementRanges { list, elements } in &self.lists {
            for ElementRange { file, bytes } in elements {
                let text = &self.text[bytes.clone()];
                // The comma is ignored, because it depends only on the position in the list.
                let text = text.strip_prefix(b",").unwrap_or(text);
                all.insert((&**list, engine.index().path(*file)), text);
            }
        }
        all
    }

    /// The bytes outside of all elements.
    fn rest(&self) -> impl Iterator<Item = &u8> {
        let ranges = || self.lists.iter().flat_map(|list| &list.elements).map(|element| &element.bytes);
        let ends = ranges().map(|range| range.start).chain([self.text.len()]);
        let starts = std::iter::once(0).chain(ranges().map(|range| range.end));
        starts.zip(ends).flat_map(|(start, end)| &self.text[start..end])
    }
}
