//! Recording and replaying the inputs of plans, on a test integration.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::replay::{
    Fingerprints, InputDifference, InputRecorder, PlanInputs, PlannedRun, RecordedInputs, Recording,
    RecordingSink, ReplayData, ShardInputs, replay,
};
use qontract_runtime::{
    ApplyResult, BundleReader, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf,
    DesiredItem, DesiredState, Fault, FieldChange, FieldDiff, Integration, IntegrationMeta, ObjectKey,
    Observed, Options, Plan, QueryPolicy, ReadContext, RunOutcome, RunRequest, Scope, StagedIntegration,
    WriteContext, run,
};
use serde::Deserialize as _;
use serde_json::Value;
use support::fixture::{self, DeclaredBox, ShelvesQuery, Stock};

/// The secret that every shard reads.
const SECRET: &str = "a-secret-of-the-shelves-4711";

/// Whether the recorded inputs give the plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inputs {
    Complete,
    WithoutContent,
}

/// Puts a box on each shelf, with its content and what is there in the diff.
struct Boxes {
    meta: IntegrationMeta,
    /// The content of every box in the target.
    live: String,
    inputs: Inputs,
}

fn scope(shelf: &str) -> Scope {
    Scope::new([("shelf", shelf)])
}

impl StagedIntegration for Boxes {
    type Common = ();
    type Target = String;
    type State = Vec<DeclaredBox>;
    type Desired = String;
    type Current = String;
    type Action = ();

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        fixture::declared(data)
    }

    async fn resolve(
        &self,
        read: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
    ) -> Result<Vec<DesiredItem<String>>, Fault> {
        read.secrets.record(SECRET);
        let item = |declared: &DeclaredBox| DesiredItem {
            object: ObjectKey {
                scope: scope(&view.shard.target),
                kind: "Box".to_owned(),
                name: declared.name.clone(),
            },
            place: None,
            state: DesiredState::Present(declared.content.clone()),
        };
        Ok(view.shard.state.iter().map(item).collect())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
        _: &[DesiredItem<String>],
    ) -> Result<CurrentState<String>, Fault> {
        Ok(BTreeMap::from([(scope(&view.shard.target), Observed::Known(vec![self.live.clone()]))]))
    }

    fn plan(&self, desired: &[DesiredItem<String>], current: &CurrentState<String>) -> Plan<()> {
        let mut plan = Plan::default();
        for want in desired {
            let (DesiredState::Present(content), Some(Observed::Known(live))) =
                (&want.state, current.get(&want.object.scope))
            else {
                continue;
            };
            let field = |live: &String| FieldDiff {
                change: FieldChange::Changed,
                path: "content".to_owned(),
                before: Some(live.as_str().into()),
                after: Some(content.as_str().into()),
            };
            let diff: Vec<FieldDiff> = live.iter().filter(|live| *live != content).map(field).collect();
            if !diff.is_empty() {
                let change = Change::new(ChangeKind::Change, want.object.clone(), "fill").with_diff(diff);
                plan.add_step(change, ());
            }
        }
        plan
    }

    fn record_inputs(
        &self,
        desired: &[DesiredItem<String>],
        current: &CurrentState<String>,
        _: &Fingerprints,
    ) -> Option<Value> {
        let inputs = RecordedInputs::new(
            desired,
            current,
            |_, content| if self.inputs == Inputs::Complete { content.clone().into() } else { "".into() },
            |_, live| live.clone().into(),
        );
        serde_json::to_value(inputs).ok()
    }

    fn restore_inputs(&self, recorded: &Value) -> Option<PlanInputs<String, String>> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        RecordedInputs::deserialize(recorded).ok()?.restore(text, text)
    }

    async fn apply(&self, _: &WriteContext<'_>, (): &()) -> Result<ApplyResult, Fault> {
        Ok(ApplyResult::Done)
    }
}

#[derive(Default)]
struct Sink(Mutex<Vec<Recording>>);

impl RecordingSink for Sink {
    fn planned(&self, run: PlannedRun<'_>) {
        self.0.lock().unwrap().push(run.recording);
    }
}

fn integration(live: &str, inputs: Inputs) -> Integration {
    let meta = IntegrationMeta::new("shelves", "boxes").query::<ShelvesQuery>();
    Integration::staged(Boxes { meta, live: live.to_owned(), inputs })
}

fn stock(content: &str) -> Stock {
    let declared = |name: &str| DeclaredBox {
        name: name.to_owned(),
        content: content.to_owned(),
        delete: None,
        secret: None,
    };
    ["a", "b"].map(|shelf| (shelf.to_owned(), vec![declared("one")])).into()
}

