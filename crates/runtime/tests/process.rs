//! The process form, with small `sh` programs: their environment, valid and invalid responses, and
//! termination. The specification is `docs/specs/process-integration.md`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use qontract_access::Mode;
use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build};
use qontract_graphql::Engine;
use qontract_runtime::guard::{Date, ProtectedKinds};
use qontract_runtime::process::{ProcessIntegration, Program};
use qontract_runtime::{
    BundleReader, Fault, Integration, LoadedBundle, Responsible, RunEnd, RunOutcome, RunRequest, ShardKey,
    SourceLocation, run,
};
use qontract_testkit::{Scratch, example};
use rustix::process::{Pid, test_kill_process};

/// Longer than any program here runs, unless it hangs.
const AMPLE: Duration = Duration::from_mins(1);

/// The day of every run.
const TODAY: Date = Date::constant(2026, 1, 1);

/// The default responses of a program; each test puts its special behaviour before them.
const USUAL: &str = r#"
case $1 in
describe) echo '{"name": "try", "description": "tries", "queries": [{"name": "Apps", "text": "query Apps { apps_v1 { name } }"}]}' ;;
declare) case $(cat) in
    *'"name":"b"'*) echo '{"shards": [{"key": [["app", "a"]], "state": 1}, {"key": [["app", "b"]], "state": 2}]}' ;;
    *) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
    esac ;;
*) echo '{}' ;;
esac
"#;

/// A plan with one step.
const ONE_STEP: &str = r#"echo '{"scopes": [{"scope": [["app", "a"]], "count": 0}], "groups": [{"steps": [{"action": 7,
    "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "thing", "name": "t"}, "what": "create thing"}]}]}]}'"#;

/// A folder with a program in it, which finds the folder in `$OUT`.
struct ProgramFixture(Scratch);

impl ProgramFixture {
    /// A program that runs `special` first; unless that exits, it sends the default responses.
    fn new(special: &str) -> Self {
        let scratch = Scratch::new();
        scratch.write("program.sh", format!("{special}\n{USUAL}"));
        Self(scratch)
    }

    fn program(&self) -> Program {
        let path = |name: &str| self.0.path().join(name).to_str().expect("a path").to_owned();
        Program {
            command: vec!["sh".to_owned(), path("program.sh")],
            environment: BTreeMap::from([("OUT".to_owned(), path(""))]),
            secret_environment: BTreeMap::from([("READ".to_owned(), "secret-too".to_owned())]),
            write_environment: BTreeMap::from([("TOKEN".to_owned(), "secret".to_owned())]),
            deadline: AMPLE,
            ..Program::default()
        }
    }

    fn fault(&self) -> Fault {
        self.fault_within(AMPLE)
    }

    /// The fault of `describe`.
    fn fault_within(&self, deadline: Duration) -> Fault {
        let program = Program { deadline, ..self.program() };
        ProcessIntegration::describe("try", program).err().expect("it cannot be described")
    }

    async fn run(&self, mode: Mode) -> RunOutcome {
        self.perform(&RunRequest::new("r1", mode, data(&["a"]), TODAY, ProtectedKinds::default())).await
    }

    async fn perform(&self, request: &RunRequest) -> RunOutcome {
        let process = ProcessIntegration::describe("try", self.program()).expect("it describes itself");
        let request = RunRequest { validate_schemas: false, ..request.clone() };
        run(&Integration::process(process), &request).await
    }

    /// The content of a file that the program wrote, if it did.
    fn wrote(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.path().join(name)).ok()
    }

    /// A request that the program wrote into a file.
    fn request(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.wrote(name).expect("it was requested exactly once"))
            .expect("a request is JSON")
    }
}

/// A bundle with these apps.
fn data(apps: &[&str]) -> Arc<dyn BundleReader> {
    committed(apps, "")
}

