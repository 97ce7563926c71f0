//! The foreign form, with small `sh` commands: their environment, output, exit codes and termination.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_runtime::foreign::{DataEndpoint, ForeignCommand, ForeignIntegration, OpenEndpoint};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::lease::{HolderLiveness, LeaseAcquisition, LeaseHolder, LeaseRequest, Leases};
use qontract_runtime::reconcile_loop::{ShutdownSignal, TerminationSignal};
use qontract_runtime::slot::Slot;
use qontract_runtime::{
    BundleReader, Fault, Integration, RunEnd, RunOutcome, RunRecord, RunRequest, ShardKey, run,
};
use qontract_testkit::Scratch;
use support::fixture::{Stock, source};

/// Longer than any command here runs, unless it hangs.
const AMPLE: Duration = Duration::from_mins(1);

/// An endpoint that counts how many are open.
#[derive(Default)]
struct Endpoint {
    open: Arc<AtomicUsize>,
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl DataEndpoint for Endpoint {
    fn open<'a>(
        &'a self,
        head: &'a dyn BundleReader,
        base: Option<&'a dyn BundleReader>,
    ) -> BoxFuture<'a, Result<OpenEndpoint, Fault>> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let config = format!("head={} base={:?}", head.sha(), base.map(BundleReader::sha));
        let secrets = vec!["token-of-the-endpoint".to_owned(), "-----BEGIN KEY-----\nabcdef".to_owned()];
        let guard = Box::new(Open(Arc::clone(&self.open)));
        std::future::ready(Ok(OpenEndpoint { config, secrets, guard })).boxed()
    }
}

/// A directory with a script, which finds it in `$OUT`.
struct Fixture {
    scratch: Scratch,
    command: ForeignCommand,
    open: Arc<AtomicUsize>,
    request: RunRequest,
}

impl Fixture {
    fn new(script: &str) -> Self {
        let scratch = Scratch::new();
        scratch.write("command.sh", script);
        let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
        let command = ForeignCommand {
            integration: "old".to_owned(),
            command: vec!["sh".to_owned(), path("command.sh"), "one".to_owned()],
            arguments: vec!["--account".to_owned(), "a".to_owned()],
            environment: BTreeMap::from([
                ("OUT".to_owned(), path("")),
                ("DRY_RUN".to_owned(), "--no-dry-run".to_owned()),
                ("API_TOKEN".to_owned(), "hush".to_owned()),
            ]),
            secret_environment: BTreeMap::from([("PLAIN".to_owned(), "very-secret".to_owned())]),
            deadline: AMPLE,
            shutdown: AMPLE,
            log: None,
        };
        let (head, today) = (source(&Stock::new()), jiff::civil::date(2026, 1, 1));
        let mut request = RunRequest::new("r1", Mode::DryRun, head, today, ProtectedKinds::default());
        request.validate_schemas = false;
        Self { scratch, command, open: Arc::default(), request }
    }

    async fn run(&self) -> RunOutcome {
        let endpoint = Endpoint { open: Arc::clone(&self.open) };
        let foreign = ForeignIntegration::new(self.command.clone(), Arc::new(endpoint));
        let outcome = run(&Integration::foreign(foreign), &self.request).await;
        assert_eq!(self.open.load(Ordering::Relaxed), 0, "the endpoint ends with the run");
        outcome
    }

    /// The environment that the script wrote to a file.
    fn environment(&self) -> BTreeMap<String, String> {
        let text = self.scratch.read("env");
        let entries = text.lines().filter_map(|line| line.split_once('='));
        entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

fn output(outcome: &RunOutcome) -> Vec<&str> {
    outcome.shards[&ShardKey::default()].output.iter().map(String::as_str).collect()
}

fn fault(outcome: &RunOutcome) -> &Fault {
    outcome.all_faults().next().expect("it failed")
}

/// Leases that another run holds, with the shards that were requested.
#[derive(Debug, Default)]
struct HeldLeases(Mutex<Vec<String>>);

impl Leases for HeldLeases {
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, LeaseAcquisition> {
        self.0.lock().push(format!("{} {}", request.integration, request.shard));
        let holder = LeaseHolder { text: "run `other`".to_owned(), liveness: HolderLiveness::Alive };
        std::future::ready(LeaseAcquisition::Held(holder)).boxed()
    }

    fn wait<'a>(&'a self, _: LeaseRequest<'a>) -> BoxFuture<'a, Result<(), LeaseHolder>> {
        std::future::ready(Ok(())).boxed()
    }
}

#[tokio::test]
async fn a_command_does_not_start_while_another_run_holds_the_lease_of_its_slot() {
    let mut fixture = Fixture::new("touch $OUT/started");
    let leases = Arc::<HeldLeases>::default();
    fixture.request.leases = Arc::clone(&leases) as _;
    fixture.run().await;
    assert!(fixture.scratch.path().join("started").exists(), "a dry run needs no lease");
    fixture.scratch.remove("started");
    fixture.request.mode = Mode::Real;
    for slot in [Slot::default(), Slot::new(1, 3).unwrap()] {
        fixture.request.slot = slot;
        let outcome = fixture.run().await;
        assert_eq!(outcome.ended, RunEnd::Transient);
        assert!(fault(&outcome).text.contains("another run holds its lease (run `other`)"));
        assert!(!fixture.scratch.path().join("started").exists());
    }
    assert_eq!(*leases.0.lock(), ["old all", "old slot=1/3"]);
}

#[tokio::test]
async fn a_command_that_succeeds_has_a_plan_that_is_not_known() {
    for mode in [Mode::DryRun, Mode::Real] {
        let mut fixture = Fixture::new("echo out; echo err >&2; echo $1");
        fixture.request.mode = mode;
        let outcome = fixture.run().await;
        assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::NotKnown, 0));
        assert!(outcome.warnings[0].starts_with("plan not known"), "{:?}", outcome.warnings);
        let mut lines = output(&outcome);
        lines.sort_unstable();
        assert_eq!(lines, ["err", "one", "out"]);
        let timing = qontract_runtime::RunTiming { began: jiff::Timestamp::UNIX_EPOCH, milliseconds: 0 };
        let line = |_: &_| String::new();
        let record = RunRecord::new(&outcome, timing, qontract_runtime::LineResolvers::uniform(&line));
        assert_eq!(record.state().as_str(), "plan not known");
        assert_eq!(record.shards.values().next().unwrap().output.len(), 3);
    }
}

