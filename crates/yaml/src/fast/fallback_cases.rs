//! Texts that are left to the fallback parser.

use super::compare::takes;

fn assert_fallback(texts: &[&str]) {
    for text in texts {
        assert_eq!(takes(text), Ok(false), "{text:?}");
    }
}

#[test]
fn several_documents_and_none() {
    assert_fallback(&[
        "",
        "# a\n",
        "---\n",
        "a\n",
        "--- a\n",
        "---\n---\n",
        "a: b\n---\nc: d\n",
        "a: b\n...\n",
        "... : a\n",
        "--- : a\n",
        "a: b\n--- : c\n",
        "%YAML 1.1\n---\na: b\n",
    ]);
}

#[test]
fn quotes_that_are_not_simple() {
    assert_fallback(&[
        "'a'\n",
        "a: 'b': c\n",
        "a: 'b' c\n",
        "a: 'b'#c\n",
        "a: \"b\" c\n",
        "a: 'b\n",
        "a: 'b\n  c'\n",
        "a: \"b\n  c\"\n",
        "a: \"\\x41\"\n",
        "a: \"\\u0041\"\n",
        "a: \"\\q\"\n",
        "a:\n  'b'\n",
    ]);
}

#[test]
fn brackets_that_are_not_simple() {
    assert_fallback(&[
        "[]\n",
        "a: &b c\nd: {*b : e}\n",
        "a: [&b c]\n",
        "a:\n  []\n",
        "a: [\n  b]\n",
        "a: [b\n",
        "a: [b: c]\n",
        "a: [,]\n",
        "a: [b,,c]\n",
        "a: [b}\n",
        "a: [b]c\n",
        "a: [b]#c\n",
        "a: [b]: c\n",
        "- [b]: c\n",
        "a: [-]\n",
        "a: [- b]\n",
        "a: [b #c]\n",
        "a: [#b]\n",
        "a: {b}\n",
        "a: {b, c}\n",
        "a: {b: }\n",
        "a: {b: c: d}\n",
        "a: {b:}\n",
        "a: {\"b\":c}\n",
        "a: {b: 'c' d}\n",
        "a: {? b: c}\n",
        "a: {b: x:?}\n",
        "a: [*b]\n",
        "a: [|]\n",
    ]);
}

#[test]
fn tags_and_other_indicators() {
    assert_fallback(&[
        "{a: b}\n",
        "a: !b c\n",
        "!a b: c\n",
        "? a\n",
        "?a: b\n",
        ": a\n",
        "a: ? b\n",
        "a: : b\n",
        "a: @b\n",
        "a: `b\n",
        "a: %b\n",
        "a: ]\n",
        "a: }\n",
        "a: ,\n",
    ]);
}

#[test]
fn blocks_of_text_without_text_or_with_more_than_a_sign() {
    assert_fallback(&[
        "|\n  a\n",
        "a: |\n",
        "a: |",
        "a: |\n  b",
        "a: |\n  b\n  ",
        "a: |\n\n",
        "a: |\nb: c\n",
        "a: |2\n  b\n",
        "a: | # b\n  c\n",
        "a: |x\n  c\n",
        "a: |\n    \n  b\n",
        "a: |\n    b\n  c\n",
    ]);
}

#[test]
fn control_characters_and_byte_order_marks() {
    assert_fallback(&["\u{feff}a: b\n", "a: \u{feff}\n", "a: b\r\n", "a: \u{7}\n", "a: \u{80}\n"]);
}

#[test]
fn anchors_and_aliases_in_other_places() {
    assert_fallback(&[
        "a: *b\n",
        "a: &b\n",
        "a: &b\nc: d\n",
        "a: &b\n  c\n",
        "a: &b: c\n",
        "a: &ü c\n",
        "a: & c\n",
        "a: &b &c d\n",
        "a: &b c\nd: &e *b\n",
        "a: &b c\nd: *b e\n",
        "a: &b c\n*b : d\n",
        "- &a b: c\n",
        "- &a - b\n",
        "- &a\n- b\n",
        "&a b: c\n",
        "*a : c\n",
    ]);
}

#[test]
fn columns_and_lines_that_do_not_fit() {
    assert_fallback(&[
        "a: - b\n",
        "a: -\n",
        "a: b: c\n",
        "a: b:\n",
        "a: b\n  c\n",
        "a: b # d\n  c\n",
        "a:\n  b\n",
        "a:\n  |\n  b\n",
        "- a\n  b\n",
        "-\n  a\n",
        "a: b\nc\n",
        "a: b\n c: d\n",
        "a:\n    b: c\n  d: e\n",
        "  a: b\nc: d\n",
        "- a\nb: c\n",
        "a: b\n- c\n",
        "a:\n  - b\n  c: d\n",
        "a:\n  - b\n- c\n",
    ]);
}

#[test]
fn tabs_outside_of_comments_and_blocks() {
    assert_fallback(&[
        "\ta: b\n",
        "a:\tb\n",
        "a: \tb\n",
        "a: b\tc\n",
        "a: b\t\n",
        "a: 'b\tc'\n",
        "-\ta\n",
        "a: b\n\t\n",
        "a: |\n  \tb\n",
        "a: |\n\tb\n",
        "a: [b\tc]\n",
    ]);
}

#[test]
fn keys_nesting_and_anchors_beyond_a_limit() {
    assert_fallback(&[
        &"- &a b\n".repeat(65),
        &format!("{}: a\n", "k".repeat(1_025)),
        &format!("a: {{{}: a}}\n", "k".repeat(1_025)),
        &"- ".repeat(100),
        &format!("a: {}{}\n", "[".repeat(100), "]".repeat(100)),
    ]);
}
