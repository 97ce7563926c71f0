//! Approvals through whole runs: bound to a plan, for a single use, by consent, by observation, and with the
//! integration's own instructions.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_runtime::guard::{Date, MemoryLedger, ProtectedKinds, RemovalConsent};
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, ApprovalForm, ApprovedObject, Change, ChangeKind, CurrentState, Data, DeclaredShardView,
    DeclaredStateOf, DesiredItem, Fault, Function, FunctionContext, FunctionState, HeldPlanChange,
    Integration, IntegrationMeta, ObjectKey, Observed, Options, Plan, ReadContext, RunEnd, RunOutcome,
    RunRequest, Scope, ShardKey, StagedIntegration, WriteContext, run,
};
use serde_json::{Value, json};
use support::fixture::{
    DeclaredBox, Faults, Shelves, ShelvesIntegration, Stock, StoredBox, source, source_with,
};

const TODAY: Date = Date::constant(2026, 3, 31);

fn perform(integration: &Integration, request: &RunRequest) -> RunOutcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(integration, request))
}

/// A shelf `a` whose boxes always need an approval to be removed, and the processes that reconcile it.
struct Fixture {
    world: Arc<Mutex<Shelves>>,
    ledger: Arc<MemoryLedger>,
}

fn stored() -> StoredBox {
    StoredBox { content: "content".to_owned(), version: 1, ours: true }
}

impl Fixture {
    fn new(boxes: &[&str]) -> Self {
        let boxes: BTreeMap<String, StoredBox> =
            boxes.iter().map(|name| ((*name).to_owned(), stored())).collect();
        let world = Shelves::new([("a".to_owned(), boxes)].into(), 1);
        Self { world: Arc::new(Mutex::new(world)), ledger: Arc::default() }
    }

    /// A run on data that declares these boxes and has this approval.
    fn run(&self, name: &str, mode: Mode, boxes: &[&str], approval: Option<&Value>) -> RunOutcome {
        let declared = |name: &&str| DeclaredBox {
            name: (*name).to_owned(),
            content: "content".to_owned(),
            delete: None,
            secret: None,
        };
        let stock: Stock = [("a".to_owned(), boxes.iter().map(declared).collect())].into();
        let mut data = json!({"/integration.yml": {"$schema": "/integration", "path": "/integration.yml",
            "name": "shelves", "schemas": ["/integration", "/shelf"]}});
        if let Some(approval) = approval {
            data["/approval.yml"] = approval.clone();
        }
        let mut request =
            RunRequest::new(name, mode, source_with(&stock, data), TODAY, ProtectedKinds::new(["Box"]));
        request.ledger = Arc::clone(&self.ledger) as _;
        self.world.lock().unwrap().crash = Arc::default();
        perform(&Integration::staged(ShelvesIntegration::new(Arc::clone(&self.world))), &request)
    }

    fn boxes(&self) -> Vec<String> {
        self.world.lock().unwrap().boxes["a"].keys().cloned().collect()
    }
}

/// An approval of the removal of box `old`.
fn approval(fields: &Value) -> Value {
    let mut approval = json!({"$schema": "/approval", "path": "/approval.yml", "integration": "shelves",
        "expiration": "2026-12-31", "removals": [{"target": "shelf=a", "kind": "Box", "name": "old"}]});
    for (name, value) in fields.as_object().unwrap() {
        if name == "plan" {
            approval["removals"][0][name] = value.clone();
        } else {
            approval[name] = value.clone();
        }
    }
    approval
}

fn held(outcome: &RunOutcome) -> Vec<&HeldPlanChange> {
    outcome.shards.values().flat_map(|shard| &shard.held).collect()
}

#[test]
fn an_approval_that_is_bound_to_a_plan_is_void_when_the_plan_changes() {
    let fixture = Fixture::new(&["keep", "old"]);
    let outcome = fixture.run("r1", Mode::DryRun, &["keep"], None);
    let plan = held(&outcome)[0].plan.clone().unwrap();
    assert_eq!(Some(&plan), outcome.shards.values().next().unwrap().plan_digest.as_ref());
    let bound = approval(&json!({"plan": plan.as_str()}));
    // The data changes in the meantime: the plan is another one, and the approval does not cover it.
    let outcome = fixture.run("r2", Mode::Real, &["keep", "new"], Some(&bound));
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Held, 1));
    let [one] = held(&outcome)[..] else { panic!("one: {outcome:?}") };
    assert!(
        one.why.contains("approval `data/approval.yml` is for another plan")
            && one.why.contains(plan.as_str()),
        "{}",
        one.why
    );
    assert_eq!(fixture.boxes(), ["keep", "new", "old"]);
    // What the run left is the plan that was approved.
    assert_eq!(one.plan.as_ref(), Some(&plan));
    let outcome = fixture.run("r3", Mode::Real, &["keep", "new"], Some(&bound));
    assert_eq!((outcome.ended, fixture.boxes()), (RunEnd::Ok, vec!["keep".to_owned(), "new".into()]));
    let outcome = fixture.run("r4", Mode::Real, &["keep", "new"], Some(&bound));
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 0));
}

