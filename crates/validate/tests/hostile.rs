//! Hostile input gives a finding within bounded time: nothing hangs, nothing overflows, nothing is fetched.

use std::collections::BTreeSet;

use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_diagnostics::Diagnostic;
use qontract_testkit::{Scratch, vectors};
use qontract_validate::{Options, validate};

/// CPU seconds of this process, independent of the load of the machine.
fn cpu_seconds() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec
}

/// The codes of all errors of the recorded repo with `files` added.
fn codes(files: &[(&str, String)]) -> BTreeSet<String> {
    let scratch = Scratch::copy_of(&vectors().join("repo"));
    for (name, text) in files {
        scratch.write(name, text);
    }
    let started = cpu_seconds();
    let repo = Repo::directory(scratch.path(), Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    let bundle = outcome.built.as_ref().or(outcome.partial.as_ref());
    let mut found = validate(bundle.expect("the rest"), &Options::default());
    found.extend(outcome.findings);
    assert!(cpu_seconds() - started < 20, "bounded time");
    found
        .iter()
        .filter(|finding| finding.is_error())
        .map(|finding: &Diagnostic| finding.code.to_string())
        .collect()
}

fn check(files: &[(&str, String)], expect: &[&str]) {
    assert_eq!(codes(files), expect.iter().map(|code| (*code).to_owned()).collect());
}

fn team(rest: &str) -> (&'static str, String) {
    ("data/teams/hostile.yml", format!("$schema: /tiny/team-1.yml\nname: hostile\n{rest}\n"))
}

fn schema(property: &str) -> (&'static str, String) {
    let head = "$schema: /metaschema-1.json\nversion: \"1.0\"\ntype: object\nproperties:\n  $schema: {type: string}\n";
    ("schemas/tiny/hostile-1.yml", format!("{head}  name: {property}\n"))
}

fn thing(name: &str) -> (&'static str, String) {
    ("data/hostile.yml", format!("$schema: /tiny/hostile-1.yml\nname: {name}\n"))
}

#[test]
fn deep_nesting_is_refused() {
    let nested = |levels: usize| team(&format!("deep: {}{}", "[".repeat(levels), "]".repeat(levels)));
    check(&[nested(1_000)], &["Q1004"]);
    check(&[nested(50_000)], &["Q1004"]);
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    }
    check(&[team(&bomb)], &["Q1005"]);
}

#[test]
fn a_scalar_of_ten_megabytes_is_refused() {
    check(&[team(&format!("contact: {}", "x".repeat(10 << 20)))], &["Q1003"]);
}

#[test]
fn a_scalar_of_seven_megabytes_is_checked() {
    check(&[team(&format!("contact: {}", "x".repeat(7 << 20)))], &[]);
}

#[test]
fn a_pattern_with_catastrophic_backtracking_is_aborted() {
    check(&[schema("{type: string, pattern: \"^(x+x+(?!z))+y$\"}"), thing(&"x".repeat(5_000))], &["Q3006"]);
    check(&[schema(r"{type: string, pattern: '^(.*)\1\1\1\1\1$'}"), thing(&"x".repeat(200_000))], &["Q3006"]);
    // Without look-around there is no backtracking: the time is linear in the text.
    check(&[schema("{type: string, pattern: \"^(x+)+y$\"}"), thing(&"x".repeat(500_000))], &["Q3005"]);
}

#[test]
fn a_pattern_that_is_too_large_is_refused() {
    check(&[schema("{type: string, pattern: \"((a{1000}){1000}){1000}\"}"), thing("x")], &["Q3105"]);
}

#[test]
fn an_address_is_never_fetched() {
    // Nothing listens there; a request would make the test wait or report another code.
    let address = "http://192.0.2.1/schema.yml";
    let named = ("data/teams/hostile.yml", format!("$schema: {address}\nname: hostile\n"));
    check(&[named], &["Q3022"]);
    check(&[schema(&format!("{{$ref: \"{address}\"}}")), thing("x")], &["Q3103"]);
    check(&[("schemas/tiny/hostile-1.yml", format!("$schema: {address}\ntype: object\n"))], &["Q3102"]);
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    check(&[schema("{$ref: \"#/properties/name\"}"), thing("x")], &["Q3103"]);
    check(&[schema("{allOf: [{anyOf: [{not: {$ref: \"#/properties/name\"}}]}]}"), thing("x")], &["Q3103"]);
    check(&[schema("{$ref: \"/tiny/hostile-1.yml\"}"), thing("{name: {name: {}}}")], &[]);
    let loops = ("schemas/tiny/hostile-1.yml", "$schema: /metaschema-1.json\nversion: \"1.0\"\nproperties:\n  name: {type: string}\noneOf: [{$ref: /tiny/hostile-1.yml}]\n".to_owned());
    check(&[loops, thing("x")], &["Q3103"]);
}

