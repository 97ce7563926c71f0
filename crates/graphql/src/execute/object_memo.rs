//! Memoizes objects that occur more than once in a response: the same selection of the same datafile is
//! executed once and copied afterwards.
//!
//! Most of a large response consists of such copies, because many namespaces share a cluster and many users
//! have the same roles.

use std::collections::HashMap;
use std::ops::Range;

use crate::plan::{Plan, SelectionId};
use crate::source::FileId;

/// Number of lookups after which the hit rate of a selection decides whether it stays memoized.
const TRIAL_LOOKUPS: u32 = 8192;

/// The byte ranges of objects in one response, by selection and datafile.
///
/// **Invariant:** every entry refers to an object in the response, and this object is complete and has no
/// errors.
pub struct ObjectMemo {
    selections: Vec<SelectionMemo>,
    /// The end offset of the memoized object that ends last.
    end: usize,
}

#[derive(Default)]
struct SelectionMemo {
    ranges: HashMap<FileId, Range<usize>, foldhash::fast::RandomState>,
    lookups: u32,
    hits: u32,
}

impl SelectionMemo {
    /// Whether memoizing is worthwhile, that is, at least one in sixteen lookups is a hit.
    fn is_worthwhile(&self) -> bool {
        self.lookups < TRIAL_LOOKUPS || self.hits >= self.lookups / 16
    }
}

impl ObjectMemo {
    /// Creates an empty memo for a plan.
    pub fn new(plan: &Plan) -> Self {
        Self { selections: plan.selections.iter().map(|_| SelectionMemo::default()).collect(), end: 0 }
    }

    /// The byte range of an earlier copy of this selection of this datafile. The caller must write a new copy
    /// at `offset`; the entry then refers to the new copy, which is most likely still in the CPU cache.
    pub fn find(&mut self, selection: SelectionId, file: FileId, offset: usize) -> Option<Range<usize>> {
        let memo = &mut self.selections[selection];
        if !memo.is_worthwhile() {
            return None;
        }
        memo.lookups = memo.lookups.saturating_add(1);
        let written = memo.ranges.get_mut(&file)?;
        memo.hits = memo.hits.saturating_add(1);
        let copy = offset..offset + written.len();
        self.end = copy.end;
        Some(std::mem::replace(written, copy))
    }

    /// Memoizes the byte range of an object.
    pub fn put(&mut self, selection: SelectionId, file: FileId, written: Range<usize>) {
        let memo = &mut self.selections[selection];
        if memo.is_worthwhile() {
            self.end = self.end.max(written.end);
            memo.ranges.insert(file, written);
        } else if !memo.ranges.is_empty() {
            memo.ranges = HashMap::default();
        }
    }

    /// Drops all entries if truncating the response at `end` removed one of them.
    pub fn truncate(&mut self, end: usize) {
        if self.end > end {
            self.selections.iter_mut().for_each(|memo| memo.ranges = HashMap::default());
            self.end = 0;
        }
    }
}