/// A bundle with these apps, of this commit.
fn committed(apps: &[&str], commit: &str) -> Arc<dyn BundleReader> {
    let scratch = Scratch::copy_of(&example());
    for folder in ["data", "resources"] {
        fs::remove_dir_all(scratch.path().join(folder)).expect("the example has it");
        fs::create_dir_all(scratch.path().join(folder)).expect("a folder can be made");
    }
    for app in apps {
        scratch.write(&format!("data/{app}.yml"), format!("$schema: /app-sre/app-1.yml\nname: {app}\n"));
    }
    let repo = Repo::directory(scratch.path(), Layout::default());
    let stamp = CommitStamp { commit: commit.to_owned(), ..CommitStamp::default() };
    let built = build(&repo, stamp, &Pool::default()).expect("it can be read").built;
    let bundle = Arc::new(built.expect("it can be bundled"));
    Arc::new(LoadedBundle::new(Arc::new(Engine::new(bundle).expect("its types are good"))))
}

/// Waits until a process is gone, or is a zombie that was not reaped yet.
fn expect_gone(pid: &str) {
    let pid: i32 = pid.trim().parse().expect("a process id");
    let began = Instant::now();
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") Z ") || test_kill_process(Pid::from_raw(pid).expect("a process id")).is_err()
    };
    while !gone() {
        assert!(began.elapsed() < AMPLE, "the process {pid} is still there");
        std::thread::yield_now();
    }
}

fn check(fault: &Fault, whose: Responsible, text: &str) {
    assert_eq!(fault.whose, whose, "{fault}");
    assert!(fault.text.contains(text), "`{text}` is not in: {fault}");
}

#[test]
fn at_the_deadline_the_whole_process_group_is_terminated() {
    let stage = ProgramFixture::new("sleep 1000 & echo $! > $OUT/child; echo $$ > $OUT/self; wait");
    let fault = stage.fault_within(Duration::from_secs(2));
    check(&fault, Responsible::Remote, "took longer than 2 s");
    assert!(fault.text.starts_with("`describe` of `try` (`sh /"), "{fault}");
    for file in ["child", "self"] {
        expect_gone(&stage.wrote(file).expect("it started in time"));
    }
}

#[test]
fn a_response_does_not_count_until_the_program_exits() {
    let stage = ProgramFixture::new("echo '{}'; exec >&- 2>&-; echo $$ > $OUT/self; sleep 1000");
    check(&stage.fault_within(Duration::from_secs(2)), Responsible::Remote, "took longer than 2 s");
    expect_gone(&stage.wrote("self").expect("it started in time"));
}

#[test]
fn child_processes_of_a_program_end_with_it() {
    let stage = ProgramFixture::new("sleep 1000 > /dev/null 2>&1 & echo $! > $OUT/child");
    let fault = ProcessIntegration::describe("try", stage.program()).err();
    assert_eq!(fault, None);
    expect_gone(&stage.wrote("child").expect("it wrote its id"));
}

#[test]
fn a_failure_is_reported_with_the_end_of_stderr() {
    let stage =
        ProgramFixture::new("head -c 5000 /dev/zero | tr '\\0' x >&2; echo ' no such host' >&2; exit 3");
    let fault = stage.fault();
    check(&fault, Responsible::Operator, "program.sh`) failed (exit status: 3): xxx");
    assert!(fault.text.contains("xxx…") && fault.text.len() < 700, "{fault}");
    let stage = ProgramFixture::new("echo one >&2; echo two >&2; exit 3");
    let fault = stage.fault();
    check(&fault, Responsible::Operator, "failed (exit status: 3): two");
    assert_eq!(fault.details, ["one", "two"]);
}

