//! The files that belong to a data repo: the same in a directory and in a Git revision.

use std::path::Path;

use qontract_bundle::build::BuildOutcome;
use qontract_bundle::repo::Revision;
use qontract_bundle::{BuildCache, BuildOptions, CommitStamp, Layout, Pool, Repo, build, build_with, load};
use qontract_diagnostics::Report;
use qontract_testkit::{Scratch, example, not_tested, public_schemas, vectors};

fn folder(path: &Path) -> BuildOutcome {
    build(&Repo::directory(path, Layout::default()), CommitStamp::default(), &Pool::default())
        .expect("a data repo")
}

/// The committed state of the directory, read through Git.
fn revision(scratch: &Scratch) -> BuildOutcome {
    let revision = Revision::open(scratch.path(), "HEAD").expect("a commit");
    build(&Repo::revision(revision, Layout::default()), CommitStamp::default(), &Pool::default())
        .expect("a data repo")
}

fn findings(outcome: &BuildOutcome) -> Vec<String> {
    let report = Report::new(outcome.findings.clone());
    report.findings().iter().map(|finding| format!("{} {}", finding.code, finding.location.file)).collect()
}

fn bytes(outcome: &BuildOutcome) -> String {
    let built = outcome.built.as_ref().expect("no errors");
    String::from_utf8(built.to_vec()).expect("ASCII")
}

/// Asserts the same findings, and the same bytes if there is no error, from the directory and from its
/// commit.
fn check(scratch: &Scratch, expect: &[&str]) -> BuildOutcome {
    let outcome = folder(scratch.path());
    assert_eq!(findings(&outcome), expect);
    scratch.commit_all("state");
    let committed = revision(scratch);
    assert_eq!(findings(&committed), expect, "through Git");
    if outcome.built.is_some() {
        assert_eq!(bytes(&outcome), bytes(&committed), "through Git");
    }
    outcome
}

fn repo() -> Scratch {
    Scratch::copy_of(&vectors().join("repo"))
}

#[test]
fn dot_files_and_dot_folders_are_ignored() {
    let scratch = repo();
    let before = bytes(&folder(scratch.path()));
    scratch.write("data/.hidden.yml", "not: [yaml");
    scratch.write("data/.folder/x.yml", "not: [yaml");
    scratch.write("resources/.folder/deep/x.txt", "x");
    scratch.write("schemas/.x.yml", "x");
    assert_eq!(bytes(&check(&scratch, &[])), before);
}

#[test]
fn only_yaml_and_json_are_datafiles_but_every_file_is_a_resource() {
    let scratch = repo();
    let before = bytes(&folder(scratch.path()));
    scratch.write("data/README.md", "# text");
    scratch.write("schemas/notes.txt", "text");
    assert_eq!(bytes(&check(&scratch, &[])), before);
    scratch.write("resources/README.md", "# text");
    assert!(bytes(&check(&scratch, &[])).contains("\"/README.md\""));
}

#[test]
fn an_ending_in_capitals_is_a_warning() {
    let scratch = repo();
    scratch.write("data/x.YML", "a: 1");
    check(&scratch, &["Q2010 data/x.YML"]);
}

#[test]
fn empty_files_are_left_out_with_a_warning() {
    let scratch = repo();
    scratch.write("data/empty.yml", "");
    scratch.write("data/comment.yml", "# nothing\n---\n");
    check(&scratch, &["Q2002 data/comment.yml", "Q2002 data/empty.yml"]);
}

#[test]
fn a_link_within_the_repo_is_the_file_it_leads_to() {
    let scratch = repo();
    scratch.link("resources/rules/linked.txt", "plain.txt");
    scratch.link("data/teams/linked.yml", "../teams/core.yml");
    let text = bytes(&check(&scratch, &[]));
    assert!(text.contains("\"/rules/linked.txt\"") && text.contains("\"/teams/linked.yml\""));
}

#[test]
fn links_that_leave_the_repo_or_lead_nowhere_are_refused() {
    let scratch = repo();
    scratch.link("data/outside.yml", "/etc/passwd");
    scratch.link("data/nowhere.yml", "missing.yml");
    scratch.link("data/folder.yml", "teams");
    scratch.link("resources/circle", "circle");
    check(
        &scratch,
        &[
            "Q2004 data/folder.yml",
            "Q2004 data/nowhere.yml",
            "Q2003 data/outside.yml",
            "Q2004 resources/circle",
        ],
    );
}

