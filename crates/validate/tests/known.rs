//! Who knows what was right before finds the same as who does not.

use qontract_bundle::{Layout, Pool, Repo, Stamp, build, load};
use qontract_testkit::{Chance, example};
use qontract_validate::{Known, Options, validate, validate_again};
use serde_json::Value;

/// What is found, in order.
fn shown(findings: Vec<qontract_diagnostics::Diagnostic>) -> Vec<String> {
    let mut shown: Vec<String> = findings.into_iter().map(|finding| format!("{finding:?}")).collect();
    shown.sort();
    shown
}

/// Where every text and every list below a value is.
fn parts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                parts(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            found.push(at.to_owned());
            for (index, item) in items.iter().enumerate() {
                parts(item, &format!("{at}/{index}"), found);
            }
        }
        Value::String(_) => found.push(at.to_owned()),
        _ => {}
    }
}

/// Changes something: a text becomes another one, an item of a list comes twice, a file comes or goes.
fn change(bundle: &mut Value, chance: &mut Chance) {
    let part = ["/data", "/data", "/data", "/resources", "/schemas"][chance.below(5)];
    let mut all = Vec::new();
    parts(&bundle[&part[1..]], part, &mut all);
    let texts: Vec<Value> =
        all.iter().filter_map(|at| bundle.pointer(at).filter(|one| one.is_string()).cloned()).collect();
    if chance.percent(20) {
        let files = bundle[&part[1..]].as_object_mut().expect("files by path");
        let path = files.keys().nth(chance.below(files.len())).expect("a file").clone();
        if part != "/schemas" && chance.percent(50) {
            let file = files[&path].clone();
            files.insert(format!("{path}.yml"), file);
        } else {
            files.remove(&path);
        }
        return;
    }
    match bundle.pointer_mut(&all[chance.below(all.len())]) {
        Some(Value::Array(items)) => items.extend(items.first().cloned()),
        Some(text) => *text = texts[chance.below(texts.len())].clone(),
        None => {}
    }
}

#[test]
fn what_is_known_makes_no_difference() {
    let repo = Repo::directory(example(), Layout::default());
    let built = build(&repo, Stamp::default(), &Pool::default()).expect("a repo").built.expect("a bundle");
    let good: Value = serde_json::from_slice(&built.to_vec()).expect("JSON");
    let mut known = Known::default();
    let (mut chance, mut wrong) = (Chance::new(7), 0);
    for round in 0..60 {
        let mut changed = good.clone();
        for _ in 0..chance.below(3) {
            change(&mut changed, &mut chance);
        }
        let bundle = load(changed.to_string().as_bytes(), &Pool::default()).expect("a bundle");
        // Files that could not be read are not missed, for as long as they are there.
        let files = changed["data"].as_object().expect("files by path").values();
        let schemas = files.filter_map(|file| Some(format!("schemas{}", file["$schema"].as_str()?)));
        let unread = schemas.filter(|_| chance.percent(30)).collect();
        let options = Options { unread, ..Options::default() };
        let expected = shown(validate(&bundle, &options));
        assert_eq!(shown(validate_again(&bundle, &options, &mut known)), expected, "round {round}");
        wrong += usize::from(!expected.is_empty());
        if chance.percent(30) {
            known = Known::from_bytes(&known.to_bytes("a test"), "a test").expect("whole");
        }
    }
    assert!((10..60).contains(&wrong), "{wrong} of 60 were wrong");
}
