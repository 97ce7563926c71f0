//! The root elements that a request selects, and those that its response contains.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::source::FileId;

/// For each root list, by its key in the response, the paths of the selected datafiles.
pub type ElementSelection = BTreeMap<Box<str>, BTreeSet<Box<str>>>;

/// A root list in a response.
#[derive(Debug)]
pub(crate) struct ElementRanges {
    /// The key of the list in the response.
    pub list: Box<str>,
    /// The elements of the list, in response order.
    pub elements: Vec<ElementRange>,
}

/// An element of a root list in a response.
#[derive(Debug)]
pub(crate) struct ElementRange {
    /// The datafile of the element.
    pub file: FileId,
    /// The bytes of the element in the response, including the preceding comma.
    pub bytes: Range<usize>,
}
