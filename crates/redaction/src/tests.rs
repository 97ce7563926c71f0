//! Tests of the fields that are redacted and of those that are not.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use super::{REDACTED, Redactor};

fn check(secret: &str, text: &str, is_redacted: bool) {
    let expect = if is_redacted { REDACTED } else { text };
    assert_eq!(Redactor::new([secret]).field(text), expect, "{secret} in {text}");
}

#[test]
fn a_field_that_contains_a_secret_is_replaced_as_a_whole() {
    check("hunter22", "the password hunter22 is wrong", true);
    check("hunter22", "hunter22", true);
    check("hunter22", "hunter2 2", false);
    check("hunter22", "", false);
    check("hunter22\n", "`hunter22`", true);
}

#[test]
fn eight_bytes_are_held_and_seven_are_not() {
    check("1234567", "a 1234567 b", false);
    check("12345678", "a 12345678 b", true);
    check("ääää", "a ääää b", true);
}

#[test]
fn base64_is_recognised_in_both_alphabets_at_any_alignment_with_or_without_padding() {
    let secret = "~~secret?>ÿ";
    for before in ["", "x", "xy", "user:"] {
        for after in ["", "z", ":more"] {
            let text = format!("{before}{secret}{after}");
            check(secret, &format!("Basic {}", STANDARD.encode(&text)), true);
            check(secret, &STANDARD_NO_PAD.encode(&text), true);
            check(secret, &URL_SAFE.encode(&text), true);
        }
    }
    check(secret, &STANDARD.encode("another text"), false);
}

#[test]
fn percent_encoding_and_json_escapes_are_recognised() {
    check("a/b c+\"d\"", "GET /x?y=a%2Fb%20c%2B%22d%22", true);
    check("a/b c+\"d\"", "GET /x?y=a%2fb+c%2b%22d%22", true);
    check("line one\nline two", r#"{"text": "line one\nline two"}"#, true);
    check("say \"hello\"", r#"{"text":"say \"hello\""}"#, true);
    check("pässword", r"p\u00e4ssword", true);
}

#[test]
fn escapes_of_other_languages_and_nested_ones_are_recognised() {
    let secret = "bell \u{7} \"quote\" <a&b> ümläut";
    check(secret, &format!("{secret:?}"), true);
    let json = serde_json_like(secret);
    check(secret, &json, true);
    check(secret, &serde_json_like(&json), true);
    check(secret, "bell \u{7} &quot;quote&quot; &lt;a&amp;b&gt; &#252;ml&#xe4;ut", true);
    check("a/b c+\"d\"", "a%252Fb%2520c%252B%2522d%2522", true);
}

/// A quoted string, with quotes and backslashes escaped by backslashes.
fn serde_json_like(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn letters_of_another_case_and_other_compositions_are_recognised() {
    check("Pässword", "x PÄSSWORD", true);
    check("Pässword", "x pässword", true);
    check("Pässword", "x pÄssword", false);
    check("Pässword", "x Pa\u{308}ssword", true);
    check("Pa\u{308}ssword", "x Pässword", true);
    check("hunter22", "68756e7465723232", true);
    check("hunter22", "68756E7465723232", true);
}

#[test]
fn white_space_inside_long_forms_is_ignored() {
    check("0123456789abcdef", "0123456\n  789abcdef", true);
    check("0123456789abcde", "0123456\n  789abcde", false);
    check("0123456 789abcdef", "0123456\n789abcdef", true);
    let wrapped = "\n    bGluZSB0d28g\n    bGluZSB0aHJlZQ\n";
    check("line two line three", wrapped, true);
    check("first one\nsecond one", "key: |\n  first one\n  second one\n", true);
}

#[test]
fn public_text_is_shown_whether_or_not_it_equals_a_secret() {
    let secret = "hunter22";
    for public in ["label: hunter22", "hunter%32%32", r"\u0068unter22"] {
        let redactor = Redactor::new([secret, "another one"]).except([public, "unrelated"]);
        assert_eq!(redactor.field(public), public);
        assert_eq!(redactor.field("hunter22"), "hunter22", "{public}");
        assert_eq!(redactor.field("this is another one"), REDACTED, "the rest is still held");
        assert_eq!(redactor.field("aHVudGVyMjI="), REDACTED, "and so are its other forms");
    }
    let redactor = Redactor::new([secret]).except(["aHVudGVyMjI="]);
    assert_eq!(redactor.field("aHVudGVyMjI="), "aHVudGVyMjI=");
    assert_eq!(redactor.field("hunter22"), REDACTED);
}

#[test]
fn each_line_is_a_field_unless_a_secret_has_several_lines() {
    let redactor = Redactor::new(["hunter22", "line one\nline two"]);
    assert_eq!(redactor.lines("a\nhunter22!\nb"), format!("a\n{REDACTED}\nb"));
    assert_eq!(redactor.lines("a\nline one\nline two"), REDACTED);
    assert_eq!(redactor.lines("a\nb\n"), "a\nb\n");
    // The second line alone is too short to be recognised.
    let long = "x".repeat(32);
    let redactor = Redactor::new([format!("{long}\nshort").as_str()]);
    assert_eq!(redactor.lines(&format!("a\n{long}\nb\nshort")), REDACTED);
    assert_eq!(redactor.lines("a\nshort"), "a\nshort");
}

#[test]
fn shorter_values_are_held_where_they_are_known_to_be_credentials() {
    let redactor = Redactor::with_min_bytes(["abcd", "abc"], 4);
    assert_eq!(redactor.field("x abcd"), REDACTED);
    assert_eq!(redactor.field("x abc"), "x abc");
}

#[test]
fn an_empty_redactor_redacts_nothing() {
    assert!(Redactor::default().is_empty());
    assert!(Redactor::new(["short"]).is_empty());
    assert!(!Redactor::new(["hunter22"]).is_empty());
    assert_eq!(Redactor::default().field("anything"), "anything");
    let all = "hunter22 HUNTER22 aHVudGVyMj h1bnRlcjIy odW50ZXIyM 68756e7465723232 68756E7465723232";
    assert!(Redactor::new(["hunter22"]).except([all]).is_empty());
}

#[test]
fn debug_output_does_not_contain_secrets() {
    assert_eq!(format!("{:?}", Redactor::new(["hunter22"])), "Redactor(7 forms)");
}
