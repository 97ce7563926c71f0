//! Any bytes are a bundle or an error, and a loaded bundle round-trips through its JSON form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qontract_bundle::diff::Diff;
use qontract_bundle::json::{JsonParser, write_python};
use qontract_bundle::types::Types;
use qontract_bundle::{Pool, load};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(value) = JsonParser::new(text).parse()
    {
        let mut written = Vec::new();
        write_python(&value, &mut written);
        let written = String::from_utf8(written).expect("ASCII");
        let again = JsonParser::new(&written).parse().expect("written JSON can be read");
        assert_eq!(value, again);
    }
    let pool = Pool::default();
    if let Ok(bundle) = load(bytes, &pool) {
        let _ = Types::read(&bundle.graphql().value);
        assert!(Diff::between(&bundle, &bundle).is_empty());
        for datafile in bundle.datafiles() {
            assert!(bundle.datafile(&datafile.path).is_some(), "found by its path");
        }
    }
});