#[tokio::test]
async fn a_command_gets_the_environment_of_the_peer_and_cannot_be_turned_into_a_real_run() {
    let mut fixture = Fixture::new("env > $OUT/env");
    fixture.request.base = Some(source(&Stock::from([("a".to_owned(), Vec::new())])));
    fixture.request.include_unaffected = true;
    fixture.request.slot = Slot::new(1, 3).unwrap();
    fixture.run().await;
    let variables = fixture.environment();
    let base = fixture.request.base.as_ref().unwrap().sha().to_owned();
    for (name, value) in [
        ("INTEGRATION_NAME", "old"),
        ("DRY_RUN", "--dry-run"),
        ("RUN_ONCE", "true"),
        ("PROMETHEUS_PORT", "0"),
        ("INTEGRATION_EXTRA_ARGS", "--account a"),
        ("SHARDS", "3"),
        ("SHARD_ID", "1"),
        ("EARLY_EXIT_COMPARE_SHA", &base),
        ("CHECK_ONLY_AFFECTED_SHARDS", "true"),
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("PLAIN", "very-secret"),
    ] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(variables["CONFIG"].contains(&base) && variables["CONFIG"] == variables["QONTRACT_CONFIG"]);
    assert!(!variables.contains_key("CARGO_MANIFEST_DIR"), "nothing else is inherited");
    let mut fixture = Fixture::new("env > $OUT/env");
    fixture.request.mode = Mode::Real;
    fixture.run().await;
    let variables = fixture.environment();
    assert_eq!(variables["DRY_RUN"], "--no-dry-run");
    assert!(!variables.contains_key("EARLY_EXIT_COMPARE_SHA"));
}

#[tokio::test]
async fn lines_with_secrets_are_redacted() {
    let fixture = Fixture::new(
        "printf token-of-; printf 'the-endpoint\nfine\n'; echo \"got $PLAIN\"; echo $API_TOKEN; echo abcdef",
    );
    let outcome = fixture.run().await;
    let lines = output(&outcome);
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| **line == "fine").count(), 1);
    let text = lines.join("\n");
    for secret in ["the-endpoint", "very-secret", "hush", "abcdef"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test]
async fn an_exit_code_is_a_failure_with_the_end_of_the_output() {
    let outcome = Fixture::new("echo doing; echo wrong >&2; exit 3").run().await;
    assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::Failed, 1));
    let failed = fault(&outcome);
    assert_eq!((failed.text.as_str(), &failed.hint), ("the command of `old` ended with exit code 3", &None));
    assert!(failed.details.contains(&"wrong".to_owned()), "{:?}", failed.details);
    let hint = fault(&Fixture::new("exit 4").run().await).hint.clone();
    assert!(hint.is_some_and(|hint| hint.contains("number of failed shards")));
    let outcome = Fixture::new("kill -9 $$").run().await;
    assert_eq!(outcome.ended, RunEnd::Transient, "a later run may succeed");
    assert!(fault(&outcome).text.contains("was killed"));
    let mut fixture = Fixture::new("");
    fixture.command.command = vec!["/no/such/command".to_owned()];
    assert!(fault(&fixture.run().await).text.contains("cannot be started: No such file"));
    let script = fixture.scratch.write("job", "#!/no/such/python3 -u\nprint()\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    fixture.command.command = vec![script.display().to_string()];
    let text = fault(&fixture.run().await).text.clone();
    assert!(
        text.ends_with(
            "cannot be started: the interpreter `/no/such/python3`, which its `#!` line names, does not exist"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_interrupted() {
    let mut fixture = Fixture::new("trap 'echo > $OUT/saved; exit' INT; echo; while :; do sleep 0.01; done");
    // In a background job of a shell, `SIGINT` is ignored, and a shell does not trap it.
    fixture.command.command.splice(0..0, ["env", "--default-signal=INT"].map(str::to_owned));
    fixture.command.deadline = Duration::from_secs(1);
    let outcome = fixture.run().await;
    assert_eq!(outcome.ended, RunEnd::Transient);
    assert_eq!(fault(&outcome).text, "the command of `old` took longer than 1 s");
    assert!(fixture.scratch.path().join("saved").exists());
}

#[tokio::test]
async fn a_forced_shutdown_ends_the_command() {
    for (mode, abandoned) in [(Mode::DryRun, 0), (Mode::Real, 1)] {
        let mut fixture = Fixture::new("echo > $OUT/began; while :; do sleep 0.01; done");
        let (stopper, stop) = ShutdownSignal::pair();
        (fixture.request.mode, fixture.request.shutdown) = (mode, stop);
        let began = fixture.scratch.path().join("began");
        let force = async {
            while !began.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(stopper.longest_shutdown_timeout() > AMPLE);
            stopper.request_by(TerminationSignal::Interrupt);
            stopper.force();
        };
        let (outcome, ()) = tokio::join!(fixture.run(), force);
        assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::Interrupted, 130));
        assert_eq!(stopper.abandoned().len(), abandoned, "{mode:?}");
    }
}