#[test]
fn secrets_of_a_program_are_redacted_and_plain_variables_are_not() {
    let set = |name: &str| BTreeMap::from([(name.to_owned(), "value-of-it".to_owned())]);
    let stage = ProgramFixture::new("echo \"no such user: value-of-it\" >&2; exit 1");
    let check = |program: Program, is_shown: bool| {
        let text = ProcessIntegration::describe("try", program).err().expect("it fails").text;
        assert_eq!(text.ends_with(": no such user: value-of-it"), is_shown, "{text}");
        assert_eq!(text.ends_with(": [redacted]"), !is_shown, "{text}");
    };
    check(Program { environment: set("HOME"), ..stage.program() }, true);
    check(Program { environment: set("API_TOKEN"), ..stage.program() }, false);
    check(Program { secret_environment: set("X"), ..stage.program() }, false);
    check(Program { write_environment: set("X"), ..stage.program() }, false);
}

#[test]
fn flags_have_names_of_their_own() {
    for (name, text) in
        [("dry-run", "is reserved for the runner"), ("App", "must begin with a lowercase letter")]
    {
        let response = format!(r#"{{"name": "try", "description": "", "flags": [{{"name": "{name}"}}]}}"#);
        check(&ProgramFixture::new(&format!("echo '{response}'; exit")).fault(), Responsible::Operator, text);
    }
}

#[test]
fn a_program_that_cannot_be_started_is_reported() {
    for (command, text) in [
        (vec!["no-such-program".to_owned()], "`describe` of `try` (`no-such-program`) cannot be started"),
        (vec![], "has no `command`"),
    ] {
        let program = Program { command, ..ProgramFixture::new("").program() };
        let fault = ProcessIntegration::describe("try", program).err().expect("it cannot be started");
        check(&fault, Responsible::Operator, text);
    }
}

#[test]
fn a_response_must_have_the_requested_form() {
    for (response, text) in [
        (r#"{"name": "try""#, "is not JSON: EOF while parsing"),
        ("", "stdout is empty"),
        (r#"{"name": "try"}"#, "is invalid: missing field `description`"),
        (r#"{"name": "try", "description": "", "queris": []}"#, "unknown field `queris`"),
        (r#"{"name": "try", "description": ""} and more"#, "trailing characters"),
    ] {
        check(&ProgramFixture::new(&format!("echo '{response}'; exit")).fault(), Responsible::Operator, text);
    }
}

#[test]
fn a_response_that_is_too_long_is_refused() {
    check(
        &ProgramFixture::new("head -c 70000000 /dev/zero").fault(),
        Responsible::Operator,
        "the response is longer than 64 MiB",
    );
}

#[test]
fn a_program_has_the_name_it_is_registered_under() {
    let fault = ProcessIntegration::describe("other", ProgramFixture::new("").program())
        .err()
        .expect("its name differs");
    check(&fault, Responsible::Operator, "the program registered as `other` describes itself as `try`");
}

#[tokio::test]
async fn the_environment_is_cleared_and_write_credentials_come_with_apply() {
    let stage = ProgramFixture::new(&format!(
        "env | cut -d= -f1 > $OUT/$1.env; case $1 in plan) {ONE_STEP}; exit ;; esac"
    ));
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "a variable that must not be seen");
    let outcome = stage.run(Mode::Real).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1), "{outcome:?}");
    for (phase, expected) in [
        ("describe", "OUT PATH"),
        ("declare", "OUT PATH"),
        ("plan", "OUT PATH READ"),
        ("apply", "OUT PATH READ TOKEN"),
    ] {
        let text = stage.wrote(&format!("{phase}.env")).expect("it was requested");
        // These are inherited if they are set, or set by the shell.
        let may_be = ["LANG", "TZ", "OLDPWD", "PWD", "SHLVL", "_"];
        let mut names: Vec<&str> = text.lines().filter(|name| !may_be.contains(name)).collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{phase}");
    }
}

#[tokio::test]
async fn the_requests_match_the_specification() {
    let stage = ProgramFixture::new(&format!(
        "cat > $OUT/$1.json; exec < $OUT/$1.json; case $1 in plan) {ONE_STEP}; exit ;; esac"
    ));
    let outcome = stage.run(Mode::Real).await;
    assert_eq!(outcome.ended, RunEnd::Ok, "{outcome:?}");
    for (phase, expected) in [
        ("describe", r#"{"protocol": 1}"#),
        ("declare", r#"{"protocol": 1, "answers": {"Apps": {"apps_v1": [{"name": "a"}]}}, "options": {}}"#),
        (
            "plan",
            r#"{"protocol": 1, "key": [["app", "a"]], "common": null, "target": null, "state": 1,
            "commit": null}"#,
        ),
        ("apply", r#"{"protocol": 1, "run": "r1", "action": 7}"#),
    ] {
        let expected: serde_json::Value = serde_json::from_str(expected).expect("it is JSON");
        let mut request = stage.request(&format!("{phase}.json"));
        let now = request.as_object_mut().expect("an object").remove("now");
        assert_eq!(now.is_some(), ["plan", "apply"].contains(&phase), "{phase}");
        let is_time =
            |now: &serde_json::Value| now.as_str().is_some_and(|now| now.starts_with("2026-01-01T00:0"));
        assert!(now.iter().all(is_time), "{now:?}");
        assert_eq!(request, expected, "{phase}");
    }
}

#[tokio::test]
async fn a_program_gets_both_commits_and_on_request_the_results_of_the_base() {
    let described = r#"echo '{"name": "try", "description": "", "base": true, "queries": [{"name": "Apps", "text": "query Apps { apps_v1 { name } }"}]}'"#;
    for (special, base) in [
        (
            format!("case $1 in describe) {described}; exit ;; plan) cat > $OUT/plan.json ;; esac"),
            r#"{"Apps": {"apps_v1": [{"name": "c"}]}}"#,
        ),
        ("case $1 in plan) cat > $OUT/plan.json ;; esac".to_owned(), "null"),
    ] {
        let stage = ProgramFixture::new(&special);
        let head =
            RunRequest::new("r1", Mode::Real, committed(&["a"], "head"), TODAY, ProtectedKinds::default());
        // Shard `a` is in base as well, so that only one plan is requested.
        stage.perform(&RunRequest { base: Some(committed(&["c"], "base")), mode: Mode::Real, ..head }).await;
        let request = stage.request("plan.json");
        let commits = (request["commit"].as_str(), request["base_commit"].as_str());
        assert_eq!(commits, (Some("head"), Some("base")), "{request}");
        let expected: serde_json::Value = serde_json::from_str(base).expect("it is JSON");
        assert_eq!(request["base"], expected);
    }
}

#[tokio::test]
async fn apply_is_never_requested_in_a_dry_run() {
    let stage = ProgramFixture::new(&format!(
        "case $1 in plan) {ONE_STEP}; exit ;; apply) touch $OUT/applied ;; esac"
    ));
    let dry = stage.run(Mode::DryRun).await;
    let planned: usize = dry.shards.values().map(|shard| shard.changes.len()).sum();
    assert_eq!((dry.ended, planned, stage.wrote("applied")), (RunEnd::Ok, 1, None), "{dry:?}");
    let real = stage.run(Mode::Real).await;
    assert_eq!((real.ended, stage.wrote("applied").as_deref()), (RunEnd::Ok, Some("")), "{real:?}");
}

#[tokio::test]
async fn a_stale_step_is_planned_again() {
    let stage = ProgramFixture::new(&format!(
        "case $1 in
         plan) echo >> $OUT/plans; {ONE_STEP}; exit ;;
         apply) if mkdir $OUT/once; then echo '{{\"stale\": true}}'; exit; fi ;;
         esac"
    ));
    let outcome = stage.run(Mode::Real).await;
    let shard = &outcome.shards[&ShardKey::new([("app", "a")])];
    assert_eq!((outcome.ended, shard.rounds, shard.applied), (RunEnd::Ok, 2, 1), "{outcome:?}");
    assert_eq!(stage.wrote("plans").as_deref(), Some("\n\n"));
}

#[tokio::test]
async fn with_patience_a_run_waits_for_what_its_own_step_has_started() {
    let scope = r#"{"scopes": [{"scope": [["app", "a"]], "count": 1}]"#;
    for (patience, applied, plans) in [
        (r#", "patience": {"every": 1, "total": 60}"#, "7\n8\n", "plan\nwait\nwait\nrecord\n"),
        ("", "7\n", "plan\n"),
    ] {
        let record = ONE_STEP.replace("\"action\": 7", "\"action\": 8");
        let stage = ProgramFixture::new(&format!(
            r#"case $1 in
            describe) echo '{{"name": "try", "description": ""{patience}}}'; exit ;;
            plan)
                case $(cat $OUT/applied 2>/dev/null) in
                '') echo plan >> $OUT/plans; {ONE_STEP} ;;
                7)  if [ "$(tail -n 2 $OUT/plans | tr -d '\n')" = waitwait ]; then echo record >> $OUT/plans; {record}
                    else echo wait >> $OUT/plans; echo '{scope}, "waits": ["rollout"]}}'; fi ;;
                *) echo '{scope}}}' ;;
                esac; exit ;;
            apply) echo $(sed 's/.*"action":\([0-9]\).*/\1/') >> $OUT/applied; echo '{{}}'; exit ;;
            esac"#
        ));
        let outcome = stage.run(Mode::Real).await;
        assert_eq!(outcome.ended, RunEnd::Ok, "{outcome:?}");
        assert_eq!(stage.wrote("applied").as_deref(), Some(applied));
        assert_eq!(stage.wrote("plans").as_deref(), Some(plans));
    }
}

