//! The JSON dialects are those of Python and JavaScript, and values survive a round trip.

use proptest::prelude::*;
use qontract_bundle::json::{JsonParser, write_javascript, write_python};
use qontract_bundle::{Map, Value};

fn python(value: &Value) -> String {
    let mut out = Vec::new();
    write_python(value, &mut out);
    String::from_utf8(out).expect("ASCII")
}

fn javascript(value: &Value) -> String {
    let mut out = Vec::new();
    write_javascript(value, &mut out);
    String::from_utf8(out).expect("UTF-8")
}

fn read(text: &str) -> Option<Value> {
    JsonParser::new(text).parse().ok()
}

#[test]
fn floats_are_written_as_each_language_does() {
    let cases: &[(f64, &str, &str)] = &[
        (0.0, "0.0", "0"),
        (-0.0, "-0.0", "0"),
        (1.0, "1.0", "1"),
        (1.5, "1.5", "1.5"),
        (-2.25, "-2.25", "-2.25"),
        (0.1, "0.1", "0.1"),
        (0.0001, "0.0001", "0.0001"),
        (0.00001, "1e-05", "0.00001"),
        (0.000_001, "1e-06", "0.000001"),
        (1e-7, "1e-07", "1e-7"),
        (1.5e-9, "1.5e-09", "1.5e-9"),
        (1e15, "1000000000000000.0", "1000000000000000"),
        (1e16, "1e+16", "10000000000000000"),
        (123_456_789_012_345_680_000.0, "1.2345678901234568e+20", "123456789012345680000"),
        (1e21, "1e+21", "1e+21"),
        (1.797_693_134_862_315_7e308, "1.7976931348623157e+308", "1.7976931348623157e+308"),
        (5e-324, "5e-324", "5e-324"),
        (16_639_304_730_989.562, "16639304730989.562", "16639304730989.562"),
    ];
    for (value, in_python, in_javascript) in cases {
        assert_eq!(python(&Value::Float(*value)), *in_python);
        assert_eq!(javascript(&Value::Float(*value)), *in_javascript);
    }
}

#[test]
fn large_whole_numbers_stay_exact_except_in_javascript() {
    let large = Value::BigInt("123456789012345678901234567890".into());
    assert_eq!(python(&large), "123456789012345678901234567890");
    assert_eq!(read(&python(&large)), Some(large.clone()));
    assert_eq!(javascript(&large), "1.2345678901234568e+29");
    assert_eq!(javascript(&Value::Int(9_007_199_254_740_993)), "9007199254740992");
}

#[test]
fn javascript_puts_array_indices_first() {
    let map = |keys: &[&str]| Value::Map(Map::new(keys.iter().map(|key| (*key, Value::Null)).collect()));
    let keys = map(&["b", "10", "9", "01", "4294967295", "4294967294", "a", "-1", "1.5", "0"]);
    let written = javascript(&keys).replace(":null", "");
    assert_eq!(written, r#"{"0","9","10","4294967294","-1","01","1.5","4294967295","a","b"}"#);
}

#[test]
fn strings_are_escaped_as_each_language_does() {
    let text = Value::str("a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}é☃😀/");
    assert_eq!(python(&text), r#""a\"b\\c\n\r\t\b\f\u0001\u007f\u00e9\u2603\ud83d\ude00/""#);
    assert_eq!(javascript(&text), "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\u{7f}é☃😀/\"");
}

#[test]
fn texts_that_are_not_json_are_refused() {
    let refused = [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "-",
        "+1",
        "NaN",
        "Infinity",
        "1e",
        "\"\n\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\u12\"",
        "\"a",
        "tru",
        "nulll",
        "[1] 2",
        "{\"a\" 1}",
        "'a'",
        "1e999",
        "[1 2]",
    ];
    for text in refused {
        assert_eq!(read(text), None, "{text:?}");
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert_eq!(read(&deep), None, "nested too deeply");
}

#[test]
#[ignore = "needs QONTRACT_PYTHON; run by `cargo xtask test`"]
fn the_writer_agrees_with_python_itself() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let interpreter =
        std::env::var("QONTRACT_PYTHON").expect("QONTRACT_PYTHON: run `cargo xtask test`, or set it");
    // Floats with pseudo-random bits, written here, parsed and written by Python.
    let mut random = fastrand::Rng::with_seed(0x0123_4567_89ab_cdef);
    let mut values = Vec::new();
    while values.len() < 20_000 {
        let value = f64::from_bits(random.u64(..));
        if value.is_finite() {
            values.push(Value::Float(value));
        }
    }
    let ours = python(&Value::List(values.into_boxed_slice()));
    let script =
        "import json,sys; print(json.dumps(json.load(sys.stdin), sort_keys=True, separators=(',', ':')))";
    let mut child = Command::new(interpreter)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    child.stdin.take().expect("a pipe").write_all(ours.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), ours);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(Value::Float),
        ".{0,12}".prop_map(|text| Value::str(&text)),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let entries = prop::collection::vec((".{0,4}", inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(|items| Value::List(items.into_boxed_slice())),
            entries.prop_map(|entries| { Value::Map(Map::new(entries.into_iter().collect())) }),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in values()) {
        prop_assert_eq!(read(&python(&value)), Some(value));
    }

    #[test]
    fn texts_are_accepted_or_refused_as_serde_json_does(text in r#"[\[\]{}:,"\\ 0-9eE+.\-tfn ruela/]{0,24}"#) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        // Out of range for `serde_json`, a large whole number for this parser.
        let number_out_of_range = theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        prop_assert_eq!(read(&text).is_some(), theirs.is_ok() || (number_out_of_range && read(&text).is_some()));
    }
}
