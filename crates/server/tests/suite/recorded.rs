//! Raw requests, with the recorded responses of Express and Apollo Server (see `http/README.md`).

use qontract_testkit::vectors;
use serde_json::Value;

use crate::support::running::{HttpAnswer, RunningServer, Setup};

/// Headers that are part of the API of qontract-server: the others belong to its framework.
const COMPARED_HEADERS: [&str; 7] = [
    "content-type",
    "cache-control",
    "allow",
    "location",
    "etag",
    "x-content-type-options",
    "content-security-policy",
];

/// Requests with a different response, and the reasons.
const EXPECTED_DIFFERENCES: &[(&str, &str)] = &[
    ("a body of 100 KiB and a byte", "larger requests are accepted"),
    ("a body of 200 kB", "it is accepted, and its query is too long"),
    ("gzip of 200 kB", "it is accepted, and its query is too long"),
    ("a head of 20 kB", "larger heads are accepted"),
    ("a target of 20 kB", "larger heads are accepted"),
    ("a method nobody knows", "it gets the same answer as any method that is not allowed"),
    ("/git-commit-info of a sha in percent sequences", "input of a client does not become part of a page"),
    ("unknown path with a query", "an invalid URL is refused"),
    ("unknown path with characters to escape", "an invalid URL is refused"),
    ("unknown path, DELETE", "an invalid URL is refused"),
];

fn bytes(request: &Value) -> Vec<u8> {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let pad = "x".repeat(usize::try_from(request["pad"].as_u64().unwrap_or_default()).unwrap());
    let padded = |text: &str| text.replace("PAD", &pad);
    let version = request["version"].as_str().unwrap_or("1.1");
    let mut head = format!("{} {} HTTP/{version}\r\n", text("method"), padded(text("target")));
    if request["host"] != Value::Bool(false) {
        head.push_str("Host: 127.0.0.1\r\n");
    }
    let mut chunked = false;
    for header in request["headers"].as_array().unwrap() {
        let (name, value) = (header[0].as_str().unwrap(), header[1].as_str().unwrap());
        chunked |= name.eq_ignore_ascii_case("transfer-encoding");
        head.push_str(&format!("{name}: {}\r\n", padded(value)));
    }
    let body = match request["body_base64"].as_str() {
        Some(encoded) => decode(encoded),
        None => padded(text("body")).into_bytes(),
    };
    let has_body = !request["body"].is_null() || !request["body_base64"].is_null();
    if chunked {
        let mut bytes = format!("{head}\r\n{:x}\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(b"\r\n0\r\n\r\n");
        return bytes;
    }
    if has_body {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    [head.as_bytes(), b"\r\n", &body].concat()
}

fn decode(encoded: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

/// Differences between the recorded and the received response.
fn differences(recorded: &Value, answer: &HttpAnswer) -> Vec<String> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, recorded: Option<String>, came: Option<String>| {
        if recorded != came {
            differences.push(format!("{what}: recorded {recorded:?}, came {came:?}"));
        }
    };
    let status = recorded["status"].as_u64().unwrap();
    compare("status", Some(status.to_string()), Some(answer.status.to_string()));
    // The peer's own query page differs from ours.
    let is_page = recorded["body"].is_null();
    for name in COMPARED_HEADERS.into_iter().filter(|name| !is_page || *name == "content-type") {
        let known = recorded["headers"][name].as_str().map(str::to_owned);
        compare(name, known, answer.header(name).map(str::to_owned));
    }
    if let Some(body) = recorded["body"].as_str() {
        compare("body", Some(body.to_owned()), Some(String::from_utf8_lossy(&answer.body).into_owned()));
    }
    differences
}

#[test]
fn requests_are_answered_as_they_were_recorded() {
    let [older, newer] =
        ["bundle2.json", "bundle.json"].map(|name| std::fs::read(vectors().join(name)).unwrap());
    let server = RunningServer::start(Setup::default(), &[&older, &newer]);
    let records: Vec<Value> = serde_json::from_str(include_str!("../http/recorded.json")).unwrap();
    assert!(records.len() > 300);
    let (mut wrong, mut unused) =
        (Vec::new(), EXPECTED_DIFFERENCES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for record in &records {
        let (name, request) = (record["name"].as_str().unwrap(), &record["request"]);
        let answer = server.send(request["method"].as_str().unwrap(), &bytes(request));
        let expected = EXPECTED_DIFFERENCES.iter().find(|(known, _)| *known == name);
        let differences = differences(&record["answer"], &answer);
        match (expected, differences.is_empty()) {
            (None, false) => {
                wrong.push(format!("{name} ({}):\n  {}", request["target"], differences.join("\n  ")));
            }
            (Some((known, _)), false) => unused.retain(|name| name != known),
            (_, true) => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), records.len(), wrong.join("\n"));
    assert!(unused.is_empty(), "answered as recorded after all: {unused:?}");
}