#[tokio::test]
async fn a_removal_that_a_program_observed_to_be_approved_is_applied() {
    let thing = |name: &str| format!(r#"{{"scope": [["app", "a"]], "kind": "vault", "name": "{name}"}}"#);
    let (old, other) = (thing("t"), thing("u"));
    for (approved, expect) in [(&old, RunEnd::Ok), (&other, RunEnd::Held)] {
        let plan = format!(
            r#"{{"scopes": [{{"scope": [["app", "a"]], "count": 50}}], "approved": [{approved}], "groups": [{{"steps": [
            {{"changes": [{{"kind": "remove", "thing": {old}, "what": "remove it"}}]}}]}}]}}"#
        );
        let stage = ProgramFixture::new(&format!("case $1 in plan) echo '{plan}'; exit ;; esac"));
        let request =
            RunRequest::new("r1", Mode::DryRun, data(&["a"]), TODAY, ProtectedKinds::new(["vault"]));
        let outcome = stage.perform(&request).await;
        assert_eq!(outcome.ended, expect, "{outcome:?}");
    }
}

#[test]
fn the_callers_of_an_object_program_share_a_slot() {
    let describe = |more: &str| {
        let response = format!(r#"{{"name": "try", "description": "", "form": "objects"{more}}}"#);
        ProgramFixture::new(&format!("echo '{response}'; exit"))
    };
    let meta = ProcessIntegration::describe("try", describe("").program()).expect("it describes itself");
    let key = |caller| ShardKey::new([("cluster", "c"), ("namespace", "n"), ("caller", caller)]);
    let slots = ["one", "two"].map(|caller| meta.meta().slot_value(&key(caller)));
    assert_eq!(slots, ["c/n", "c/n"]);
    let fault = describe(r#", "slots_by": "caller""#).fault();
    check(&fault, Responsible::Operator, "the callers of a namespace share a process");
}

#[tokio::test]
async fn a_shard_that_only_base_has_is_planned_with_an_empty_state() {
    let stage = ProgramFixture::new("case $1 in plan) cat >> $OUT/plan-request ;; esac");
    let head = RunRequest::new("r1", Mode::DryRun, data(&["a"]), TODAY, ProtectedKinds::default());
    let outcome = stage.perform(&RunRequest { base: Some(data(&["a", "b"])), ..head }).await;
    assert_eq!(outcome.ended, RunEnd::Ok, "{outcome:?}");
    let request = stage.request("plan-request");
    assert_eq!((request["key"].to_string().as_str(), request["state"].is_null()), (r#"[["app","b"]]"#, true));
}

#[tokio::test]
async fn a_failing_plan_affects_only_its_own_shard() {
    let stage = ProgramFixture::new(&format!(
        "case $1 in plan) case $(cat) in *'\"b\"'*) echo 'b is broken' >&2; exit 1 ;; *) {ONE_STEP}; exit ;; esac ;; esac"
    ));
    let outcome = stage
        .perform(&RunRequest::new("r1", Mode::Real, data(&["a", "b"]), TODAY, ProtectedKinds::default()))
        .await;
    let shard = |app: &str| &outcome.shards[&ShardKey::new([("app", app)])];
    assert_eq!(
        (outcome.ended, shard("a").applied, shard("b").applied),
        (RunEnd::Failed, 1, 0),
        "{outcome:?}"
    );
    check(&shard("b").faults[0], Responsible::Operator, "b is broken");
}

#[tokio::test]
async fn an_invalid_shard_is_reported_and_left_out() {
    let stage = ProgramFixture::new(
        r#"case $1 in declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}],
           "faults": [{"key": [["app", "a"]], "text": "no", "hint": "do", "place": {"query": "Apps", "at": "/apps_v1/0"}}]}'; exit ;;
           plan) touch $OUT/planned ;; esac"#,
    );
    let outcome = stage.run(Mode::DryRun).await;
    let faults: Vec<&Fault> = outcome.all_faults().collect();
    let fault = Fault::author("no").hint("do").at(SourceLocation::datafile("/a.yml", ""));
    assert_eq!((outcome.ended, faults, stage.wrote("planned")), (RunEnd::Failed, vec![&fault], None));
}

#[tokio::test]
async fn a_plan_hides_nothing_from_the_guards() {
    let thing = r#"{"scope": [["app", "a"]], "kind": "thing", "name": "t"}"#;
    let remove = format!(r#"{{"kind": "remove", "thing": {thing}, "what": "remove thing"}}"#);
    for (changes, text) in [
        (String::new(), "a step lists no changes"),
        (remove, "a step removes an object in `app=a`, which is not listed in `scopes`"),
    ] {
        let plan = format!(r#"{{"groups": [{{"steps": [{{"changes": [{changes}]}}]}}]}}"#);
        let stage = ProgramFixture::new(&format!(
            "case $1 in plan) echo '{plan}'; exit ;; apply) touch $OUT/applied ;; esac"
        ));
        let outcome = stage.run(Mode::Real).await;
        check(outcome.all_faults().next().expect("it is reported"), Responsible::Operator, text);
        assert_eq!((outcome.ended, stage.wrote("applied")), (RunEnd::Failed, None));
    }
}

#[tokio::test]
async fn a_protected_kind_of_a_program_is_removed_only_with_an_approval() {
    let plan = r#"{"scopes": [{"scope": [["app", "a"]], "count": 50}], "groups": [{"steps": [{"changes": [
        {"kind": "remove", "thing": {"scope": [["app", "a"]], "kind": "vault", "name": "t"}, "what": "remove it"}]}]}]}"#;
    let stage = ProgramFixture::new(&format!("case $1 in plan) echo '{plan}'; exit ;; esac"));
    for (kinds, expect) in [(vec!["vault"], RunEnd::Held), (vec!["other"], RunEnd::Ok)] {
        let protected = ProtectedKinds::new(kinds);
        let request = RunRequest::new("r1", Mode::DryRun, data(&["a"]), TODAY, protected);
        let outcome = stage.perform(&request).await;
        assert_eq!(outcome.ended, expect, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_cancelled_run_terminates_its_program() {
    let stage = ProgramFixture::new(
        r"if [ $1 = plan ]; then echo $$ > $OUT/pid.new; mv $OUT/pid.new $OUT/pid; sleep 1000; fi",
    );
    {
        let running = stage.run(Mode::DryRun);
        tokio::pin!(running);
        let begun = async {
            while stage.wrote("pid").is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            outcome = &mut running => panic!("it does not end by itself: {outcome:?}"),
            () = begun => {}
        }
    }
    expect_gone(stage.wrote("pid").expect("it began").trim());
}

#[tokio::test]
async fn a_program_saves_its_state_when_it_is_interrupted_at_its_deadline() {
    let stage = ProgramFixture::new(&format!(
        r"case $1 in
        plan) {ONE_STEP}; exit ;;
        apply) trap 'echo saved > $OUT/state; exit' INT; while :; do sleep 0.01; done ;;
        esac"
    ));
    let mut program = Program { deadline: Duration::from_secs(2), shutdown: Some(AMPLE), ..stage.program() };
    // In a background job of a shell, `SIGINT` is ignored, and a shell does not trap it.
    program.command.splice(0..0, ["env", "--default-signal=INT"].map(str::to_owned));
    let process = ProcessIntegration::describe("try", program).expect("it describes itself");
    let limits = process.meta().limits;
    assert!(limits.shutdown_timeout.is_some_and(|timeout| timeout > AMPLE), "{limits:?}");
    assert!(limits.step_timeout.is_some_and(|timeout| timeout > AMPLE), "{limits:?}");
    let request = RunRequest {
        validate_schemas: false,
        ..RunRequest::new("r1", Mode::Real, data(&["a"]), TODAY, ProtectedKinds::default())
    };
    let outcome = run(&Integration::process(process), &request).await;
    check(outcome.all_faults().next().expect("it is late"), Responsible::Remote, "took longer than 2 s");
    assert_eq!(stage.wrote("state").as_deref(), Some("saved\n"));
}

