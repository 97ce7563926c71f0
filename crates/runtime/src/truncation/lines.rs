//! Line diff of multi-line strings: rules, configuration files and scripts.

use qontract_bundle::diff::{AlignStep, MAX_PAIRS, align};
use serde_json::Value;

use super::{truncate_pair, truncate_value};
use crate::field_diff::{DiffEntry, FieldChange, FieldDiff};

/// Maximum number of lines that are shown.
const MAX_LINES: usize = 12;

/// The lines that differ in the string at `path`, and the number of further differing lines.
pub fn diff(path: &str, before: &str, after: &str) -> Vec<DiffEntry> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let differs = |step: AlignStep| match step {
        AlignStep::Pair(one, other) if old[one] == new[other] => None,
        AlignStep::Pair(one, other) => Some(changed(line(path, other), old[one], new[other])),
        AlignStep::Removed(one) => Some(FieldDiff {
            change: FieldChange::Removed,
            path: line(path, one),
            before: Some(truncate_value(&Value::from(old[one]))),
            after: None,
        }),
        AlignStep::Added(other) => Some(FieldDiff {
            change: FieldChange::Added,
            path: line(path, other),
            before: None,
            after: Some(truncate_value(&Value::from(new[other]))),
        }),
    };
    let steps = align(old.len(), new.len(), MAX_PAIRS, |one, other| old[one] == new[other]);
    let mut all: Vec<FieldDiff> = steps.into_iter().filter_map(differs).collect();
    if all.is_empty() {
        // The strings differ only in their line endings.
        all.push(changed(path.to_owned(), before, after));
    }
    let more = all.len().saturating_sub(MAX_LINES);
    all.truncate(MAX_LINES);
    let mut entries: Vec<DiffEntry> = all.into_iter().map(DiffEntry::from).collect();
    match more {
        0 => {}
        1 => entries.push(format!("{path}: 1 more line differs").into()),
        more => entries.push(format!("{path}: {more} more lines differ").into()),
    }
    entries
}

fn changed(path: String, before: &str, after: &str) -> FieldDiff {
    let (before, after) = truncate_pair(&before.into(), &after.into());
    FieldDiff { change: FieldChange::Changed, path, before: Some(before), after: Some(after) }
}

/// The path of a line; `number` is counted from 0.
fn line(path: &str, number: usize) -> String {
    format!("{path} line {}", number + 1)
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
        check("a\nb\nc\n", "a\nB\nc\n", &["~ data.x line 2: \"b\" → \"B\""]);
        check("a\nb\nc\n", "a\nc\n", &["- data.x line 2: \"b\""]);
        check("a\nc", "a\nb\nc", &["+ data.x line 2: \"b\""]);
        check("a", "a\nb", &["+ data.x line 2: \"b\""]);
    }

    #[test]
    fn a_line_break_at_the_end_is_a_difference() {
        check("a\nb", "a\nb\n", &["~ data.x: \"a\\nb\" → \"a\\nb\\n\""]);
    }

    #[test]
    fn many_lines_are_folded() {
        let text = |letter: char, lines: usize| format!("{letter}\n").repeat(lines);
        assert_eq!(diff("x", &text('a', MAX_LINES), &text('b', MAX_LINES)).len(), MAX_LINES);
        let folded = diff("x", &text('a', MAX_LINES + 2), &text('b', MAX_LINES + 2));
        assert_eq!(folded.len(), MAX_LINES + 1);
        assert_eq!(folded[MAX_LINES].to_string(), "x: 2 more lines differ");
        let folded = diff("x", &text('a', MAX_LINES + 1), &text('b', MAX_LINES + 1));
        assert_eq!(folded[MAX_LINES].to_string(), "x: 1 more line differs");
    }

    #[test]
    fn long_lines_are_cut() {
        let long = "y".repeat(300);
        let cut = format!("{}… (100 more characters)", "y".repeat(200));
        check("a\n", &format!("a\n{long}\n"), &[&format!("+ data.x line 2: \"{cut}\"")]);
        check(&format!("a\n{long}\n"), "a\n", &[&format!("- data.x line 2: \"{cut}\"")]);
        check(
            &format!("a\n{long}1\n"),
            &format!("a\n{long}2\n"),
            &[&format!("~ data.x line 2: \"…{0}1\" → \"…{0}2\"", "y".repeat(20))],
        );
    }
}
