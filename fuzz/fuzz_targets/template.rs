//! Any text is rendered or is an error: never a panic, always within the limits, and the line of the error is
//! in the text.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use qontract_template::{Data, DeclaredLookups, Dialect, RenderLimits, RenderOutcome, RenderRequest, Source, render};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let variables = [
        ("name".to_owned(), Data::text("a b")),
        ("numbers".to_owned(), Data::List(vec![Data::Int(3), Data::Float(1.5), Data::Null])),
        ("labels".to_owned(), Data::Map(vec![("a".to_owned(), Data::Bool(true)), ("b".to_owned(), Data::text("x"))])),
    ];
    let limits = RenderLimits { output: 1 << 16, steps: 50_000, ..RenderLimits::default() };
    for dialect in [Dialect::Jinja2, Dialect::ExtraCurly] {
        let source = Source::new("t", text).dialect(dialect);
        let request = RenderRequest { limits, ..RenderRequest::new(source, &variables) };
        match render(&request, &DeclaredLookups(BTreeMap::new())) {
            Ok(RenderOutcome::Rendered(rendered)) => assert!(rendered.expose().len() <= limits.output, "within the limit"),
            Ok(RenderOutcome::Needs(_)) => {}
            Err(fault) => {
                let lines = text.replace("\r\n", "\n").replace('\r', "\n").matches('\n').count() + 1;
                assert!(fault.line.is_none_or(|line| (1..=lines).contains(&line)), "{fault}");
            }
        }
    }
});