#[test]
fn a_link_above_the_top_is_refused_in_a_revision() {
    let scratch = repo();
    scratch.link("data/up.yml", "../../up.yml");
    scratch.commit_all("state");
    assert_eq!(findings(&revision(&scratch)), ["Q2003 data/up.yml"]);
}

#[test]
fn a_link_into_a_hidden_folder_is_refused() {
    let scratch = repo();
    scratch.write("resources/.secret/key", "x");
    scratch.link("resources/key", ".secret/key");
    scratch.commit_all("state");
    scratch.link("resources/config", "../.git/config");
    check(&scratch, &["Q2003 resources/config", "Q2003 resources/key"]);
}

#[test]
fn the_parts_themselves_may_not_be_links_out_of_the_repo() {
    let (scratch, outside) = (repo(), repo());
    for part in ["data", "graphql-schemas/schema.yml"] {
        let inside = scratch.path().join(part);
        if inside.is_dir() { std::fs::remove_dir_all(&inside) } else { std::fs::remove_file(&inside) }
            .expect("gone");
        scratch.link(part, outside.path().join(part).to_str().expect("UTF-8"));
    }
    check(&scratch, &["Q2003 data", "Q2003 graphql-schemas/schema.yml"]);
}

#[test]
fn a_part_may_be_a_link_within_the_repo() {
    let scratch = repo();
    let before = bytes(&folder(scratch.path()));
    std::fs::rename(scratch.path().join("data"), scratch.path().join("real")).expect("renamed");
    scratch.link("data", "real");
    assert_eq!(bytes(&check(&scratch, &[])), before);
}

#[test]
fn links_that_do_not_look_like_documents_are_ignored_among_datafiles() {
    let scratch = repo();
    scratch.link("data/teams-of-old", "teams");
    scratch.link("data/broken", "nowhere");
    check(&scratch, &[]);
}

#[test]
fn a_pipe_in_place_of_a_file_is_a_finding_and_does_not_block() {
    let scratch = repo();
    scratch.remove("graphql-schemas/schema.yml");
    for name in ["graphql-schemas/schema.yml", "data/pipe.yml"] {
        let made = std::process::Command::new("mkfifo").arg(scratch.path().join(name)).status();
        assert!(made.expect("mkfifo runs").success());
    }
    let outcome = folder(scratch.path());
    assert_eq!(findings(&outcome), ["Q2007 data/pipe.yml", "Q2007 graphql-schemas/schema.yml"]);
}

#[test]
fn names_that_are_not_utf8_are_reported_for_directories_and_revisions() {
    use std::os::unix::ffi::OsStrExt as _;
    let scratch = repo();
    for name in [b"data/x\xff.yml", b"data/x\xfe.yml"] {
        let path = scratch.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, "a: 1\n").expect("an odd name");
    }
    check(&scratch, &["Q2007 data/x\u{fffd}.yml"]);
}

