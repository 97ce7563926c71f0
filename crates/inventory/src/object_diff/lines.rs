//! What differs in a text of several lines: rules, configuration files, scripts.

use serde_json::Value;

use super::align::{Step, align};
use crate::difference::{Difference, Side};
use crate::limit;

/// How many lines of a text are shown.
pub const MAX_LINES: usize = 12;

/// The lines that differ in the text at `path`, and how many more there are.
pub fn diff(path: &str, before: &str, after: &str) -> Vec<Difference> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let line = |number: usize, before: Option<&str>, after: Option<&str>| {
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => {
                let (before, after) = limit::pair(&before.into(), &after.into());
                (Side::Shown(before), Side::Shown(after))
            }
            (before, after) => (side(before), side(after)),
        };
        Difference { path: format!("{path} line {}", number + 1), before, after }
    };
    let differs = |step: Step| match step {
        Step::Pair(one, other) if old[one] == new[other] => None,
        Step::Pair(one, other) => Some(line(other, Some(old[one]), Some(new[other]))),
        Step::Removed(one) => Some(line(one, Some(old[one]), None)),
        Step::Added(other) => Some(line(other, None, Some(new[other]))),
    };
    let steps = align(old.len(), new.len(), |one, other| old[one] == new[other]);
    let mut all: Vec<Difference> = steps.into_iter().filter_map(differs).collect();
    if all.is_empty() {
        // They differ in how lines end.
        let (before, after) = limit::pair(&before.into(), &after.into());
        return vec![Difference {
            path: path.to_owned(),
            before: Side::Shown(before),
            after: Side::Shown(after),
        }];
    }
    if all.len() > MAX_LINES {
        let more = all.split_off(MAX_LINES).len();
        all.push(Difference { path: path.to_owned(), before: Side::Hidden, after: Side::MoreLines(more) });
    }
    all
}

fn side(line: Option<&str>) -> Side {
    line.map_or(Side::Absent, |line| Side::Shown(limit::value(&Value::from(line))))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINES, diff};

    fn check(before: &str, after: &str, expect: &[&str]) {
        let lines: Vec<String> = diff("data.x", before, after).iter().map(ToString::to_string).collect();
        assert_eq!(lines, expect);
    }

    #[test]
    fn only_lines_that_differ_are_shown() {
        check("a\nb\nc\n", "a\nB\nc\n", &["data.x line 2: \"b\" → \"B\""]);
        check("a\nb\nc\n", "a\nc\n", &["data.x line 2: \"b\" → absent"]);
        check("a\nc", "a\nb\nc", &["data.x line 2: absent → \"b\""]);
        check("a", "a\nb", &["data.x line 2: absent → \"b\""]);
    }

    #[test]
    fn a_line_break_at_the_end_is_a_difference() {
        check("a\nb", "a\nb\n", &["data.x: \"a\\nb\" → \"a\\nb\\n\""]);
    }

    #[test]
    fn many_lines_are_folded() {
        let text = |letter: char, lines: usize| format!("{letter}\n").repeat(lines);
        assert_eq!(diff("x", &text('a', MAX_LINES), &text('b', MAX_LINES)).len(), MAX_LINES);
        let folded = diff("x", &text('a', MAX_LINES + 2), &text('b', MAX_LINES + 2));
        assert_eq!(folded.len(), MAX_LINES + 1);
        assert_eq!(folded[MAX_LINES].to_string(), "x: 2 more lines differ");
    }
}
