//! Objects that an answer has more than once: the same fields of the same datafile are read once and copied then.
//!
//! Many namespaces are in one cluster, and many users have the same roles: most of a large answer is such copies.

use std::collections::HashMap;
use std::ops::Range;

use crate::index::FileId;
use crate::plan::{Plan, SelectionId};

/// After so many objects it is known whether a selection meets the same ones again.
const TRIED: u32 = 8192;

/// Where the objects of one answer are in it.
///
/// **Invariant:** what is known stands in the answer, whole and without errors.
pub struct Again {
    selections: Vec<Known>,
    /// The end of all that is known.
    end: usize,
}

#[derive(Default)]
struct Known {
    written: HashMap<FileId, Range<usize>, foldhash::fast::RandomState>,
    asked: u32,
    found: u32,
}

impl Known {
    /// Whether remembering is worth its while: at least one of sixteen was met before.
    fn pays(&self) -> bool {
        self.asked < TRIED || self.found >= self.asked / 16
    }
}

impl Again {
    /// Nothing yet.
    pub fn new(plan: &Plan) -> Self {
        Self { selections: plan.selections.iter().map(|_| Known::default()).collect(), end: 0 }
    }

    /// Where the fields of a selection were written for this datafile. They are about to be written at `offset`, from where
    /// they are copied the next time: what was written last is nearest.
    pub fn find(&mut self, selection: SelectionId, file: FileId, offset: usize) -> Option<Range<usize>> {
        let known = &mut self.selections[selection];
        if !known.pays() {
            return None;
        }
        known.asked = known.asked.saturating_add(1);
        let written = known.written.get_mut(&file)?;
        known.found = known.found.saturating_add(1);
        let copy = offset..offset + written.len();
        self.end = copy.end;
        Some(std::mem::replace(written, copy))
    }

    /// Remembers where they were written.
    pub fn put(&mut self, selection: SelectionId, file: FileId, written: Range<usize>) {
        let known = &mut self.selections[selection];
        if known.pays() {
            self.end = self.end.max(written.end);
            known.written.insert(file, written);
        } else if !known.written.is_empty() {
            known.written = HashMap::default();
        }
    }

    /// Forgets what is no longer there: the answer was cut off at `end`.
    pub fn cut(&mut self, end: usize) {
        if self.end > end {
            self.selections.iter_mut().for_each(|known| known.written = HashMap::default());
            self.end = 0;
        }
    }
}
