//! Memoizes objects that occur more than once in an answer: the same selection of the same datafile is
//! executed once and copied afterwards.
//!
//! Many namespaces are in one cluster, and many users have the same roles: most of a large answer consists of
//! such copies.

use std::collections::HashMap;
use std::ops::Range;

use crate::index::FileId;
use crate::plan::{Plan, SelectionId};

/// Number of look-ups after which the hit rate of a selection decides whether it stays memoized.
const TRIAL_LOOKUPS: u32 = 8192;

/// Positions of the objects in one answer.
///
/// **Invariant:** an entry points to an object that is in the answer, complete and without errors.
pub struct ObjectMemo {
    selections: Vec<SelectionMemo>,
    /// The end of the last entry.
    end: usize,
}

#[derive(Default)]
struct SelectionMemo {
    ranges: HashMap<FileId, Range<usize>, foldhash::fast::RandomState>,
    lookups: u32,
    hits: u32,
}

impl SelectionMemo {
    /// Whether memoizing is worthwhile: at least one of sixteen look-ups is a hit.
    fn is_worthwhile(&self) -> bool {
        self.lookups < TRIAL_LOOKUPS || self.hits >= self.lookups / 16
    }
}

impl ObjectMemo {
    /// An empty memo for a plan.
    pub fn new(plan: &Plan) -> Self {
        Self { selections: plan.selections.iter().map(|_| SelectionMemo::default()).collect(), end: 0 }
    }

    /// The range where a selection of this datafile was written. The caller writes its copy at `offset`,
    /// which replaces the entry: the last copy is most likely in the CPU cache.
    pub fn find(&mut self, selection: SelectionId, file: FileId, offset: usize) -> Option<Range<usize>> {
        let known = &mut self.selections[selection];
        if !known.is_worthwhile() {
            return None;
        }
        known.lookups = known.lookups.saturating_add(1);
        let written = known.ranges.get_mut(&file)?;
        known.hits = known.hits.saturating_add(1);
        let copy = offset..offset + written.len();
        self.end = copy.end;
        Some(std::mem::replace(written, copy))
    }

    /// Memoizes where an object was written.
    pub fn put(&mut self, selection: SelectionId, file: FileId, written: Range<usize>) {
        let known = &mut self.selections[selection];
        if known.is_worthwhile() {
            self.end = self.end.max(written.end);
            known.ranges.insert(file, written);
        } else if !known.ranges.is_empty() {
            known.ranges = HashMap::default();
        }
    }

    /// Drops all entries if the answer was truncated at `end` before some of them.
    pub fn truncate(&mut self, end: usize) {
        if self.end > end {
            self.selections.iter_mut().for_each(|known| known.ranges = HashMap::default());
            self.end = 0;
        }
    }
}