#[test]
fn long_chains_of_references_end() {
    let chain = |count: usize, link: &str| {
        let links: Vec<String> = (0..count)
            .map(|index| {
                format!("  d{index}: {}\n", link.replace("NEXT", &format!("#/definitions/d{}", index + 1)))
            })
            .collect();
        let text = format!(
            "$schema: /metaschema-1.json\nversion: \"1.0\"\nproperties:\n  $schema: {{type: string}}\n  name: {{$ref: \"#/definitions/d0\"}}\ndefinitions:\n{}  d{count}: {{type: string}}\n",
            links.concat()
        );
        ("schemas/tiny/hostile-1.yml", text)
    };
    check(&[chain(240, "{allOf: [{$ref: \"NEXT\"}]}"), thing("x")], &[]);
    check(&[chain(240, "{oneOf: [{$ref: \"NEXT\"}]}"), thing("1")], &["Q3001"]);
    check(&[chain(20_000, "{oneOf: [{$ref: \"NEXT\"}]}"), thing("1")], &["Q3016"]);
    check(&[chain(20_000, "{$ref: \"NEXT\"}"), thing("x")], &["Q3016"]);
    // Each link doubles the work.
    check(&[chain(60, "{allOf: [{$ref: \"NEXT\"}, {$ref: \"NEXT\"}]}"), thing("x")], &["Q3016"]);
}

#[test]
fn alternatives_that_double_with_every_level_are_aborted() {
    let branch = "{type: object, properties: {name: {$ref: \"#/properties/name\"}}, required: [nowhere]}";
    let nested = |levels: usize| {
        thing(&format!("{}{}", "{name: ".repeat(levels), "{}".to_owned() + &"}".repeat(levels)))
    };
    check(&[schema(&format!("{{anyOf: [{branch}, {branch}]}}")), nested(150)], &["Q3016"]);
    check(&[schema(&format!("{{oneOf: [{branch}, {branch}]}}")), nested(150)], &["Q3016"]);
    check(&[schema(&format!("{{not: {{allOf: [{branch}, {branch}]}}}}")), nested(100)], &[]);
    check(&[schema(&format!("{{anyOf: [{branch}, {branch}, {{type: object}}]}}")), nested(3)], &[]);
}

#[test]
fn a_pattern_of_a_megabyte_is_refused() {
    let pattern = "(a|b)".repeat(200_000);
    check(&[schema(&format!("{{type: string, pattern: '{pattern}'}}")), thing("x")], &["Q3105"]);
}

#[test]
fn many_distinct_maps_are_compared_quickly() {
    let items: Vec<String> = (0..50_000).map(|index| format!("  - {{a: {{b: [x, {index}]}}}}\n")).collect();
    let items = items.concat();
    check(&[schema("{uniqueItems: true}"), thing(&format!("\n{items}"))], &[]);
    let twice = format!("\n{items}  - {{a: {{b: [x, 7]}}}}\n");
    check(&[schema("{uniqueItems: true}"), thing(&twice)], &["Q3011"]);
}

/// `count` copies of a text, each with its number in place of `N`.
fn numbered(count: usize, text: &str) -> String {
    let texts: Vec<String> = (0..count).map(|index| text.replace('N', &index.to_string())).collect();
    texts.join(", ")
}

#[test]
fn many_values_outside_a_large_enum_are_reported_in_bounded_time() {
    let allowed = schema(&format!("{{items: {{enum: [{}]}}}}", numbered(500, "allowedN")));
    check(&[allowed, thing(&format!("[{}]", numbered(10_000, "writtenN")))], &["Q3004"]);
}

#[test]
fn too_many_missing_fields_are_one_finding() {
    let names = numbered(20_000, "fieldN");
    check(
        &[
            schema(&format!("{{items: {{required: [{names}]}}}}")),
            thing(&format!("[{}]", "{}, ".repeat(20_000))),
        ],
        &["Q3016"],
    );
}

#[test]
fn many_unknown_fields_are_reported_in_bounded_time() {
    let known = numbered(4_000, "some-long-name-N: {}");
    let written = numbered(4_000, "another-long-one-N: 1");
    let closed = schema(&format!("{{additionalProperties: false, properties: {{{known}}}}}"));
    check(&[closed, thing(&format!("{{{written}}}"))], &["Q3002"]);
}

#[test]
fn many_patterns_for_many_names_are_aborted() {
    let patterns = numbered(3_000, "^aN$: {}");
    let written = numbered(20_000, "bN: 1");
    let matching = schema(&format!("{{patternProperties: {{{patterns}}}}}"));
    check(&[matching, thing(&format!("{{{written}}}"))], &["Q3016"]);
}

#[test]
fn a_long_text_that_is_measured_often_is_aborted() {
    let often = "{minLength: 1}, ".repeat(50_000);
    check(&[schema(&format!("{{allOf: [{often}]}}")), thing(&"x".repeat(1 << 20))], &["Q3016"]);
}

#[test]
fn many_failures_of_one_file_are_reported_in_bounded_time() {
    let many = "  - {name: 1, provider: tcp, port: x}\n".repeat(20_000);
    let app =
        format!("$schema: /tiny/app-1.yml\nname: many\nteam: {{$ref: /teams/core.yml}}\nendpoints:\n{many}");
    let found = codes(&[("data/apps/many.yml", app)]);
    assert!(found.contains("Q3001"), "{found:?}");
}
