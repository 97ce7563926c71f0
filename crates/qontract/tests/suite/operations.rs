//! Tests of what an operator relies on besides the plan: records that can be stored, sandboxes in the right
//! place, targets that are named, and messages that say what to do.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use crate::support::operator::{operator_fixture, run_with};
use qontract_testkit::Scratch;

const STAGE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";

/// The exit code and the output of a command.
fn run(scratch: &Scratch, words: &[&str]) -> (i32, String) {
    let output = run_with(scratch.path(), &[("QONTRACT_RUNS", "runs")], words);
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code().unwrap(), text.concat())
}

fn replace(scratch: &Scratch, file: &str, from: &str, to: &str) {
    let text = scratch.read(file);
    assert!(text.contains(from), "{file} has no {from}");
    scratch.write(file, text.replacen(from, to, 1));
}

#[test]
fn a_real_run_without_a_place_for_its_record_does_not_start() {
    let scratch = operator_fixture();
    scratch.write("file", "");
    let words = ["reconcile", "openshift-namespaces", "--data", "repo", "--sandbox", "sandbox"];
    let (code, text) = run(&scratch, &[&words[..], &["--runs", "file/runs"]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("cannot store run records; set `--runs` to another directory"), "{text}");
    assert!(!scratch.path().join("sandbox/clusters").exists(), "nothing was written");
    // A dry run writes nothing that the record would have to explain.
    let (code, text) = run(&scratch, &[&words[..], &["--runs", "file/runs", "--dry-run"]].concat());
    assert!(code == 0 && text.contains("warning: cannot store the run record"), "{text}");
}

#[test]
fn a_run_in_a_sandbox_reads_the_made_up_secrets_of_the_data_repo() {
    let scratch = operator_fixture();
    let repo = scratch.path().join("repo");
    for folder in [repo.clone(), repo.join("data")] {
        for name in ["openshift-namespaces", "openshift-vault-secrets"] {
            let variables = [("QONTRACT_RUNS", "../runs")];
            let sandbox = scratch.path().join("sandbox").display().to_string();
            let output =
                run_with(&folder, &variables, &["reconcile", name, "--sandbox", &sandbox, "--dry-run"]);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: {text}", folder.display());
        }
    }
}

#[test]
fn a_sandbox_is_not_part_of_the_data() {
    let scratch = operator_fixture();
    for folder in ["repo/data", "repo/data/new/sandbox", "repo/resources", "repo/schemas/x"] {
        let words = ["reconcile", "openshift-namespaces", "--data", "repo", "--sandbox", folder];
        let (code, text) = run(&scratch, &words);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(&format!("`{folder}` cannot be a sandbox: it is part of")), "{text}");
        let (code, text) = run(&scratch, &["up", "repo", "--once", "--sandbox", folder]);
        assert!(code == 2 && text.contains("cannot be a sandbox"), "{text}");
    }
    assert!(!scratch.path().join("repo/data/clusters/cliffs-stage").is_dir());
    assert!(!scratch.path().join("repo/data/.lock").exists());
    let words = ["reconcile", "openshift-namespaces", "--data", "repo", "--sandbox", "repo/sandbox"];
    let (code, text) = run(&scratch, &words);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_flag_of_integrations_before_the_name_is_explained() {
    let scratch = operator_fixture();
    let (code, text) = run(&scratch, &["reconcile", "--cluster-name", "c", "openshift-namespaces"]);
    assert!(code == 2 && text.contains("write it after the name of one that has it"), "{text}");
    assert!(!text.contains("similar argument"), "{text}");
    let (code, text) = run(&scratch, &["plan", "-i", "openshift-namespaces", "--cluster-name", "c"]);
    assert!(code == 2 && text.contains("which 'qontract reconcile INTEGRATION' takes"), "{text}");
    assert!(!text.contains("as a value"), "{text}");
    let (code, text) = run(&scratch, &["reconcile", "--nonsense", "openshift-namespaces"]);
    assert!(code == 2 && !text.contains("flag of integrations"), "{text}");
}

#[test]
fn a_usage_error_of_run_integration_is_one_line() {
    let scratch = operator_fixture();
    scratch.write("config.toml", "[sandbox]\ndirectory = \"sandbox\"\n");
    let variables = [
        ("INTEGRATION_NAME", "query-validator"),
        ("RUN_ONCE", "true"),
        ("PROMETHEUS_PORT", "0"),
        ("CONFIG", "config.toml"),
        ("INTEGRATION_EXTRA_ARGS", "--cluster-nam x"),
    ];
    let output = run_with(scratch.path(), &variables, &["peer", "run-integration"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("cannot start: unexpected argument '--cluster-nam' found"), "{text}");
    assert!(!text.contains("\\n") && !text.contains("Usage:"), "{text}");
}

#[test]
fn approve_names_the_run_that_held_changes() {
    let scratch = operator_fixture();
    let guards = "[sandbox]\ndirectory = \"sandbox\"\n[guards]\nshard_removals = 0\nshard_percent = 0\n";
    scratch.write("config.toml", guards);
    let reconcile =
        |name: &str| run(&scratch, &["reconcile", name, "--data", "repo", "--config", "config.toml"]);
    assert_eq!(reconcile("openshift-namespaces").0, 0);
    assert_eq!(reconcile("openshift-limitranges").0, 0);
    let text = scratch.read(STAGE);
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("limitRanges")).collect();
    scratch.write(STAGE, without.join("\n") + "\n");
    assert_eq!(reconcile("openshift-limitranges").0, 1);
    assert_eq!(reconcile("openshift-namespaces").0, 0);
    let (code, text) = run(&scratch, &["approve", "last"]);
    assert!(code == 1 && text.contains("held nothing: no approval is needed; the last run that"), "{text}");
    let command = text.split("`qontract approve ").nth(1).unwrap().split('`').next().unwrap();
    assert!(command.contains("-openshift-limitranges-"), "{text}");
    let (code, text) = run(&scratch, &["approve", command]);
    assert!(code == 0 && text.contains("integration: openshift-limitranges"), "{text}");
}

#[test]
fn a_misspelt_managed_kind_is_reported_where_it_is() {
    let scratch = operator_fixture();
    replace(&scratch, STAGE, "\n- ConfigMap\n", "\n- ConfigMaps\n");
    let line = scratch.read(STAGE).lines().position(|line| line == "managedResourceTypes:").unwrap() + 1;
    let (code, text) = run(&scratch, &["validate", "repo"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("`managedResourceTypes` names `ConfigMaps`, and no object has this kind"),
        "{text}"
    );
    assert!(text.contains("hint: did you mean `ConfigMap`?"), "{text}");
    let at = [line, line + 1].iter().any(|line| text.contains(&format!("--> {STAGE}:{line}:")));
    assert!(at && text.contains("1 error in 1 file"), "{text}");
}

#[test]
fn the_schemas_of_an_integration_with_an_empty_list_are_printed() {
    let scratch = operator_fixture();
    let file = "repo/data/integrations/openshift-limitranges.yml";
    let text = scratch.read(file);
    let (head, rest) = text.split_once("schemas:\n").unwrap();
    let rest: String =
        rest.lines().skip_while(|line| line.starts_with("- ")).collect::<Vec<_>>().join("\n") + "\n";
    scratch.write(file, format!("{head}schemas:\n{rest}"));
    let words = ["integrations", "schemas", "openshift-limitranges", "--data", "repo"];
    let (code, text) = run(&scratch, &words);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("- /openshift/limitrange-1.yml\n"), "{text}");
    assert!(text.contains("note: not compared with the data: "), "{text}");
}
