//! Compares results with expectations, and shows the lines that differ. Pure.

use qontract_runtime::{Fault, SourceLocation};
use serde_json::Value;

use crate::declare::{TemplateResult, TemplateTest};

/// Number of context lines around a difference.
const CONTEXT_LINES: usize = 2;
/// Maximum number of lines of a difference.
const MAX_DIFF_LINES: usize = 40;

/// The faults of a test. An unexpected result in several namespaces is reported once, with all source
/// locations.
pub fn faults(test: &TemplateTest) -> Vec<Fault> {
    let TemplateTest { name, template, expected_path, place, .. } = test;
    let below = |pointer: &str| place.as_ref().map(|place| place.below(pointer));
    let expected = match &test.expected {
        Ok(expected) => expected,
        Err(why) => {
            let text = format!("`{expected_path}`, which the test `{name}` expects, cannot be read: {why}");
            return vec![Fault::author(text).at(below("/expectedResult"))];
        }
    };
    if test.results.is_empty() {
        let text = format!("no namespace references `{template}`, so the test `{name}` checks nothing");
        return vec![Fault::author(text).at(below("/resourcePath"))];
    }
    let mut reported: Vec<Fault> = Vec::new();
    for TemplateResult { namespace: _, place: named, body } in &test.results {
        let fault = match body {
            Ok(body) if body == expected => continue,
            Ok(body) => Fault::author(format!(
                "`{template}` does not render to the result that the test `{name}` expects"
            ))
            .details(&difference(&printed_lines(expected), &printed_lines(body))),
            Err(why) => {
                Fault::author(format!("`{template}`, which `{name}` tests, cannot be rendered: {why}"))
            }
        };
        let places = [named.as_ref().map(|place| place.below("/path")), below("/expectedResult")];
        let is_same = |before: &&mut Fault| before.text == fault.text && before.details == fault.details;
        if let Some(before) = reported.iter_mut().find(is_same) {
            add_places(before, &places);
        } else {
            let mut fault = fault;
            add_places(&mut fault, &places);
            reported.push(fault);
        }
    }
    reported
}

fn add_places(fault: &mut Fault, places: &[Option<SourceLocation>]) {
    for place in places.iter().flatten() {
        if !fault.places.contains(place) {
            fault.places.push(place.clone());
        }
    }
}

/// Prints a value line by line; a multi-line string has one entry per line.
fn printed_lines(value: &Value) -> Vec<String> {
    let text = qontract_yaml::json::print(value);
    text.lines().skip(1).flat_map(unfold).collect()
}

/// Unfolds `a: "b
/// c"` into `a: |-`, `b` and `c`; other lines are unchanged.
fn unfold(line: &str) -> Vec<String> {
    let quoted = line.find(": \"").map(|place| line.split_at(place + 2));
    let text = quoted.and_then(|(key, quoted)| Some((key, serde_json::from_str::<String>(quoted).ok()?)));
    let Some((key, text)) = text.filter(|(_, text)| text.contains('\n')) else {
        return vec![line.to_owned()];
    };
    let margin = " ".repeat(line.len() - line.trim_start_matches([' ', '-']).len() + 2);
    let head = format!("{key}{}", if text.ends_with('\n') { "|" } else { "|-" });
    std::iter::once(head).chain(text.lines().map(|line| format!("{margin}{line}"))).collect()
}

