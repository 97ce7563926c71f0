//! The findings about single mistakes: each reported once, with the reason and a hint.

use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build, load};
use qontract_diagnostics::{Diagnostic, Severity};
use qontract_testkit::{Scratch, vectors};
use qontract_validate::{Options, validate};
use serde_json::{Value as Plain, json};

/// The findings about `files`, when they are added to the recorded repo.
fn found(files: &[(&str, &str)]) -> Vec<Diagnostic> {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    for (name, text) in files {
        scratch.write(name, text);
    }
    let repo = Repo::directory(scratch.path(), Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    let errors = outcome.findings.iter().filter(|finding| finding.is_error());
    let unread = errors.map(|finding| finding.location.file.clone()).collect();
    let bundle = outcome.built.as_ref().or(outcome.partial.as_ref());
    let mut found = validate(bundle.expect("the rest"), &Options { unread, ..Options::default() });
    found.extend(outcome.findings);
    found.retain(|finding| files.iter().any(|(name, _)| *name == finding.location.file));
    found
}

fn line(finding: &Diagnostic) -> String {
    let pointer = finding.location.pointer.as_deref().unwrap_or_default();
    let severity = if finding.severity == Severity::Error { "error" } else { "warning" };
    let mut line = format!("{severity} {} {pointer}: {}", finding.code, finding.message);
    for note in &finding.notes {
        line += &format!("; {}", note.text);
    }
    if let Some(hint) = &finding.hint {
        line += &format!("; {hint}");
    }
    line
}

fn check(files: &[(&str, &str)], expect: &[&str]) {
    let mut lines: Vec<String> = found(files).iter().map(line).collect();
    lines.sort();
    assert_eq!(lines, expect);
}

const HEAD: &str = "$schema: /metaschema-1.json\nversion: \"1.0\"\ntype: object\n";

fn schema(properties: &str) -> String {
    format!("{HEAD}properties:\n  $schema: {{type: string, enum: [/tiny/new-1.yml]}}\n{properties}")
}

const NEW: &str = "schemas/tiny/new-1.yml";

#[test]
fn every_invalid_field_name_is_reported_at_its_location() {
    let names = schema(
        "  ports: {propertyNames: {pattern: \"^[a-z]+$\", maxLength: 4}, additionalProperties: {type: integer}}\n",
    );
    let file = "$schema: /tiny/new-1.yml\nports: {HTTP: 80, http: 80, HTTPS: x, longer: 1}\n";
    check(
        &[(NEW, &names), ("data/new.yml", file)],
        &[
            "error Q3001 /ports/HTTPS: expected an integer, found a string",
            "error Q3014 /ports/HTTP: the name `HTTP` does not match the pattern; the pattern is `^[a-z]+$`",
            "error Q3014 /ports/HTTPS: the name `HTTPS` is not allowed",
            "error Q3014 /ports/longer: the name `longer` is not allowed",
        ],
    );
}

#[test]
fn a_schema_that_does_not_allow_added_fields_accepts_no_file() {
    let closed = "$schema: http://json-schema.org/draft-06/schema\nadditionalProperties: false\nproperties: {$schema: {type: string}}\n";
    check(
        &[(NEW, closed), ("data/new.yml", "$schema: /tiny/new-1.yml\n")],
        &[
            "error Q3002 : the schema does not allow `$file_sha256sum`, which bundling adds; set the schema's `$schema` to `/metaschema-1.json`, or add the field to its `properties`",
        ],
    );
}

#[test]
fn a_schema_ref_is_a_path_or_a_schema() {
    let odd = schema(
        "  a: {$ref: \"/common-1.json#/definitions/crossref\", $schemaRef: 5}\n  b: {$ref: \"/common-1.json#/definitions/crossref\", $schemaRef: [/tiny/team-1.yml]}\n",
    );
    check(
        &[(NEW, &odd)],
        &[
            "error Q3104 /properties/a/$schemaRef: `$schemaRef` is an integer, neither the path of a schema nor a schema; write the path of the target's schema",
            "error Q3104 /properties/b/$schemaRef: `$schemaRef` is a list, neither the path of a schema nor a schema; write the path of the target's schema",
        ],
    );
}

#[test]
fn a_schema_in_a_schema_ref_is_checked() {
    let odd = schema(
        "  a:\n    $ref: \"/common-1.json#/definitions/crossref\"\n    $schemaRef: {type: objct, properties: {name: {pattern: \"(\", minimal: 1}, b: {$ref: \"#/nowhere\"}}}\n",
    );
    check(
        &[(NEW, &odd)],
        &[
            "error Q3101 /properties/a/$schemaRef/type: `type` must be a type, or a list of distinct types; did you mean `object`?",
            "error Q3103 /properties/a/$schemaRef/properties/b/$ref: `/nowhere` does not exist in `/tiny/new-1.yml`",
            "error Q3105 /properties/a/$schemaRef/properties/name/pattern: `(` is not a regular expression; `(` without `)`",
            "warning Q3107 /properties/a/$schemaRef/properties/name/minimal: `minimal` is not a JSON Schema keyword, and is ignored; did you mean `minimum`?",
        ],
    );
}

#[test]
fn a_schema_that_is_only_referred_to_is_checked() {
    let odd = schema("  a: {$ref: \"#/$defs/a\"}\n") + "$defs: {a: {type: strng}}\n";
    check(
        &[(NEW, &odd)],
        &[
            "error Q3101 /$defs/a/type: `type` must be a type, or a list of distinct types; did you mean `string`?",
        ],
    );
}

#[test]
fn a_target_that_does_not_match_is_reported_with_all_failures() {
    let demands = schema(
        "  parent:\n    $ref: \"/common-1.json#/definitions/crossref\"\n    $schemaRef: {type: object, required: [nowhere], properties: {name: {pattern: \"^x\"}}}\n",
    );
    let file = "$schema: /tiny/new-1.yml\nparent: {$ref: /teams/core.yml}\n";
    check(
        &[(NEW, &demands), ("data/new.yml", file)],
        &[
            "error Q2044 /parent/$ref: the reference points to a file that does not match the expected schema; in the target: `core` does not match the pattern at /name; in the target: missing field `nowhere`; name a file of the kind that the schema expects",
        ],
    );
}

#[test]
fn a_wrong_metaschema_is_reported_once() {
    check(
        &[(NEW, "$schema: 5\ntype: object\nproperties: {}\n")],
        &["error Q3101 /$schema: `$schema` must be a string"],
    );
    check(
        &[(NEW, "$schema: \"\"\ntype: object\nproperties: {}\n")],
        &["error Q3102 /$schema: `$schema` is empty; write `/metaschema-1.json`"],
    );
}

#[test]
fn a_wrong_schema_of_a_file_is_reported_once() {
    let strict = schema("  name: {type: string}\n");
    check(
        &[(NEW, &strict), ("data/new.yml", "$schema: tiny/new-1.yml\nname: x\n")],
        &["error Q3023 /$schema: `$schema` has no leading slash; write `/tiny/new-1.yml`"],
    );
    let lenient = strict.replace(", enum: [/tiny/new-1.yml]", "");
    check(
        &[(NEW, &lenient), ("data/new.yml", "$schema: tiny/new-1.yml\nname: 1\n")],
        &[
            "error Q3001 /name: expected a string, found an integer; put it into quotes",
            "warning Q3023 /$schema: `$schema` has no leading slash; write `/tiny/new-1.yml`",
        ],
    );
    check(
        &[("data/new.yml", "$schema: \"\"\nname: x\n")],
        &["error Q3020 /$schema: `$schema` is empty; write the path of the file's schema"],
    );
}

#[test]
fn a_misspelt_field_next_to_the_correct_one_is_reported_as_such() {
    let closed = schema("  onboarded: {type: string}\n  onboarding: {type: string}\n")
        + "additionalProperties: false\n";
    let file = "$schema: /tiny/new-1.yml\nonboarded: x\nonbaorded: y\n";
    check(
        &[(NEW, &closed), ("data/new.yml", file)],
        &[
            "error Q3002 /onbaorded: unknown field `onbaorded`; did you mean `onboarded`, which is already present?",
        ],
    );
    let absent = "$schema: /tiny/new-1.yml\nonbaorded: y\n";
    check(
        &[(NEW, &closed), ("data/new.yml", absent)],
        &["error Q3002 /onbaorded: unknown field `onbaorded`; did you mean `onboarded`?"],
    );
}

#[test]
fn a_pattern_that_is_too_large_is_distinguished_from_an_invalid_one() {
    let patterns =
        schema("  a: {pattern: \"((a{1000}){1000}){1000}\"}\n  b: {patternProperties: {\"(?<n>a)\": {}}}\n");
    check(
        &[(NEW, &patterns)],
        &[
            "error Q3105 /properties/a/pattern: the regular expression `((a{1000}){1000}){1000}` is too large; reduce the number of repetitions",
            "error Q3105 /properties/b/patternProperties/(?<n>a): `(?<n>a)` is not a regular expression; `(?<` is not followed by `=` or `!`; a named group is `(?P<name>…)`",
        ],
    );
}

#[test]
fn a_schema_that_is_not_a_map_hides_no_other_mistake() {
    let bundle = |odd: Plain| {
        let text = json!({
            "git_commit": "", "git_commit_timestamp": "", "graphql": [], "resources": {},
            "data": { "/a.yml": { "$schema": "/good.yml", "name": 1 }, "/b.yml": { "$schema": "/odd.yml" } },
            "schemas": {
                "/good.yml": {
                    "$schema": "http://json-schema.org/draft-06/schema#",
                    "properties": { "name": { "type": "string" }, "other": { "$ref": "/odd.yml" } },
                },
                "/odd.yml": odd,
            },
        });
        load(text.to_string().as_bytes(), &Pool::default()).expect("a bundle")
    };
    let codes = |odd: Plain| {
        let found = validate(&bundle(odd), &Options::default());
        let mut codes: Vec<String> =
            found.iter().map(|finding| format!("{} {}", finding.code, finding.location.file)).collect();
        codes.sort();
        codes
    };
    assert_eq!(codes(json!(true)), ["Q2001 schemas/odd.yml", "Q3001 data/a.yml"]);
    assert_eq!(codes(json!(false)), ["Q2001 schemas/odd.yml", "Q3001 data/a.yml", "Q3015 data/b.yml"]);
    assert_eq!(codes(json!([])), ["Q2001 schemas/odd.yml", "Q3001 data/a.yml", "Q3103 schemas/good.yml"]);
}
