//! Any bytes are a document or findings: never a panic, always within the limits, and spans are in the file.
//! The two YAML parsers agree on every text that both accept.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qontract_diagnostics::render::{Colour, render_all};
use qontract_diagnostics::{Report, Sources};
use qontract_yaml::{Limits, Node, Value, parse, takes_as_plain};

struct FileBytes<'a>(&'a [u8]);

impl Sources for FileBytes<'_> {
    fn text(&self, _file: &str) -> Option<std::borrow::Cow<'_, str>> {
        Some(String::from_utf8_lossy(self.0))
    }
}

fn visit(node: Node<'_>, length: usize, budget: &mut u64) {
    *budget = budget.checked_sub(1).expect("no more values than the limit");
    assert!(node.span().range().end <= length, "a span is in the file");
    match node.value() {
        Value::List(list) => list.iter().for_each(|item| visit(item, length, budget)),
        Value::Map(map) => {
            let mut keys: Vec<&str> = map.iter().map(|entry| entry.key).collect();
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), count, "each key once");
            map.iter().for_each(|entry| visit(entry.value, length, budget));
        }
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { values: 10_000, text: 1 << 20, ..Limits::default() };
    if let Ok(text) = std::str::from_utf8(bytes) {
        takes_as_plain(text).expect("the two parsers agree");
    }
    let parsed = parse(bytes, &limits);
    if let Some(document) = &parsed.document {
        visit(document.root(), bytes.len(), &mut limits.values.clone());
    }
    let findings = parsed.findings.into_iter().map(|finding| finding.in_file("data/x.yml")).collect();
    let _ = render_all(&Report::new(findings), &FileBytes(bytes), Colour::Plain);
});