#[test]
fn a_program_that_may_take_long_to_plan_has_the_time() {
    let limits = |minutes| {
        let stage = ProgramFixture::new("");
        let program = Program { deadline: Duration::from_mins(minutes), ..stage.program() };
        ProcessIntegration::describe("try", program).expect("it describes itself").meta().limits
    };
    assert_eq!(limits(5).phase_timeout, None, "the default of a phase is longer");
    assert!(limits(15).phase_timeout.is_some_and(|timeout| timeout > Duration::from_mins(15)));
}

#[tokio::test]
async fn a_phase_that_times_out_terminates_its_program() {
    let stage = ProgramFixture::new(r"if [ $1 = plan ]; then echo $$ > $OUT/pid; sleep 1000; fi");
    let mut request = RunRequest::new("r1", Mode::DryRun, data(&["a"]), TODAY, ProtectedKinds::default());
    request.limits.phase_timeout = Duration::from_millis(300);
    let outcome = stage.perform(&request).await;
    check(outcome.all_faults().next().expect("it is reported"), Responsible::Remote, "`observe` took longer");
    expect_gone(stage.wrote("pid").expect("it began").trim());
}

#[tokio::test]
async fn in_a_sandbox_there_are_no_credentials() {
    let stage = ProgramFixture::new(&format!("env > $OUT/$1.env; case $1 in plan) {ONE_STEP}; exit ;; esac"));
    let program = Program { sandbox: Some("/somewhere/box".into()), ..stage.program() };
    let process = ProcessIntegration::describe("try", program).expect("it describes itself");
    assert!(!process.supports_sandbox(), "a program has to declare it");
    let request = RunRequest {
        validate_schemas: false,
        ..RunRequest::new("r1", Mode::Real, data(&["a"]), TODAY, ProtectedKinds::default())
    };
    let outcome = run(&Integration::process(process), &request).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1), "{outcome:?}");
    for phase in ["describe", "declare", "plan", "apply"] {
        let text = stage.wrote(&format!("{phase}.env")).expect("it was requested");
        assert!(text.contains("QONTRACT_SANDBOX=/somewhere/box\n"), "{phase}: {text}");
        assert!(!text.contains("READ=") && !text.contains("TOKEN="), "{phase}: {text}");
    }
}