/// The lines that differ, with a few lines of context: `-` is expected, and `+` is the result.
fn difference(expected: &[String], made: &[String]) -> String {
    let mut lines = Vec::new();
    let same = common(expected, made);
    let (mut left, mut right) = (0, 0);
    for (at, (next_left, next_right)) in
        same.iter().copied().chain([(expected.len(), made.len())]).enumerate()
    {
        lines.extend(expected[left..next_left].iter().map(|line| (Some('-'), line)));
        lines.extend(made[right..next_right].iter().map(|line| (Some('+'), line)));
        if at < same.len() {
            lines.push((None, &expected[next_left]));
        }
        (left, right) = (next_left + 1, next_right + 1);
    }
    let is_near = |index: usize| {
        let (from, to) = (index.saturating_sub(CONTEXT_LINES), (index + CONTEXT_LINES + 1).min(lines.len()));
        lines[from..to].iter().any(|(mark, _)| mark.is_some())
    };
    let mut shown: Vec<String> = Vec::new();
    let mut before = None;
    for (index, (mark, line)) in lines.iter().enumerate().filter(|(index, _)| is_near(*index)) {
        if before.is_some_and(|before| before + 1 < index) {
            shown.push("  …".to_owned());
        }
        before = Some(index);
        shown.push(format!("{} {line}", mark.unwrap_or(' ')));
    }
    if shown.len() > MAX_DIFF_LINES {
        let more = shown.len() - MAX_DIFF_LINES;
        shown.truncate(MAX_DIFF_LINES);
        shown.push(format!("… {more} more lines"));
    }
    shown.join("\n")
}

/// The pairs of lines of a longest common subsequence, in order. Common prefixes and suffixes are matched
/// first. If the remaining part is large, it counts as different as a whole.
fn common(left: &[String], right: &[String]) -> Vec<(usize, usize)> {
    const MAX_COMPARED_PAIRS: usize = 4_000_000;
    let ahead = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let rest = (&left[ahead..], &right[ahead..]);
    let behind =
        rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(left, right)| left == right).count();
    let (middle_left, middle_right) = (&rest.0[..rest.0.len() - behind], &rest.1[..rest.1.len() - behind]);
    let mut pairs: Vec<(usize, usize)> = (0..ahead).map(|index| (index, index)).collect();
    let (height, width) = (middle_left.len(), middle_right.len());
    if height * width <= MAX_COMPARED_PAIRS {
        // `longest[i][j]` is the length for the lines starting at `i` and `j`.
        let mut longest = vec![vec![0_u32; width + 1]; height + 1];
        for i in (0..height).rev() {
            for j in (0..width).rev() {
                longest[i][j] = if middle_left[i] == middle_right[j] {
                    longest[i + 1][j + 1] + 1
                } else {
                    longest[i + 1][j].max(longest[i][j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < height && j < width {
            if middle_left[i] == middle_right[j] {
                pairs.push((ahead + i, ahead + j));
                (i, j) = (i + 1, j + 1);
            } else if longest[i + 1][j] >= longest[i][j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    let ends = (left.len() - behind..left.len()).zip(right.len() - behind..right.len());
    pairs.extend(ends);
    pairs
}

#[cfg(test)]
mod tests {
    use super::{difference, printed_lines};
    use serde_json::json;

    fn check(expected: &str, made: &str, shown: &[&str]) {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(difference(&lines(expected), &lines(made)), shown.join("\n"), "{expected} {made}");
    }

    #[test]
    fn a_multi_line_text_is_shown_line_by_line() {
        let value = json!({"a": [{"b": "c\nd\n"}, "e\nf"], "g": "h: \"i\"\nj"});
        let lines = ["a:", "- b: |", "    c", "    d", "- \"e\\nf\"", "g: |-", "  h: \"i\"", "  j"];
        assert_eq!(printed_lines(&value), lines);
    }

    #[test]
    fn differences_are_shown_with_context() {
        check("abc", "abc", &[]);
        check("abcdefg", "abcXefg", &["  b", "  c", "- d", "+ X", "  e", "  f"]);
        check("abcdefghi", "Xbcdefghi", &["- a", "+ X", "  b", "  c"]);
        check("a", "ab", &["  a", "+ b"]);
        check("", "b", &["+ b"]);
        check("abcdefghijk", "XbcdefghijY", &["- a", "+ X", "  b", "  c", "  …", "  i", "  j", "- k", "+ Y"]);
        check("abcd", "badc", &["- a", "  b", "- c", "+ a", "  d", "+ c"]);
    }
}