#[test]
fn another_digest_approves_nothing() {
    let fixture = Fixture::new(&["keep", "old"]);
    for plan in ["", "0", &"0".repeat(64)] {
        let outcome = fixture.run("r1", Mode::Real, &["keep"], Some(&approval(&json!({"plan": plan}))));
        assert_eq!((outcome.ended, fixture.boxes().len()), (RunEnd::Held, 2), "{plan}");
    }
}

#[test]
fn an_approval_for_a_single_use_does_not_approve_an_object_that_was_created_again() {
    let fixture = Fixture::new(&["keep", "old"]);
    let once = approval(&json!({"once": true}));
    assert_eq!(fixture.run("r1", Mode::Real, &["keep"], Some(&once)).ended, RunEnd::Ok);
    assert_eq!(fixture.boxes(), ["keep"]);
    assert_eq!(fixture.run("r2", Mode::Real, &["keep"], Some(&once)).ended, RunEnd::Ok, "it is gone");
    fixture.world.lock().unwrap().boxes.get_mut("a").unwrap().insert("old".to_owned(), stored());
    let outcome = fixture.run("r3", Mode::Real, &["keep"], Some(&once));
    assert_eq!((outcome.ended, fixture.boxes().len()), (RunEnd::Held, 2));
    assert!(held(&outcome)[0].why.contains("is for a single use, and run r1 used it"), "{outcome:?}");
    // An approval without `once` approves it as often as needed.
    let usual = approval(&json!({}));
    assert_eq!(fixture.run("r4", Mode::Real, &["keep"], Some(&usual)).ended, RunEnd::Ok);
    assert_eq!(fixture.boxes(), ["keep"]);
}

#[test]
fn a_removal_that_failed_may_be_repeated_with_the_same_single_use() {
    let fixture = Fixture::new(&["keep", "old"]);
    let once = approval(&json!({"once": true}));
    fixture.world.lock().unwrap().faults = Faults { failed_write: 100, ..Faults::default() };
    assert_eq!(fixture.run("r1", Mode::Real, &["keep"], Some(&once)).ended, RunEnd::Transient);
    fixture.world.lock().unwrap().faults = Faults::default();
    assert_eq!(fixture.run("r2", Mode::Real, &["keep"], Some(&once)).ended, RunEnd::Ok);
    assert_eq!(fixture.boxes(), ["keep"]);
}

#[test]
fn a_dry_run_uses_no_approval() {
    let fixture = Fixture::new(&["keep", "old"]);
    let once = approval(&json!({"once": true}));
    for run in ["r1", "r2"] {
        assert_eq!(fixture.run(run, Mode::DryRun, &["keep"], Some(&once)).ended, RunEnd::Ok);
    }
    assert_eq!(fixture.run("r3", Mode::Real, &["keep"], Some(&once)).ended, RunEnd::Ok);
    assert_eq!(fixture.boxes(), ["keep"]);
}

/// Twenty records of a zone, none of which is declared any more.
#[derive(Clone)]
struct Zone {
    about: IntegrationMeta,
    consent: RemovalConsent,
    /// The records whose removal it observed to be approved.
    approved: Vec<&'static str>,
    /// Its instructions.
    instructions: Option<&'static str>,
}

impl Zone {
    fn new(consent: RemovalConsent) -> Self {
        let about = IntegrationMeta::new("zone", "Removes records");
        Self { about, consent, approved: Vec::new(), instructions: None }
    }

    fn record(name: &str) -> ObjectKey {
        let kind = if name == "r19" { "Zone" } else { "Record" };
        ObjectKey { scope: Scope::new([("zone", "z")]), kind: kind.to_owned(), name: name.to_owned() }
    }

    fn run(self) -> RunOutcome {
        let protected = ProtectedKinds::new(["Zone"]);
        let mut request = RunRequest::new("run", Mode::Real, source(&Stock::new()), TODAY, protected);
        request.validate_schemas = false;
        perform(&Integration::staged(self), &request)
    }
}

type View<'a> = DeclaredShardView<'a, (), (), ()>;

