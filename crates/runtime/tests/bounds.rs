//! Runs that may write only within bounds.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use qontract_access::{Mode, WriteBound, WriteBounds};
use qontract_runtime::guard::{Date, ProtectedKinds};
use qontract_runtime::process::{ProcessIntegration, Program};
use qontract_runtime::{
    Change, ChangeKind, Data, Fault, Function, FunctionContext, FunctionState, Integration, IntegrationMeta,
    LineResolvers, ObjectKey, Options, RunEnd, RunOutcome, RunRecord, RunRequest, RunTiming, Scope, run,
};
use qontract_testkit::Scratch;
use support::fixture::{Stock, source};

/// The bounds of the permits that writes got.
type RecordedBounds = Arc<Mutex<Vec<Option<String>>>>;

/// Makes one change, and notes the bounds of its permit.
struct OneChange {
    meta: IntegrationMeta,
    seen: RecordedBounds,
}

impl Function for OneChange {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        let object =
            ObjectKey { scope: Scope::new([("a", "b")]), kind: "Note".to_owned(), name: "n".to_owned() };
        let seen = Arc::clone(&self.seen);
        cx.apply(Change::new(ChangeKind::Add, object, "add note"), move |write| {
            seen.lock().unwrap().push(write.permit.bounds().map(ToString::to_string));
            async { Ok(()) }.boxed()
        })
        .await
    }
}

fn bounds() -> WriteBounds {
    WriteBounds::new([WriteBound::new("https://forge.example.com", &["PUT", "POST"], "/mr/12/").unwrap()])
}

const TEXT: &str = "writes only `POST,PUT https://forge.example.com/mr/12/`";

async fn perform(integration: &Integration, mode: Mode, bounds: Option<WriteBounds>) -> RunOutcome {
    let today = Date::constant(2026, 1, 1);
    let request = RunRequest {
        validate_schemas: false,
        write_bounds: bounds.map(Arc::new),
        ..RunRequest::new("r1", mode, source(&Stock::new()), today, ProtectedKinds::default())
    };
    run(integration, &request).await
}

#[tokio::test]
async fn the_permit_of_a_bounded_run_has_its_bounds_and_so_has_the_record() {
    let seen = RecordedBounds::default();
    let meta = IntegrationMeta::new("shelves", "Adds a note");
    let integration = Integration::function(OneChange { meta, seen: Arc::clone(&seen) });
    let outcome = perform(&integration, Mode::Real, Some(bounds())).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1), "{outcome:?}");
    assert_eq!(*seen.lock().unwrap(), [Some(bounds().to_string())]);
    let clock = RunTiming { began: jiff::Timestamp::UNIX_EPOCH, milliseconds: 0 };
    let record = RunRecord::new(&outcome, clock, LineResolvers::uniform(&|_| String::new()));
    assert_eq!(record.decisions[0].text, TEXT);

    let outcome = perform(&integration, Mode::Real, None).await;
    assert_eq!(seen.lock().unwrap()[1..], [None]);
    assert!(outcome.decisions.iter().all(|decision| !decision.text.starts_with("writes only")));
    // Bounds never add a permit.
    let outcome = perform(&integration, Mode::DryRun, Some(bounds())).await;
    assert_eq!((outcome.applied(), seen.lock().unwrap().len()), (0, 2));
    assert_eq!(outcome.decisions[0].text, TEXT);
}

/// A program with one step, which notes that it applied it.
const PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "shelves", "description": "tries"}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan) echo '{"scopes": [{"scope": [["app", "a"]], "count": 0}], "groups": [{"steps": [{"action": 7,
    "changes": [{"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "thing", "name": "t"}, "what": "create thing"}]}]}]}' ;;
apply) echo applied > $OUT/applied; echo '{}' ;;
esac
"#;

#[tokio::test]
async fn a_program_whose_writes_cannot_be_judged_does_not_apply() {
    let scratch = Scratch::new();
    scratch.write("program.sh", PROGRAM);
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let integration = || {
        let program = Program {
            command: vec!["sh".to_owned(), path("program.sh")],
            environment: [("OUT".to_owned(), path(""))].into(),
            deadline: std::time::Duration::from_mins(1),
            ..Program::default()
        };
        Integration::process(ProcessIntegration::describe("shelves", program).unwrap())
    };
    let outcome = perform(&integration(), Mode::Real, Some(bounds())).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Failed, 0), "{outcome:?}");
    let fault = outcome.all_faults().next().unwrap().to_string();
    assert!(fault.contains("a program is not started: the write permit of this run allows"), "{fault}");
    assert!(!scratch.path().join("applied").exists());
    let outcome = perform(&integration(), Mode::Real, None).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1), "{outcome:?}");
    assert!(scratch.path().join("applied").exists());
}
