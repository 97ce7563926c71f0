//! Runs PyYAML as a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use qontract_yaml::{Node, Value};
use serde_json::{Value as Json, json};

/// PyYAML's result for each text, in order.
pub fn load_with_pyyaml(loader: &str, texts: &[String]) -> Vec<Json> {
    let python = std::env::var("QONTRACT_PYTHON")
        .expect("QONTRACT_PYTHON names a Python with PyYAML: run `cargo xtask test`, or set it");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/reader.py");
    let mut child = Command::new(python)
        .args([script, loader])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    let lines: Vec<String> = texts.iter().map(|text| json!(text).to_string()).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("the reader takes every text");
        }
    });
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let answers: Vec<Json> =
        output.lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("an answer")).collect();
    writer.join().expect("all texts were sent");
    assert!(child.wait().expect("Python ends").success(), "the oracle failed");
    assert_eq!(answers.len(), texts.len(), "an answer for each text");
    answers
}

/// A node in the format of the oracle.
pub fn typed(node: Node<'_>) -> Json {
    match node.value() {
        Value::Null => json!(["null"]),
        Value::Bool(value) => json!(["bool", value]),
        Value::Int(value) => json!(["int", value.to_string()]),
        Value::BigInt(digits) => json!(["int", digits]),
        Value::Float(value) if value.is_nan() => json!(["float", "nan"]),
        Value::Float(value) => json!(["float", format!("{:016x}", value.to_bits())]),
        Value::Str(text) => json!(["str", text]),
        Value::List(list) => json!(["list", list.iter().map(typed).collect::<Vec<_>>()]),
        Value::Map(map) => {
            let entries = map.iter().map(|entry| json!([["str", entry.key], typed(entry.value)]));
            json!(["map", entries.collect::<Vec<_>>()])
        }
    }
}

/// Whether a result contains something that a bundle cannot represent: other types, or keys that are not
/// strings.
pub fn is_unrepresentable(answer: &Json) -> bool {
    match answer[0].as_str() {
        Some("list") => items(answer).iter().any(is_unrepresentable),
        Some("map") => {
            items(answer).iter().any(|entry| entry[0][0] != "str" || is_unrepresentable(&entry[1]))
        }
        Some("other") => true,
        _ => false,
    }
}

fn items(answer: &Json) -> &[Json] {
    answer[1].as_array().map_or(&[], Vec::as_slice)
}