impl StagedIntegration for Zone {
    type Common = ();
    type Target = ();
    type State = ();
    type Desired = ();
    type Current = String;
    type Action = ();

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        let shard = Shard::new((), (), None).consent_to_removals(self.consent.clone());
        declared.add(ShardKey::new([("zone", "z")]), shard);
        Ok(declared)
    }

    async fn resolve(&self, _: &ReadContext, _: View<'_>) -> Result<Vec<DesiredItem<()>>, Fault> {
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        _: View<'_>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<String>, Fault> {
        let records = (0..20).map(|number| format!("r{number}")).collect();
        Ok(BTreeMap::from([(Scope::new([("zone", "z")]), Observed::Known(records))]))
    }

    fn approved_removals(&self, _: &CurrentState<String>) -> Vec<ApprovedObject> {
        let objects = self.approved.iter().map(|name| Self::record(name));
        objects.map(|object| ApprovedObject { object, place: None }).collect()
    }

    fn approval_text(&self, held: &[&Change], today: Date) -> Option<String> {
        self.instructions.map(|text| format!("{text} for {} changes on {today}", held.len()))
    }

    fn plan(&self, _: &[DesiredItem<()>], current: &CurrentState<String>) -> Plan<()> {
        let mut plan = Plan::default();
        for observed in current.values() {
            let Observed::Known(records) = observed else { continue };
            for name in records {
                plan.add_step(Change::new(ChangeKind::Remove, Self::record(name), "remove record"), ());
            }
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, (): &()) -> Result<ApplyResult, Fault> {
        Ok(ApplyResult::Done)
    }
}

#[test]
fn a_declaration_can_approve_removals_as_a_whole() {
    let check = |consent: RemovalConsent, applied: usize, notes: &[&str]| {
        let outcome = Zone::new(consent.clone()).run();
        assert_eq!((outcome.applied(), held(&outcome).len()), (applied, 20 - applied), "{consent:?}");
        let shard = outcome.shards.values().next().unwrap();
        assert_eq!((&shard.notes[..], shard.removed), (notes.map_owned().as_slice(), 0));
    };
    check(RemovalConsent::Named, 0, &[]);
    check(RemovalConsent::Any, 19, &["19 removals approved as a whole by the declaration of the shard"]);
    check(
        RemovalConsent::kinds(["Record", "Zone"]),
        20,
        &["20 removals approved as a whole by the declaration of the shard"],
    );
    check(
        RemovalConsent::kinds(["Zone"]),
        1,
        &["1 removal approved as a whole by the declaration of the shard"],
    );
}

/// Copies texts.
trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|text| (*text).to_owned()).collect()
    }
}

#[test]
fn a_removal_can_be_approved_by_what_was_observed() {
    let zone = Zone { approved: vec!["r0", "r19"], ..Zone::new(RemovalConsent::Named) };
    let outcome = zone.run();
    assert_eq!((outcome.applied(), held(&outcome).len()), (2, 18), "by name, also of a protected kind");
}

#[test]
fn an_integration_can_have_its_own_instructions() {
    let outcome = Zone { instructions: Some("set `delete`"), ..Zone::new(RemovalConsent::Any) }.run();
    assert_eq!(outcome.approval.as_deref(), Some("set `delete` for 1 changes on 2026-03-31"));
    assert_eq!((outcome.ended, outcome.approval_form), (RunEnd::Held, ApprovalForm::Own));
    let outcome = Zone::new(RemovalConsent::Any).run();
    assert!(outcome.approval.unwrap().starts_with("$schema: /app-interface/removal-approval-1.yml"));
    assert_eq!(outcome.approval_form, ApprovalForm::Datafile);
    let all = RemovalConsent::kinds(["Record", "Zone"]);
    let outcome = Zone { instructions: Some("set `delete`"), ..Zone::new(all) }.run();
    assert_eq!((outcome.ended, outcome.approval), (RunEnd::Ok, None), "nothing is held");
}

/// A function that removes box `old`.
struct Remover(IntegrationMeta);

impl Function for Remover {
    fn meta(&self) -> &IntegrationMeta {
        &self.0
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        let (scope, kind) = (Scope::new([("shelf", "a")]), "Box".to_owned());
        let object = ObjectKey { scope, kind, name: "old".to_owned() };
        let change = Change::new(ChangeKind::Remove, object, "remove box");
        cx.apply(change, |_| Box::pin(std::future::ready(Ok(())))).await
    }
}

#[test]
fn a_function_has_a_plan_for_each_change() {
    let function = Integration::function(Remover(IntegrationMeta::new("shelves", "Removes a box")));
    let run = |approval: Option<Value>| {
        let data = approval.map_or_else(|| json!({}), |approval| json!({"/approval.yml": approval}));
        let head = source_with(&Stock::new(), data);
        let mut request = RunRequest::new("run", Mode::Real, head, TODAY, ProtectedKinds::new(["Box"]));
        request.validate_schemas = false;
        perform(&function, &request)
    };
    let outcome = run(None);
    let plan = held(&outcome)[0].plan.clone().unwrap();
    assert_eq!(run(Some(approval(&json!({"plan": plan.as_str()})))).applied(), 1);
    let outcome = run(Some(approval(&json!({"plan": "another"}))));
    assert_eq!((outcome.applied(), outcome.ended), (0, RunEnd::Held));
    assert!(held(&outcome)[0].why.contains("is for another plan (another)"), "{outcome:?}");
}
