//! Computes a line-based diff of two strings.

use qontract_bundle::diff::{AlignStep, align};

/// A line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffLine<'a> {
    /// An unchanged line near one that differs.
    Context(&'a str),
    /// A line that exists only in the old text.
    Removed(&'a str),
    /// A line that exists only in the new text.
    Added(&'a str),
    /// The start of a hunk: the number of its first line in the new text.
    At(usize),
}

/// Maximum number of line pairs that are compared to find the smallest diff. Above this limit, all differing
/// lines are shown as replaced.
const MAX_LINE_PAIRS: usize = 4_000_000;

/// The lines that differ, with `context` lines around them. Line endings are ignored.
///
/// ```
/// use qontract_report::line_diff::{DiffLine::*, diff};
/// let lines = diff("a\nb\nc\nd\n", "a\nb\nx\nd\n", 1);
/// assert_eq!(lines, [At(2), Context("b"), Removed("c"), Added("x"), Context("d")]);
/// assert_eq!(diff("a\r\n", "a\n", 1), []);
/// ```
pub fn diff<'a>(old: &'a str, new: &'a str, context: usize) -> Vec<DiffLine<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    grouped(&edits(&old, &new), context)
}

/// The similarity of two strings: the share of common lines, from 0 to 1.
pub fn similarity(old: &str, new: &str) -> f64 {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let total = old.len() + new.len();
    if total == 0 {
        return 1.0;
    }
    let common = edits(&old, &new).iter().filter(|edit| matches!(edit, DiffLine::Context(_))).count();
    2.0 * ratio(common, total)
}

/// The ratio of `part` to `whole`, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "line counts are far below the limit of exact floats")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// All lines of both strings, in order. Where lines are replaced, the old lines come first.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<DiffLine<'a>> {
    let (mut out, mut added) = (Vec::new(), Vec::new());
    for step in align(old.len(), new.len(), MAX_LINE_PAIRS, |one, other| old[one] == new[other]) {
        match step {
            AlignStep::Pair(one, other) if old[one] == new[other] => {
                out.append(&mut added);
                out.push(DiffLine::Context(old[one]));
            }
            AlignStep::Pair(one, other) => {
                out.push(DiffLine::Removed(old[one]));
                added.push(DiffLine::Added(new[other]));
            }
            AlignStep::Removed(one) => out.push(DiffLine::Removed(old[one])),
            AlignStep::Added(other) => added.push(DiffLine::Added(new[other])),
        }
    }
    out.append(&mut added);
    out
}

/// Omits lines that are more than `context` lines away from a difference.
fn grouped<'a>(edits: &[DiffLine<'a>], context: usize) -> Vec<DiffLine<'a>> {
    let is_edit = |line: &DiffLine<'_>| !matches!(line, DiffLine::Context(_));
    let mut near = vec![false; edits.len()];
    for (index, _) in edits.iter().enumerate().filter(|(_, line)| is_edit(line)) {
        let end = (index + context + 1).min(edits.len());
        near[index.saturating_sub(context)..end].fill(true);
    }
    let (mut out, mut number, mut is_open) = (Vec::new(), 1, false);
    for (line, near) in edits.iter().zip(near) {
        if near {
            if !is_open {
                out.push(DiffLine::At(number));
            }
            out.push(*line);
        }
        is_open = near;
        number += usize::from(!matches!(line, DiffLine::Removed(_)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &[&str], new: &[&str], context: usize, expect: &str) {
        let lines = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
        let (old, new) = (lines(old), lines(new));
        let shown = diff(&old, &new, context).into_iter().map(|line| match line {
            DiffLine::Context(line) => format!(" {line}"),
            DiffLine::Removed(line) => format!("-{line}"),
            DiffLine::Added(line) => format!("+{line}"),
            DiffLine::At(number) => format!("@{number}"),
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expect);
    }

    #[test]
    fn lines_that_differ_are_shown_with_context() {
        check(&[], &[], 3, "");
        check(&["a"], &["a"], 3, "");
        check(&[], &["a"], 3, "@1 +a");
        check(&["a"], &[], 3, "@1 -a");
        check(&["a", "b", "c"], &["a", "c"], 1, "@1  a -b  c");
        check(&["a", "b", "c"], &["a", "c"], 0, "@2 -b");
        check(&["a", "c"], &["a", "b", "c"], 0, "@2 +b");
        check(&["a", "b"], &["b", "a"], 0, "@1 -a @2 +a");
        check(
            &["1", "2", "3", "4", "5", "6", "7"],
            &["1", "x", "3", "4", "5", "y", "7"],
            1,
            "@1  1 -2 +x  3 @5  5 -6 +y  7",
        );
        check(&["1", "2", "3", "4", "5"], &["x", "2", "3", "4", "y"], 2, "@1 -1 +x  2  3  4 -5 +y");
    }

    #[test]
    fn a_large_text_is_shown_as_replaced() {
        let old: Vec<String> = (0..2_001).map(|number| format!("old {number}")).collect();
        let new: Vec<String> = (0..2_001).map(|number| format!("new {number}")).collect();
        let (old, new) = (old.join("\n"), new.join("\n"));
        let lines = diff(&old, &new, 0);
        assert_eq!(lines.len(), 1 + 4_002);
        assert_eq!(lines[1], DiffLine::Removed("old 0"));
        assert_eq!(lines[2_002], DiffLine::Added("new 0"));
    }

    #[test]
    fn similarity_is_the_share_of_common_lines() {
        let check = |old: &str, new: &str, expect: f64| {
            assert!((similarity(old, new) - expect).abs() < 1e-9, "{old:?} {new:?}");
        };
        check("", "", 1.0);
        check("a\nb\n", "a\nb\n", 1.0);
        check("a\nb\n", "c\nd\n", 0.0);
        check("a\nb\n", "a\nc\n", 0.5);
        check("a\nb\nc\n", "b\n", 0.5);
    }
}
