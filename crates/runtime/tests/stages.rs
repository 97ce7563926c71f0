//! Stages of a plan, cached reads, and rehearsals, on a test integration.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qontract_access::Mode;
use qontract_runtime::audit::{Audit, WriteRecord};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    Fault, Integration, IntegrationMeta, ObjectKey, Observed, Options, Plan, PlanStage, ReadContext,
    RehearsalResult, RunEnd, RunOutcome, RunRequest, Scope, ShardKey, StagedIntegration, WriteContext, run,
};
use support::fixture::{Stock, source};

type Log = Arc<Mutex<Vec<String>>>;

/// Lays bricks in stages, for several walls that one list request reads.
struct BrickLayer {
    about: IntegrationMeta,
    log: Log,
    bricks: &'static [(u32, &'static str)],
    shards: usize,
}

fn scope() -> Scope {
    Scope::new([("yard", "y")])
}

impl StagedIntegration for BrickLayer {
    type Common = ();
    type Target = ();
    type State = usize;
    type Desired = ();
    type Current = ();
    type Action = String;

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        for wall in 0..self.shards {
            declared.add(ShardKey::new([("wall", wall.to_string().as_str())]), Shard::new((), wall, None));
        }
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        _: DeclaredShardView<'_, (), (), usize>,
    ) -> Result<Vec<DesiredItem<()>>, Fault> {
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        read: &ReadContext,
        _: DeclaredShardView<'_, (), (), usize>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<()>, Fault> {
        let list = async { self.log.lock().unwrap().push("list".to_owned()) };
        read.cache.get_or_read("bricks", list).await;
        Ok(BTreeMap::from([(scope(), Observed::Known(Vec::new()))]))
    }

    fn plan(&self, _: &[DesiredItem<()>], _: &CurrentState<()>) -> Plan<String> {
        let mut plan = Plan::default();
        for (stage, name) in self.bricks {
            let object = ObjectKey { scope: scope(), kind: "Brick".to_owned(), name: (*name).to_owned() };
            plan.add_step_in(
                PlanStage::Write(*stage),
                Change::new(ChangeKind::Add, object, "lay brick"),
                (*name).to_owned(),
            );
        }
        plan
    }

    async fn rehearse(&self, _: &ReadContext, action: &String) -> Result<RehearsalResult, Fault> {
        Ok(match action.as_str() {
            "crooked" => RehearsalResult::Refused(Fault::author("it would not hold")),
            "roof" => RehearsalResult::NotValidated("the wall is not there yet".to_owned()),
            "secret" => RehearsalResult::Skipped,
            _ => RehearsalResult::Accepted,
        })
    }

    async fn apply(&self, _: &WriteContext<'_>, action: &String) -> Result<ApplyResult, Fault> {
        self.log.lock().unwrap().push(format!("+{action}"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.log.lock().unwrap().push(format!("-{action}"));
        if action == "fails" { Err(Fault::remote("it rains")) } else { Ok(ApplyResult::Done) }
    }
}

/// Appends audit records to the log of the integration's own actions.
#[derive(Debug)]
struct AuditLog(Log);

impl Audit for AuditLog {
    fn record_write(&self, written: &WriteRecord<'_>) {
        let names: Vec<&str> = written.changes.iter().map(|change| change.object.name.as_str()).collect();
        let failed = if written.fault.is_some() { "!" } else { "" };
        self.0.lock().unwrap().push(format!("={}{failed}", names.join(",")));
    }
}

fn play(bricks: &'static [(u32, &'static str)], shards: usize, mode: Mode) -> (String, RunOutcome) {
    let (log, about) = (Log::default(), IntegrationMeta::new("walls", ""));
    let integration = Integration::staged(BrickLayer { about, log: Arc::clone(&log), bricks, shards });
    let mut request = RunRequest::new(
        "run",
        mode,
        source(&Stock::new()),
        jiff::civil::date(2026, 1, 1),
        ProtectedKinds::default(),
    );
    request.validate_schemas = false;
    request.audit = Arc::new(AuditLog(Arc::clone(&log)));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let outcome = runtime.block_on(run(&integration, &request));
    let log = log.lock().unwrap().join(" ");
    (log, outcome)
}

#[test]
fn groups_of_one_stage_run_concurrently_and_stages_in_sequence() {
    let (log, outcome) = play(&[(2, "roof"), (1, "left"), (1, "right")], 1, Mode::Real);
    assert_eq!(log, "list +left +right -left =left -right =right +roof -roof =roof");
    assert_eq!(outcome.applied(), 3);
}

#[test]
fn a_failure_in_one_stage_does_not_prevent_the_next_one() {
    let (log, outcome) = play(&[(1, "fails"), (2, "roof")], 1, Mode::Real);
    assert_eq!((log.as_str(), outcome.applied()), ("list +fails -fails =fails! +roof -roof =roof", 1));
}

#[test]
fn a_list_that_all_shards_need_is_read_once_per_round() {
    let (log, outcome) = play(&[], 7, Mode::DryRun);
    assert_eq!((log.as_str(), outcome.shards.len()), ("list", 7));
}

#[test]
fn a_dry_run_rehearses_and_applies_nothing() {
    let bricks = &[(0, "straight"), (0, "crooked"), (0, "roof"), (0, "secret")];
    let (log, outcome) = play(bricks, 1, Mode::DryRun);
    let shard = outcome.shards.values().next().unwrap();
    assert_eq!(log, "list");
    assert_eq!(shard.notes, ["not validated: + lay brick `roof` (yard=y): the wall is not there yet"]);
    let faults: Vec<&str> = shard.faults.iter().map(|fault| fault.text.as_str()).collect();
    assert_eq!(faults, ["+ lay brick `crooked` (yard=y): it would not hold"]);
    assert_eq!((outcome.ended, shard.changes.len()), (RunEnd::Failed, 4));
}

#[test]
fn a_real_run_does_not_rehearse() {
    let (_, outcome) = play(&[(0, "crooked")], 1, Mode::Real);
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 1));
}