#[test]
fn json_files_are_json() {
    let scratch = repo();
    scratch.write(
        "data/n.json",
        "{\"$schema\": \"/x\", \"a\": 1e3, \"b\": 12345e7, \"c\": -0, \"d\": \"\\ud83d\\ude00\"}\n",
    );
    let text = bytes(&check(&scratch, &[]));
    assert!(text.contains(r#""a":1000.0,"b":123450000000.0,"c":0,"d":"\ud83d\ude00"}"#), "{text}");
    scratch.write("data/n.json", "{\"a\": yes} # comment\n");
    check(&scratch, &["Q1001 data/n.json"]);
}

#[test]
fn merge_keys_are_counted_before_they_are_copied() {
    let scratch = repo();
    let keys = (0..20_000).map(|key| format!("  k{key}: 0\n")).collect::<Vec<_>>().concat();
    let merges = "- {<<: *a}\n".repeat(10_000);
    scratch.write("data/bomb.yml", format!("a: &a\n{keys}b:\n{merges}"));
    assert_eq!(findings(&folder(scratch.path())), ["Q1005 data/bomb.yml"]);
}

#[test]
fn the_time_of_a_commit_does_not_depend_on_the_users_settings() {
    let scratch = repo();
    scratch.commit_all("state");
    scratch.git(&["config", "log.showSignature", "true"]);
    let revision = Revision::open(scratch.path(), "HEAD").expect("a commit");
    assert_eq!(revision.stamp().timestamp, "1700000000");
}

#[test]
fn a_data_repo_may_be_a_folder_of_its_git_repository() {
    let scratch = Scratch::copy_of(&vectors());
    scratch.commit_all("state");
    let inside = Revision::open(&scratch.path().join("repo"), "HEAD").expect("a commit");
    let named = Revision::open(scratch.path(), "HEAD:repo").expect("a commit");
    let pool = Pool::default();
    for revision in [inside, named] {
        let outcome = build(&Repo::revision(revision, Layout::default()), CommitStamp::default(), &pool)
            .expect("a repo");
        assert_eq!(bytes(&outcome), bytes(&folder(&vectors().join("repo"))));
    }
}

#[test]
fn the_order_in_which_files_were_created_does_not_matter() {
    let names = |scratch: &Scratch, reverse: bool| {
        let mut numbers: Vec<u32> = (0..60).collect();
        if reverse {
            numbers.reverse();
        }
        for number in numbers {
            let text = format!("$schema: /tiny/app-1.yml\nname: a{number}\nrules: /rules/plain.txt\n");
            scratch.write(&format!("data/apps/{}/a{number}.yml", number % 7), text);
        }
    };
    let (forward, backward) = (repo(), repo());
    names(&forward, false);
    names(&backward, true);
    assert_eq!(bytes(&folder(forward.path())), bytes(&folder(backward.path())));
}

#[test]
fn back_references_are_sorted_by_path_and_keep_the_order_of_the_file() {
    let scratch = repo();
    scratch.write("data/apps/a.yml", "$schema: /tiny/app-1.yml\nname: a\nrules: /rules/plain.txt\n");
    scratch.write("data/apps/z.yml", "$schema: /tiny/app-1.yml\nname: z\nrules: /rules/plain.txt\n");
    let outcome = folder(scratch.path());
    let bundle = outcome.built.as_ref().expect("no errors");
    let resource = bundle.resource("/rules/plain.txt").expect("a resource");
    let paths: Vec<&str> = resource.backrefs.iter().map(|backref| backref.path.as_str()).collect();
    assert_eq!(paths, ["/apps/a.yml", "/apps/search.yml", "/apps/z.yml"]);
}

#[test]
fn a_discriminator_may_be_a_number() {
    let scratch = repo();
    let schema = scratch.read("schemas/tiny/app-1.yml").replace(
        "  parameters: {type: object}\n",
        "  parameters: {type: object}\n  levels:\n    type: array\n    items:\n      oneOf:\n      - properties: {level: {enum: [1]}, \
         path: {\"$ref\": \"/common-1.json#/definitions/resourceref\"}}\n      - properties: {level: {enum: [2]}}\n      - {type: string}\n",
    );
    scratch.write("schemas/tiny/app-1.yml", schema);
    let types = scratch.read("graphql-schemas/schema.yml").replace(
        "  - { name: parameters, type: json }\n",
        "  - { name: parameters, type: json }\n  - { name: levels, type: Level_v1, isList: true, isInterface: true }\n",
    );
    let level = "- name: Level_v1\n  isInterface: true\n  interfaceResolve: { strategy: fieldMap, field: level, fieldMap: {} }\n  fields: []\n";
    scratch.write("graphql-schemas/schema.yml", format!("{types}{level}"));
    scratch.write("data/apps/x.yml", "$schema: /tiny/app-1.yml\nname: x\nlevels:\n- {level: 1, path: /unused.txt}\n- {level: 3, path: /unused.txt}\n");
    let outcome = folder(scratch.path());
    let bundle = outcome.built.as_ref().expect("no errors");
    let jsonpaths: Vec<&str> = bundle
        .resource("/unused.txt")
        .expect("a resource")
        .backrefs
        .iter()
        .map(|backref| backref.jsonpath.as_str())
        .collect();
    assert_eq!(jsonpaths, ["levels.[0].path"]);
}

#[test]
fn an_alias_gets_the_identifier_of_its_anchor() {
    let scratch = repo();
    let text = "$schema: /tiny/app-1.yml\nname: x\nteam: {$ref: /teams/core.yml}\n\
                parameters: {first: &e {name: api, provider: http}}\nendpoints:\n- *e\n";
    scratch.write("data/apps/x.yml", text);
    let outcome = folder(scratch.path());
    let bundle = outcome.built.as_ref().expect("no errors");
    let document = &bundle.datafile("/apps/x.yml").expect("a datafile").value;
    let identifier = document.pointer("/endpoints/0/__identifier");
    assert!(identifier.is_some());
    assert_eq!(document.pointer("/parameters/first/__identifier"), identifier);
}

#[test]
fn the_example_is_bundled_without_findings() {
    let outcome = folder(&example());
    assert_eq!(findings(&outcome), [""; 0]);
    assert!(outcome.built.expect("no errors").datafiles().len() > 100);
}

#[test]
#[ignore = "needs the public schemas; run by `cargo xtask test`"]
fn a_generated_corpus_is_bundled_under_the_public_schemas() {
    let Some(schemas) = public_schemas() else {
        return not_tested(
            "a corpus under the public schemas: they are not available (set QONTRACT_PUBLIC_SCHEMAS to their path)",
        );
    };
    let scratch = Scratch::copy_of(&schemas);
    let corpus = qontract_benches::corpus::generate(1_200, qontract_benches::corpus::DEFAULT_SEED);
    corpus.write(scratch.path()).expect("the corpus can be written");
    let outcome = folder(scratch.path());
    assert_eq!(findings(&outcome), [""; 0]);
    let bundle = outcome.built.expect("no errors");
    assert_eq!(bundle.datafiles().len(), 1_200);
    assert_eq!(bundle.schemas().len(), 164);
}

#[test]
fn a_bundle_has_the_source_digest_of_its_data_repo() {
    let scratch = repo();
    scratch.write("data/empty.yml", "# key: none\n---\n");
    scratch.write("data/null.yml", "~");
    scratch.write("data/marker.yml", "--- # a: b\n");
    scratch.write("data/comment.yml", "~ # key: x\n");
    scratch.commit_all("state");
    let committed = Repo::revision(Revision::open(scratch.path(), "HEAD").unwrap(), Layout::default());
    let committed = committed.source_digest().expect("readable files");
    let folder = Repo::directory(scratch.path(), Layout::default());
    let mut cache = BuildCache::default();
    // `commit` is not part of the digest.
    let mut check = |commit: &str, is_same: bool| {
        let options = BuildOptions { cache: Some(&mut cache), ..BuildOptions::default() };
        let stamp = CommitStamp { commit: commit.to_owned(), timestamp: String::new() };
        let outcome = build_with(&folder, stamp, &Pool::default(), options).expect("a data repo");
        let built = outcome.built.as_ref().unwrap_or_else(|| panic!("{:?}", findings(&outcome)));
        let digest = built.source_digest().expect("built from files");
        assert_eq!(folder.source_digest().expect("readable files"), digest);
        assert_eq!(digest == committed, is_same);
    };
    check("", true);
    check("f85c9b3f0a12", true);
    for (file, added) in [
        ("data/teams/core.yml", "# edited\n"),
        ("data/null.yml", "\n# edited\n"),
        ("data/new.yml", "a: 1"),
        ("resources/new.txt", "new"),
        ("schemas/tiny/team-1.yml", "# edited\n"),
    ] {
        let before = std::fs::read_to_string(scratch.path().join(file)).ok();
        scratch.write(file, format!("{}{added}", before.clone().unwrap_or_default()));
        // An empty file is not part of the bundle.
        check("", file == "data/null.yml");
        match before {
            Some(before) => drop(scratch.write(file, before)),
            None => std::fs::remove_file(scratch.path().join(file)).unwrap(),
        }
        check("", true);
    }
    // A loaded bundle has no files.
    let loaded = load(
        &build(&folder, CommitStamp::default(), &Pool::default()).unwrap().built.unwrap().to_vec(),
        &Pool::default(),
    );
    assert_eq!(loaded.expect("a bundle").source_digest(), None);
}
