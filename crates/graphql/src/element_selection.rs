//! The root elements that a request selects, and those that its response contains.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::index::FileId;

/// For each root list, by its key in the response, the paths of the selected datafiles.
pub type ElementSelection = BTreeMap<Box<str>, BTreeSet<Box<str>>>;

/// A root list in a response.
#[derive(Debug)]
pub(crate) struct ElementRanges {
    /// Its key.
    pub list: Box<str>,
    /// Its elements, in response order.
    pub elements: Vec<ElementRange>,
}

/// An element of a root list in a response.
#[derive(Debug)]
pub(crate) struct ElementRange {
    /// Its datafile.
    pub file: FileId,
    /// Its bytes in the response, from the preceding comma on.
    pub bytes: Range<usize>,
}
