//! The records are those of the established validator, except for the wording of JSON-schema errors.

use qontract_bundle::{Bundle, CommitStamp, Layout, Pool, Repo, build, load};
use qontract_testkit::{Scratch, vectors};
use qontract_validate::peer::{self, ValidatorRecord};
use serde_json::Value;

fn bundle(name: &str) -> Bundle {
    load(&std::fs::read(vectors().join(name)).expect("a vector"), &Pool::default()).expect("a bundle")
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(vectors().join(name)).expect("a vector")
}

/// The records without the messages of JSON Schema errors, whose wording differs from the peer's.
fn without_messages(records: &str) -> Vec<Value> {
    let mut records: Vec<Value> = serde_json::from_str(records).expect("records");
    for record in &mut records {
        let result = record["result"].as_object_mut().expect("a result");
        if matches!(result.get("reason").and_then(Value::as_str), Some("VALIDATION_ERROR")) {
            assert!(result.insert("error".to_owned(), Value::Null).is_some_and(|words| words.is_string()));
        }
    }
    records
}

#[test]
fn the_records_of_the_good_repo_are_the_recorded_bytes() {
    assert_eq!(peer::to_json(&peer::records(&bundle("bundle.json"))), recorded("validate.json"));
}

#[test]
fn the_errors_of_the_broken_repo_are_the_recorded_ones_in_order() {
    let errors: Vec<ValidatorRecord> =
        peer::records(&bundle("broken-bundle.json")).into_iter().filter(ValidatorRecord::is_error).collect();
    assert_eq!(
        without_messages(&peer::to_json(&errors)),
        without_messages(&recorded("broken-validate.json"))
    );
}

/// The errors of the recorded repo with some files replaced, as `kind filename reason: error`.
fn check(files: &[(&str, &str)], expect: &[&str]) {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    for (name, text) in files {
        scratch.write(name, text);
    }
    let repo = Repo::directory(scratch.path(), Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    let bundle = outcome.built.expect("no errors");
    let errors = peer::records(&bundle).into_iter().filter(ValidatorRecord::is_error).map(|record| {
        let result = record.result;
        format!(
            "{:?} {} {}: {}",
            record.kind,
            record.filename,
            result.reason.unwrap_or_default(),
            result.error.unwrap_or_default()
        )
    });
    assert_eq!(errors.collect::<Vec<_>>(), expect);
}

const TYPES: &str = "$schema: /app-interface/graphql-schemas-1.yml\nconfs:\n";
const TEAM: &str = "- name: Team_v1\n  datafile: /tiny/team-1.yml\n  fields:\n";
const QUERY: &str = "- name: Query\n  fields:\n  - { name: teams_v1, type: Team_v1, isList: true, datafileSchema: /tiny/team-1.yml }\n";

#[test]
fn duplicate_list_items_are_reported_by_their_indices() {
    let schema = "$schema: /metaschema-1.json\nversion: \"1.0\"\ntype: object\nproperties:\n  $schema: {type: string}\n  \
                  name: {type: string}\n  contact: {type: string}\n  doors: {type: array, items: {type: object, properties: {name: {type: string}}}}\n";
    let door = "- name: Door_v1\n  fields:\n  - { name: side, type: string, isContextUnique: true }\n  \
                - { name: name, type: string, isContextUnique: true }\n";
    let types = format!("{TYPES}{TEAM}  - {{ name: doors, type: Door_v1, isList: true }}\n{door}{QUERY}");
    check(
        &[
            ("schemas/tiny/team-1.yml", schema),
            ("graphql-schemas/schema.yml", &types),
            (
                "data/teams/core.yml",
                "$schema: /tiny/team-1.yml\nname: core\ndoors: [{name: a}, {name: b}, {name: a}]\n",
            ),
        ],
        &[
            "Unique /teams/core.yml DUPLICATE_CONTEXT_UNIQUE_FIELD: Context uniqueness error, file: /teams/core.yml, \
           fields: name, side, duplicates: doors/0, doors/2",
        ],
    );
}

#[test]
fn misused_unique_fields_are_reported_for_the_types() {
    let part = "- name: Part_v1\n  fields:\n  - { name: name, type: string, isUnique: false }\n";
    let types = format!("{TYPES}{TEAM}  - {{ name: part, type: Part_v1, isUnique: true }}\n{part}{QUERY}");
    check(
        &[("graphql-schemas/schema.yml", &types)],
        &[
            "Schema graphql-schemas/schema.yml IS_UNIQUE_ON_COMPLEX_FIELD: isUnique set on Team_v1.part, type Part_v1 \
             is not a simple type",
            "Schema graphql-schemas/schema.yml IS_UNIQUE_ON_NON_TOP_LEVEL_TYPE: isUnique set on Part_v1.name, which is \
             not a top-level type, add datafile to Part_v1 if there is a datafile mapping to it.",
        ],
    );
}

#[test]
fn schemas_are_reported_by_their_first_error() {
    check(
        &[
            ("schemas/tiny/a-1.yml", "$schema: /metaschema-2.json\ntype: object\n"),
            (
                "schemas/tiny/b-1.yml",
                "$schema: /metaschema-1.json\nversion: \"1.0\"\ntype: strin\nproperties: {}\n",
            ),
            ("schemas/tiny/c-1.yml", "$schema: /metaschema-1.json\ntype: object\nproperties: {}\n"),
            ("data/d.yml", "$schema: http://schemas.example/d.yml\n"),
        ],
        &[
            "Schema /tiny/a-1.yml META_SCHEMA_NOT_FOUND: Meta schema /metaschema-2.json not found in the file /tiny/a-1.yml",
            "Schema /tiny/b-1.yml SCHEMA_ERROR: /type must be a type, or a list of distinct types",
            "Schema /tiny/c-1.yml VALIDATION_ERROR: missing field `version`",
            "File /d.yml SCHEMA_NOT_FOUND: Schema http://schemas.example/d.yml not found in the file /d.yml",
        ],
    );
}
