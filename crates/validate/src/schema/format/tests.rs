//! Compares the formats with another implementation, on strings that are assembled from pieces.

use jsonschema::Draft;
use qontract_testkit::SeededRng;
use serde_json::json;

use super::StringFormat;

/// The pieces from which strings of each format are assembled: whole strings, and valid and invalid parts.
const PIECES: [(&str, &[&str]); 12] = [
    (
        "date",
        &[
            "2024-02-29",
            "1900-02-29",
            "2000-02-29",
            "2023-02-28",
            "2023-04-31",
            "2023-12-31",
            "2023-12-32",
            "2023-00-10",
            "2023-13-01",
            "2023-01-00",
            "0000-01-01",
            "2023/12/01",
            "2023-1-01",
            "é",
            "1",
        ],
    ),
    (
        "date-time",
        &[
            "2024-02-29T",
            "2023-02-29T",
            "2024-02-29",
            "T",
            "t",
            "23:59:60",
            "12:00:00",
            "12:00:00Z",
            "Z",
            "z",
            "+00:00",
            "-23:59",
            ".5",
            ".",
            " ",
            "é",
        ],
    ),
    (
        "email",
        &[
            "a",
            "@",
            "b.c",
            "\"\"",
            "\"x y\"",
            "[127.0.0.1]",
            "[ipv6:::1]",
            "[",
            "]",
            "é",
            ".",
            "-",
            "ab--c",
            "a+b",
        ],
    ),
    ("hostname", &["a", "-", ".", "xn--", "a1", "_", "é", "1", "A", " "]),
    ("ipv4", &["1", ".", "255", "256", "01", "1.2.3.4", " ", "0", "::1"]),
    ("ipv6", &["::", "1", ":", "ffff", "1.2.3.4", "g", "%1", "12345", "::ffff:1.2.3.4"]),
    ("json-pointer", &["/", "~", "0", "1", "2", "a", "é", "#", "~0", "~1/"]),
    ("regex", &["a", "(", ")", "[", "]", "*", "+", "\\d", "\\", "{1,2}", "?", "|", "(?<n>", "(?=", "$"]),
    (
        "time",
        &[
            "23:59:60", "00:00:60", "12:00:59", "24:00:00", "12:60:00", "12:00:61", "Z", "z", "+01:00",
            "-23:59", "+24:00", "-00:60", ".1", ".", "é",
        ],
    ),
    (
        "uri",
        &[
            "http",
            ":",
            "//",
            "/",
            "u:p@",
            "@",
            "h",
            "127.0.0.1",
            "[::1]",
            "[v1.x:y]",
            "[v.x]",
            "[",
            "]",
            ":80",
            ":8a",
            "?",
            "#",
            "%41",
            "%4",
            "a b",
            "é",
            "a+b",
            "1a",
            "\\",
            "[::1%25a]",
            "|",
        ],
    ),
    (
        "uri-reference",
        &[
            "a", ":", "//", "/", "..", "@", "h", "[::1]", "[V1a.x]", ":80", "?", "#", "%41", "%g1", "é",
            "1a", "~", "^", "'",
        ],
    ),
    (
        "uri-template",
        &[
            "http://x/",
            "{",
            "}",
            "a",
            "{a}",
            "{+a,b}",
            "{a:3}",
            "{a:0}",
            "{a:12345}",
            "{a*}",
            ":",
            "*",
            ",",
            ".",
            "%41",
            "%4",
            "|",
            "é",
            "'",
            " ",
        ],
    ),
];

#[test]
fn formats_agree_with_the_jsonschema_crate() {
    for (name, pieces) in PIECES {
        let options = jsonschema::options().with_draft(Draft::Draft6).should_validate_formats(true);
        let theirs = options.build(&json!({ "format": name })).unwrap();
        let ours = StringFormat::named(name).unwrap();
        let (chance, mut kept, mut differing) = (&mut SeededRng::new(1), 0, Vec::new());
        for _ in 0..20_000 {
            let text: String = (0..=chance.below(6)).map(|_| pieces[chance.below(pieces.len())]).collect();
            let is_kept = ours.is_match(&text);
            kept += usize::from(is_kept);
            if is_kept != theirs.is_valid(&json!(text)) {
                differing.push(text);
            }
        }
        assert!(differing.is_empty(), "{name}: {differing:?}");
        assert!(kept > 20, "{name}: {kept}");
    }
}

#[test]
fn long_names_and_leap_seconds() {
    let check =
        |format: StringFormat, text: &str, expect: bool| assert_eq!(format.is_match(text), expect, "{text}");
    let label = "a".repeat(63);
    check(StringFormat::Hostname, &label, true);
    check(StringFormat::Hostname, &format!("{label}a"), false);
    let long = [label.as_str(); 4].join(".");
    check(StringFormat::Hostname, &long[..253], true);
    check(StringFormat::Hostname, &long[..254], false);
    check(StringFormat::Time, "23:59:60+00:01", false);
    check(StringFormat::Time, "00:00:60+00:01", true);
    check(StringFormat::Time, "22:59:60-01:00", true);
    check(StringFormat::DateTime, "2016-12-31T15:59:60.123-08:00", true);
    assert_eq!(StringFormat::named("iri"), None);
}
