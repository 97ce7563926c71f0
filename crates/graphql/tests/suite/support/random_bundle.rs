//! Generates small random bundles: types with every attribute, and data of which some does not match them.

use serde_json::{Map, Value, json};

use super::rng::TestRng;

/// The types, which use every attribute of types and fields at least once.
pub fn confs() -> Value {
    serde_json::from_str(include_str!("types.json")).unwrap()
}

/// Generates a bundle from a seed, as bytes.
pub fn bundle(seed: u64) -> Vec<u8> {
    let mut rng = TestRng::new(seed);
    let counts = [rng.below(6), rng.below(4), rng.below(4)];
    bundle_of(&mut rng, counts)
}

/// Generates a bundle with these numbers of things, others and shapes.
pub fn bundle_of(rng: &mut TestRng, [things, others, shapes]: [usize; 3]) -> Vec<u8> {
    let confs = confs();
    let mut data = Map::new();
    for (count, type_, schema, folder) in [
        (things, "Thing_v1", "/w/thing-1.yml", "t"),
        (others, "Other_v1", "/w/other-1.yml", "o"),
        (shapes, "Square_v1", "/w/shape-1.yml", "s"),
    ] {
        for number in 0..count {
            let mut file = object(rng, &confs, type_, 0);
            file["$schema"] = json!(schema);
            data.insert(format!("/{folder}/{number}.yml"), file);
        }
    }
    let resource = |schema: Value| {
        let backref = json!({"path": "/t/0.yml", "datafileSchema": "/w/thing-1.yml", "jsonpath": "file"});
        json!({"$schema": schema, "path": "", "content": "c\n", "sha256sum": "s", "backrefs": [backref]})
    };
    let resources = json!({"/r/a.txt": resource(Value::Null), "/r/b.yml": resource(json!("/w/other-1.yml"))});
    let bundle = json!({"data": data, "resources": resources, "schemas": {}, "git_commit": "c",
        "git_commit_timestamp": "1", "graphql": {"$schema": "/x", "confs": confs}});
    serde_json::to_vec(&bundle).unwrap()
}

/// Changes or removes one resource, or adds one.
#[allow(dead_code, reason = "only what sees changes is tested with it")]
pub fn change_resources(rng: &mut TestRng, resources: &mut Map<String, Value>) {
    let path = rng.word(&["/r/a.txt", "/r/b.yml"]);
    match rng.below(4) {
        0 => resources[path]["content"] = json!("other\n"),
        1 => resources[path]["backrefs"] = json!([]),
        2 => drop(resources.remove(path)),
        _ => {
            let resource = resources[path].clone();
            resources.insert("/r/a-new.txt".to_owned(), resource);
        }
    }
}

/// Changes one key of a datafile to another value, valid or invalid, or removes it.
#[allow(dead_code, reason = "only what sees changes is tested with it")]
pub fn change(rng: &mut TestRng, confs: &Value, file: &mut Value) {
    let type_ = match file["$schema"].as_str() {
        Some("/w/thing-1.yml") => "Thing_v1",
        Some("/w/other-1.yml") => "Other_v1",
        _ => "Square_v1",
    };
    let conf = confs.as_array().unwrap().iter().find(|conf| conf["name"] == type_).unwrap();
    let fields: Vec<&Value> =
        conf["fields"].as_array().unwrap().iter().filter(|field| field.get("synthetic").is_none()).collect();
    let field = fields[rng.below(fields.len())];
    let name = field["name"].as_str().unwrap();
    if matches!(name, "schema" | "path") {
        return;
    }
    let map = file.as_object_mut().unwrap();
    let mut value = || fitting(rng, confs, field["type"].as_str().unwrap(), name, 1);
    let value = if field["isList"] == true { json!([value(), value()]) } else { value() };
    match rng.below(6) {
        0 => drop(map.remove(name)),
        1 => drop(map.insert(name.to_owned(), odd(rng))),
        _ => drop(map.insert(name.to_owned(), value)),
    }
}

fn object(rng: &mut TestRng, confs: &Value, type_: &str, depth: usize) -> Value {
    let conf = confs.as_array().unwrap().iter().find(|conf| conf["name"] == type_).unwrap();
    let mut map = Map::new();
    for field in conf["fields"].as_array().unwrap() {
        let name = field["name"].as_str().unwrap();
        if matches!(name, "schema" | "path") || field.get("synthetic").is_some() || rng.below(3) == 0 {
            continue;
        }
        let mut value = || match rng.below(12) {
            0 => odd(rng),
            _ => fitting(rng, confs, field["type"].as_str().unwrap(), name, depth),
        };
        let value = if field["isList"] == true {
            json!([value(), value()][..value_count(&value())])
        } else {
            value()
        };
        map.insert(name.to_owned(), value);
    }
    Value::Object(map)
}

/// The length of a generated list, from 0 to 2, derived from another random value.
fn value_count(value: &Value) -> usize {
    value.to_string().len() % 3
}

fn fitting(rng: &mut TestRng, confs: &Value, type_: &str, name: &str, depth: usize) -> Value {
    match type_ {
        "string" if name == "file" || name == "plain" => {
            rng.pick(&[json!("/r/a.txt"), json!("/r/b.yml"), json!("/r/none")])
        }
        "string" if name == "kind" => {
            rng.pick(&[json!("round"), json!(5), json!(true), json!("odd"), json!("gone"), json!("?")])
        }
        "string" => rng.pick(&[json!("a"), json!("b"), json!("é\"\n☃"), json!("")]),
        "int" => {
            rng.pick(&[json!(0), json!(3), json!(-7), json!("12"), json!(5_000_000_000_u64), json!(true)])
        }
        "float" => rng.pick(&[json!(0.5), json!(3), json!(1e21), json!(1e-7), json!("0x10")]),
        "boolean" => rng.pick(&[json!(true), json!(false), json!(0), json!(1)]),
        "json" => rng.pick(&[
            json!({"10": 1, "9": [1.0, 2.5, 1e21], "b": null, "a": {"x": "y"}}),
            json!([]),
            json!("text"),
            json!(9_007_199_254_740_993_u64),
            json!([{"$ref": "/o/0.yml"}]),
        ]),
        "Other_v1" => reference(rng, "o"),
        "Shape_v1" if rng.below(2) == 0 => reference(rng, "s"),
        "DatafileObject_v1" => {
            let folder = rng.pick(&[json!("t"), json!("o"), json!("s")]);
            reference(rng, folder.as_str().unwrap())
        }
        "Shape_v1" => object(rng, confs, "Square_v1", depth + 1),
        "Inner_v1" if depth < 3 => object(rng, confs, "Inner_v1", depth + 1),
        _ => json!({}),
    }
}

fn reference(rng: &mut TestRng, folder: &str) -> Value {
    json!({"$ref": format!("/{folder}/{}.yml", rng.below(5))})
}

/// A value of the wrong type.
fn odd(rng: &mut TestRng) -> Value {
    rng.pick(&[
        json!(null),
        json!({"obj": {"a": {"b": {"c": 1}}}}),
        json!([1, null]),
        json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        json!({"$ref": "/o/0.yml$/x"}),
        json!({"$ref": "/o/0.yml#/x"}),
        json!({"$ref": 5}),
        json!([{"$ref": "/o/0.yml"}, {"x": "plain"}]),
        json!({"$schema": "/w/inner-1.yml", "x": "x", "path": "/o/0.yml"}),
        json!("yes"),
        json!(1.5),
        json!([]),
    ])
}
