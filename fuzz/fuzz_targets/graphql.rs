//! Any query gets a JSON answer, within the limits, and the same answer again; and its execution reads only
//! what its footprint contains.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use qontract_bundle::json::JsonParser;
use qontract_bundle::{Pool, load};
use qontract_graphql::{Engine, QueryLimits, Request};

const LIMITS: QueryLimits =
    QueryLimits { query_bytes: 16 << 10, selections: 500, depth: 20, aliases: 50, cost: 10_000, answer_bytes: 1 << 20 };

/// Maximum size of the parts of an answer that the limit does not count: the envelope and the errors.
const MAX_OVERHEAD_BYTES: usize = 1 << 20;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let bundle = load(include_bytes!("../seeds/bundle/bundle.json"), &Pool::default()).expect("a bundle");
    Engine::new(Arc::new(bundle)).expect("valid types").with_limits(LIMITS)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(query) = str::from_utf8(bytes) else { return };
    let request = Request { query, provenance: true, touched: true, ..Request::default() };
    let answer = ENGINE.answer(request);
    assert!(matches!(answer.status, 200 | 400), "{}", answer.status);
    assert!(answer.body.len() <= LIMITS.answer_bytes + MAX_OVERHEAD_BYTES, "{} bytes", answer.body.len());
    let text = str::from_utf8(&answer.body).expect("UTF-8");
    let parsed = JsonParser::new(text.trim_end()).parse().expect("JSON");
    assert_eq!(parsed.get("errors").is_some(), answer.has_errors, "{text}");
    assert_eq!(ENGINE.answer(Request { query, ..Request::default() }).body, answer.body, "the same again");
    let (Some(touched), Ok(footprint)) = (&answer.touched, ENGINE.footprint(request)) else { return };
    for file in touched.files() {
        let file = &ENGINE.bundle().datafiles()[file];
        let is_known = file.document.schema().is_some_and(|schema| footprint.keys(schema).is_some());
        assert!(is_known || ENGINE.mistyped_targets().contains(&file.path), "{} {footprint:#?}", file.path);
    }
    assert!(footprint.resources() || touched.resources().count() == 0, "{footprint:#?}");
});
