//! The public schemas, where available: all are accepted, and a data repo generated from them is valid.

use std::collections::BTreeMap;

use qontract_benches::corpus;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_diagnostics::{Diagnostic, Severity};
use qontract_testkit::{Scratch, not_tested, public_schemas};
use qontract_validate::{Options, validate};

fn checked(scratch: &Scratch) -> (usize, Vec<Diagnostic>) {
    let repo = Repo::directory(scratch.path(), Layout::default());
    let outcome = build(&repo, CommitStamp::default(), &Pool::default()).expect("a data repo");
    assert!(!outcome.findings.iter().any(Diagnostic::is_error), "{:#?}", outcome.findings);
    let bundle = outcome.built.expect("no errors");
    (bundle.schemas().len(), validate(&bundle, &Options::default()))
}

#[test]
#[ignore = "needs the public schemas; run by `cargo xtask test`"]
fn the_public_schemas_are_accepted_and_their_defects_are_warnings() {
    let Some(schemas) = public_schemas() else {
        return not_tested("validation of the public schemas: they are not available");
    };
    let scratch = Scratch::copy_of(&schemas);
    corpus::generate(1_200, 7).write(scratch.path()).expect("the generated files");
    let (count, findings) = checked(&scratch);
    assert_eq!(count, 164);
    let errors: Vec<_> = findings.iter().filter(|finding| finding.is_error()).take(20).collect();
    assert!(errors.is_empty(), "{errors:#?}");

    let mut told: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        told.entry(finding.code.to_string()).or_default().push(&finding.message);
    }
    let says = |code: &str, words: &[&str]| {
        let messages = told.get(code).map(Vec::as_slice).unwrap_or_default();
        for word in words {
            assert!(messages.iter().any(|message| message.contains(word)), "{code} {word}: {messages:#?}");
        }
    };
    says("Q3107", &["$scemaRef", "minimal"]);
    says("Q3108", &["`icon_emoji`", "`scopes`", "`groups`", "`jsonPathSelectors`"]);
    says("Q3106", &["matched separately", "empty alternative"]);
    says("Q3126", &["OpenShiftClusterManager_v1.clusters", "AppEscalationPolicy_v1.AcsPolicies"]);
    says("Q3123", &["`vpc`"]);
    says(
        "Q3124",
        &[
            "Cluster_v1.alertmanagerUrl",
            "SlackWorkspace_v1.managedUsergroups",
            "DnsZone_v1.description",
            "DnsZone_v1.account",
        ],
    );
    says(
        "Q3124",
        &["TerraformStateAWS_v1.bucket", "JenkinsInstance_v1.serverUrl", "GitlabInstance_v1.token"],
    );
    says(
        "Q3124",
        &["GcpProject_v1.", "QuayOrg_v1.instance", "VPCRequest_v1.account", "ChangeType_v1.changes"],
    );
    says(
        "Q3125",
        &[
            "AWSAccount_v1.qontractReconcileVersion",
            "Bot_v1.gitlab_username",
            "DnsZone_v1.provider",
            "DnsZone_v1.origin",
        ],
    );
}
