//! Compares two bundles: finds the datafiles and resources that differ, and their changed fields.

mod align;
mod fields;
mod rename;
mod wire;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::model::{Bundle, Datafile, Document, Resource};

pub use align::{AlignStep, MAX_PAIRS, align};
pub use fields::{FieldChange, fields};
pub use rename::{OldFile, RenamedFiles, Renames, renames};

/// A value before and after a change. At least one of the two exists.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// Exists only after the change.
    Added(T),
    /// Exists only before the change.
    Removed(T),
    /// Exists before and after, with different values.
    Changed(T, T),
}

impl<T> Change<T> {
    /// The value before, if it existed.
    pub fn before(&self) -> Option<&T> {
        match self {
            Change::Added(_) => None,
            Change::Removed(old) | Change::Changed(old, _) => Some(old),
        }
    }

    /// The value after, or before if it was removed.
    pub fn either(&self) -> &T {
        match self {
            Change::Added(either) | Change::Removed(either) | Change::Changed(_, either) => either,
        }
    }

    /// Applies a function to both values.
    pub fn map<U>(self, with: impl Fn(T) -> U) -> Change<U> {
        match self {
            Change::Added(new) => Change::Added(with(new)),
            Change::Removed(old) => Change::Removed(with(old)),
            Change::Changed(old, new) => Change::Changed(with(old), with(new)),
        }
    }

    /// The value after, if it exists.
    pub fn after(&self) -> Option<&T> {
        match self {
            Change::Removed(_) => None,
            Change::Added(new) | Change::Changed(_, new) => Some(new),
        }
    }
}

/// A datafile that differs.
#[derive(Clone, Debug)]
pub struct DatafileChange {
    /// The path.
    pub path: Arc<str>,
    /// The change.
    pub change: Change<Arc<Document>>,
}

/// A resource that differs.
#[derive(Clone, Debug)]
pub struct ResourceChange {
    /// The path.
    pub path: Box<str>,
    /// The change.
    pub change: Change<Arc<Resource>>,
}

/// The differences between two bundles. Each list has first the changed and removed files, then the added
/// files, both sorted by path.
#[derive(Clone, Debug, Default)]
pub struct Diff {
    /// The datafiles that differ.
    pub datafiles: Vec<DatafileChange>,
    /// The resources whose content differs. Back-references are not compared.
    pub resources: Vec<ResourceChange>,
    /// The schemas that differ.
    pub schemas: Vec<DatafileChange>,
    /// The change to the GraphQL type definitions, if they differ.
    pub graphql: Option<Change<Arc<Document>>>,
}

impl Diff {
    /// The differences between `base` and `head`.
    ///
    /// Documents that the bundles share are not compared, so the cost is proportional to the differences.
    pub fn between(base: &Bundle, head: &Bundle) -> Self {
        let resources = changes(
            base.resources(),
            head.resources(),
            |resource| &resource.path,
            |old, new| {
                let has_equal_metadata = old.sha256sum == new.sha256sum && old.schema == new.schema;
                old.digest == new.digest || (has_equal_metadata && old.content == new.content)
            },
        );
        let (old, new) = (base.graphql(), head.graphql());
        Self {
            datafiles: document_changes(base.datafiles(), head.datafiles()),
            schemas: document_changes(base.schemas(), head.schemas()),
            graphql: (!is_same_document(old, new)).then(|| Change::Changed(Arc::clone(old), Arc::clone(new))),
            resources: resources
                .into_iter()
                .map(|change| ResourceChange {
                    path: change.either().path.clone(),
                    change: change.map(Arc::clone),
                })
                .collect(),
        }
    }

    /// Whether the bundles have the same content.
    pub fn is_empty(&self) -> bool {
        let Self { datafiles, resources, schemas, graphql } = self;
        datafiles.is_empty() && resources.is_empty() && schemas.is_empty() && graphql.is_none()
    }
}

impl DatafileChange {
    /// The schema of the datafile, after the change if it still exists.
    pub fn schema(&self) -> Option<&str> {
        self.change.either().schema()
    }
}

/// The resources in both bundles whose back-references differ, by path. [`Diff`] does not include these
/// differences.
pub fn changed_backrefs<'b>(base: &'b Bundle, head: &'b Bundle) -> impl Iterator<Item = &'b str> {
    let is_same = |old: &Arc<Resource>, new: &Arc<Resource>| {
        Arc::ptr_eq(old, new) || old.digest == new.digest || old.backrefs == new.backrefs
    };
    let found = changes(base.resources(), head.resources(), |resource| &resource.path, is_same);
    found.into_iter().filter_map(|change| match change {
        Change::Changed(_, new) => Some(&*new.path),
        Change::Added(_) | Change::Removed(_) => None,
    })
}

/// Whether two documents are equal. Values are compared only if pointers and digests differ.
fn is_same_document(old: &Arc<Document>, new: &Arc<Document>) -> bool {
    Arc::ptr_eq(old, new) || old.digest == new.digest || old.value == new.value
}

fn document_changes(base: &[Datafile], head: &[Datafile]) -> Vec<DatafileChange> {
    let found = changes(
        base,
        head,
        |datafile| &datafile.path,
        |old, new| is_same_document(&old.document, &new.document),
    );
    found
        .into_iter()
        .map(|change| DatafileChange {
            path: Arc::clone(&change.either().path),
            change: change.map(|datafile| Arc::clone(&datafile.document)),
        })
        .collect()
}

/// Compares two sorted lists in one pass.
fn changes<'a, T>(
    base: &'a [T],
    head: &'a [T],
    path: impl Fn(&T) -> &str,
    same: impl Fn(&T, &T) -> bool,
) -> Vec<Change<&'a T>> {
    let mut found = Vec::new();
    let mut added = Vec::new();
    let (mut old, mut new) = (base.iter().peekable(), head.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => path(old).cmp(path(new)),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        match (before, after) {
            (Some(before), Some(after)) if !same(before, after) => found.push(Change::Changed(before, after)),
            (Some(before), None) => found.push(Change::Removed(before)),
            (None, Some(after)) => added.push(Change::Added(after)),
            _ => {}
        }
    }
    found.extend(added);
    found
}
