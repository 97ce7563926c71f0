//! Tests every form of a mistake through the parser.

use crate::{Limits, parse};
use qontract_diagnostics::position;

/// Checks the message, the line, the column and the hint of the only finding.
fn check(text: &str, expect: &str) {
    let findings = parse(text.as_bytes(), &Limits::default()).findings;
    let [finding] = findings.as_slice() else { panic!("{text}: {findings:?}") };
    let place = position(text, finding.location.span.expect("a place").start as usize);
    let hint = finding.hint.as_deref().map_or(String::new(), |hint| format!("; {hint}"));
    assert_eq!(format!("{}:{}: {}{hint}", place.line, place.column, finding.message), expect, "{text}");
}

#[test]
fn a_merge_conflict_is_named() {
    check(
        "a: b\n<<<<<<< HEAD\nc: d\n=======\nc: e\n>>>>>>> x\n",
        "2:1: unresolved merge conflict; resolve it, and remove the lines `<<<<<<<`, `=======` and `>>>>>>>`",
    );
    check(
        "<<<<<<< HEAD\n---\nc: d\n=======\n---\nc: e\n>>>>>>> x\n",
        "1:1: unresolved merge conflict; resolve it, and remove the lines `<<<<<<<`, `=======` and `>>>>>>>`",
    );
    check(
        "a: b\n---\nc: d\n",
        "2:1: a second document starts here; a datafile is one document: give the second one its own file",
    );
}

#[test]
fn an_unclosed_delimiter_is_reported_where_it_was_opened() {
    check("a: 1\nb: {c: d\ne: f\n", "2:4: `{` opened at 2:4 is not closed; close it with `}`");
    check("a: [1, 2\nc: d\n", "1:4: `[` opened at 1:4 is not closed; close it with `]`");
    check("a: \"b\nc: d\n", "1:4: `\"` opened at 1:4 is not closed; close it with `\"`");
    check("a: [1, 2\n", "1:4: `[` opened at 1:4 is not closed; close it with `]`");
}

#[test]
fn a_value_that_needs_quotes_is_shown_with_them() {
    check("a: b: c\n", "1:5: an unquoted value cannot contain `: `; quote the value: \"b: c\"");
    check("- a: b: \"c\"\n", "1:7: an unquoted value cannot contain `: `; quote the value");
    check("a: @b\n", "1:4: an unquoted value cannot begin with `@`; quote the value: \"@b\"");
    check(
        "a: `b`\n",
        "1:4: an unquoted value cannot begin with ``; quote the value: \"`b`\""
            .replace("``;", "```;")
            .as_str(),
    );
    check("a: %b\n", "1:4: an unquoted value cannot begin with `%`; quote the value: \"%b\"");
    check("a: *.b\n", "1:4: `*` starts an alias, and the anchor does not exist; quote the value: \"*.b\"");
    check("a: {b: c: d}\n", "1:9: an unquoted value cannot contain `: `; quote the value");
}

#[test]
fn a_wrong_indentation_is_compared_with_the_lines_above() {
    check(
        "a: b\n c: d\n",
        "2:1: the line is indented deeper than its siblings on line 1; remove 1 space, or quote the value on line 1 if it continues here",
    );
    check(
        "a:\n- b: 1\n\n   # more\n    c: 2\n",
        "5:1: the line is indented deeper than its siblings on line 2; remove 2 spaces, or quote the value on line 2 if it continues here",
    );
    check(
        "a:\n  b: 1\n c: 2\n",
        "3:1: the indentation matches no line above; indent it like line 2 or like line 1",
    );
    check("a:\n\tb: c\n", "2:1: a tab is used for indentation; indent with spaces");
}

#[test]
fn an_uncommon_mistake_keeps_the_message_of_the_parser() {
    check("a: ]\n", "1:4: misplaced bracket");
    check("a: b\nfoo\nc: d\n", "2:1: simple key expected ':'");
}