/// Runs the integration; returns the outcome and the recording.
fn recorded(
    integration: &Integration,
    head: &Arc<dyn BundleReader>,
    max_bytes: usize,
) -> (RunOutcome, Recording) {
    let today = jiff::civil::date(2026, 1, 1);
    let mut request =
        RunRequest::new("run", Mode::DryRun, Arc::clone(head), today, ProtectedKinds::default());
    request.validate_schemas = false;
    let sink = Arc::new(Sink::default());
    let fingerprints = Arc::new(Fingerprints::new(&[1; 32]));
    request.inputs = Some(InputRecorder::new(fingerprints, max_bytes, Arc::clone(&sink) as _));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let outcome = runtime.block_on(run(integration, &request));
    let recording = sink.0.lock().unwrap().pop().unwrap();
    (outcome, recording)
}

fn replayed(
    integration: &Integration,
    recording: &Recording,
    head: &Arc<dyn BundleReader>,
) -> Result<String, InputDifference> {
    let head = Data::new(Arc::clone(head), QueryPolicy::of(integration.meta()));
    let data = ReplayData { head: &head, base: None, options: &Options::default() };
    replay(integration, recording, Some(data)).map(|digest| digest.to_string())
}

#[test]
fn recorded_inputs_give_the_plan_of_the_run_whatever_the_target_has_now() {
    let head = fixture::source(&stock("new"));
    let (outcome, recording) = recorded(&integration("old", Inputs::Complete), &head, 1 << 20);
    let digest = outcome.plan_digest().unwrap().to_string();
    assert_eq!(recording.plan_digest.to_string(), digest);
    let now = integration("changed since", Inputs::Complete);
    assert_eq!(replayed(&now, &recording, &head), Ok(digest));
}

#[test]
fn a_secret_in_the_target_is_a_fingerprint_in_the_recording() {
    let head = fixture::source(&stock("new"));
    let (outcome, recording) =
        recorded(&integration(&format!("with {SECRET} in it"), Inputs::Complete), &head, 1 << 20);
    let text = serde_json::to_string(&recording).unwrap();
    assert!(!text.contains(SECRET) && text.contains("qontract-fingerprint-"), "{text}");
    let digest = outcome.plan_digest().unwrap().to_string();
    assert_eq!(replayed(&integration("", Inputs::Complete), &recording, &head), Ok(digest));
}

#[test]
fn inputs_that_do_not_give_the_plan_are_not_stored() {
    let head = fixture::source(&stock("new"));
    let of = |inputs, max_bytes| recorded(&integration("old", inputs), &head, max_bytes).1;
    let check = |recording: &Recording, expect: &str| {
        let Err(InputDifference::NotRecorded { why, .. }) =
            replayed(&integration("old", Inputs::Complete), recording, &head)
        else {
            panic!("not recorded")
        };
        assert_eq!(why, expect);
    };
    let incomplete = of(Inputs::WithoutContent, 1 << 20);
    assert!(incomplete.shards.iter().all(|shard| matches!(shard.inputs, ShardInputs::Missing(_))));
    check(&incomplete, "the plan depends on values that are not stored, such as secrets");
    check(&of(Inputs::Complete, 10), "they are too large");
}

#[test]
fn the_first_difference_is_named() {
    let head = fixture::source(&stock("new"));
    let boxes = integration("old", Inputs::Complete);
    let (_, recording) = recorded(&boxes, &head, 1 << 20);
    let message = |recording: &Recording, head: &Arc<dyn BundleReader>| {
        replayed(&boxes, recording, head).unwrap_err().to_string()
    };
    let other = fixture::source(&stock("newer"));
    assert_eq!(message(&recording, &other), "the data declares another state for the shard `shelf=a`");
    let fewer = fixture::source(&Stock::from([("b".to_owned(), stock("new").remove("b").unwrap())]));
    assert_eq!(message(&recording, &fewer), "the data of head does not declare the shard `shelf=a`");
    let edited = |edit: &dyn Fn(&mut Recording)| {
        let mut recording = recording.clone();
        edit(&mut recording);
        message(&recording, &head)
    };
    let unreadable = edited(&|recording| recording.shards[1].inputs = ShardInputs::Recorded("{".to_owned()));
    assert_eq!(unreadable, "the recorded inputs of the shard `shelf=b` cannot be read");
    let changed = edited(&|recording| {
        let ShardInputs::Recorded(inputs) = &mut recording.shards[0].inputs else { panic!("recorded") };
        *inputs = inputs.replace("old", "older");
    });
    assert!(
        changed.starts_with("the same inputs result in a different plan for the shard `shelf=a`: "),
        "{changed}"
    );
    let base = edited(&|recording| {
        recording.shards[0].side = qontract_runtime::replay::DeclaringSide::Base;
    });
    assert_eq!(base, "the data of base cannot be declared: the recording names no base");
}
