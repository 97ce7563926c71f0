//! Aligns the items of two lists, or the lines of two strings: a longest common subsequence.

/// The value of `max_pairs` for [`align`] where comparing two items may be costly.
pub const MAX_PAIRS: usize = 250_000;

/// The result for an item, with its positions before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignStep {
    /// The item is unchanged, or replaced by another item at its position.
    Pair(usize, usize),
    /// The item is removed.
    Removed(usize),
    /// The item is added.
    Added(usize),
}

/// Aligns `before` items with `after` items: first equal items, in order, then the items between them by
/// position. If more than `max_pairs` pairs would have to be compared, all items between the first and the
/// last difference are aligned by position.
pub fn align(
    before: usize,
    after: usize,
    max_pairs: usize,
    is_same: impl Fn(usize, usize) -> bool,
) -> Vec<AlignStep> {
    let shorter = before.min(after);
    let head = (0..shorter).take_while(|index| is_same(*index, *index)).count();
    let tail = (0..shorter - head).take_while(|index| is_same(before - 1 - index, after - 1 - index)).count();
    let (rows, columns) = (before - head - tail, after - head - tail);
    let mut steps: Vec<AlignStep> = (0..head).map(|index| AlignStep::Pair(index, index)).collect();
    let equal = if rows.saturating_mul(columns) > max_pairs {
        Vec::new()
    } else {
        common(rows, columns, |row, column| is_same(head + row, head + column))
    };
    let (mut row, mut column) = (0, 0);
    for (next_row, next_column) in equal.into_iter().chain([(rows, columns)]) {
        let paired = (next_row - row).min(next_column - column);
        steps.extend((0..paired).map(|index| AlignStep::Pair(head + row + index, head + column + index)));
        steps.extend((row + paired..next_row).map(|index| AlignStep::Removed(head + index)));
        steps.extend((column + paired..next_column).map(|index| AlignStep::Added(head + index)));
        if next_row < rows {
            steps.push(AlignStep::Pair(head + next_row, head + next_column));
        }
        (row, column) = (next_row + 1, next_column + 1);
    }
    steps.extend((0..tail).map(|index| AlignStep::Pair(before - tail + index, after - tail + index)));
    steps
}

/// The longest common subsequence, as pairs of positions.
fn common(rows: usize, columns: usize, is_same: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let width = columns + 1;
    let mut lengths = vec![0_u32; (rows + 1) * width];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            lengths[row * width + column] = if is_same(row, column) {
                lengths[(row + 1) * width + column + 1] + 1
            } else {
                lengths[(row + 1) * width + column].max(lengths[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while row < rows && column < columns {
        if is_same(row, column) {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if lengths[(row + 1) * width + column] >= lengths[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::{AlignStep, MAX_PAIRS, align};

    /// `=` equal, `~` changed, `-` removed, `+` added.
    fn check(before: &str, after: &str, expect: &str) {
        let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        let steps = align(before.len(), after.len(), MAX_PAIRS, |one, other| before[one] == after[other]);
        let word = |step: &AlignStep| match *step {
            AlignStep::Pair(one, other) if before[one] == after[other] => format!("={}", before[one]),
            AlignStep::Pair(one, other) => format!("~{}{}", before[one], after[other]),
            AlignStep::Removed(one) => format!("-{}", before[one]),
            AlignStep::Added(other) => format!("+{}", after[other]),
        };
        assert_eq!(steps.iter().map(word).collect::<Vec<_>>().join(" "), expect);
    }

    #[test]
    fn equal_items_belong_together() {
        check("abc", "abc", "=a =b =c");
        check("abc", "bc", "-a =b =c");
        check("abc", "ac", "=a -b =c");
        check("abc", "ab", "=a =b -c");
        check("bc", "abc", "+a =b =c");
        check("", "ab", "+a +b");
        check("ab", "", "-a -b");
        check("aab", "ab", "=a -a =b");
    }

    #[test]
    fn items_between_equal_ones_are_aligned_by_position() {
        check("axc", "ayc", "=a ~xy =c");
        check("axzc", "ayc", "=a ~xy -z =c");
        check("1a2b3", "4a5b6", "~14 =a ~25 =b ~36");
        check("1ab", "a2b", "-1 =a +2 =b");
    }

    #[test]
    fn very_long_lists_are_aligned_by_position() {
        let steps = align(501, 500, MAX_PAIRS, |one, other| one == other + 1);
        assert_eq!(steps.iter().filter(|step| matches!(step, AlignStep::Removed(_))).count(), 1);
        let steps = align(502, 501, MAX_PAIRS, |_, _| false);
        assert_eq!((steps.len(), steps[501]), (502, AlignStep::Removed(501)));
    }
}
