//! Stores many short lists of ids in two allocations.

/// A sequence of id lists, indexed from 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IdLists {
    items: Vec<u32>,
    /// The end offset of each list.
    ends: Vec<u32>,
}

impl IdLists {
    /// Sorts and deduplicates a list, appends its ids as the next list, and clears it.
    pub fn push(&mut self, list: &mut Vec<u32>) {
        list.sort_unstable();
        list.dedup();
        self.push_ordered(list);
        list.clear();
    }

    /// Appends a list that is already sorted and has no duplicates.
    pub fn push_ordered(&mut self, list: &[u32]) {
        self.items.extend_from_slice(list);
        self.ends.push(u32::try_from(self.items.len()).expect("a bundle has fewer than 2^32 references"));
    }

    /// The list at this index; empty if the index is out of range.
    pub fn of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let Some(end) = self.ends.get(number) else { return &[] };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[start as usize..*end as usize]
    }

    /// Appends all lists of `other`.
    pub fn append(&mut self, other: &Self) {
        let before = u32::try_from(self.items.len()).expect("a bundle has fewer than 2^32 references");
        self.items.extend_from_slice(&other.items);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    /// Inverts the lists: for each id below `count`, the indexes of the lists that contain it.
    pub fn reversed(&self, count: usize) -> Self {
        let mut ends = vec![0_u32; count];
        for item in &self.items {
            ends[*item as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            // Stores the start of the list; the loop below advances it to the end.
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![0; self.items.len()];
        for number in (0..).take(self.ends.len()) {
            for item in self.of(number) {
                let next = &mut ends[*item as usize];
                items[*next as usize] = number;
                *next += 1;
            }
        }
        Self { items, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::IdLists;

    #[test]
    fn reversed_lists_contain_the_lists_of_each_number() {
        let mut lists = IdLists::default();
        for list in [vec![2, 0, 2], vec![], vec![2], vec![1, 2]] {
            lists.push(&mut list.clone());
        }
        assert_eq!([0, 1, 2, 3, 4].map(|number| lists.of(number)), [&[0, 2][..], &[], &[2], &[1, 2], &[]]);
        let reversed = lists.reversed(4);
        assert_eq!([0, 1, 2, 3].map(|number| reversed.of(number)), [&[0][..], &[3], &[0, 2, 3], &[]]);
        assert_eq!(reversed.reversed(4), lists);
    }
}
