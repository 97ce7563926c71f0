//! Secrets in a run: which ones are read, and what is reported of them.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_runtime::audit::{Audit, WriteRecord};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::{
    ApplyResult, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    DesiredState, DiffEntry, Fault, HeldPlanChange, Hold, Integration, IntegrationMeta, LineResolvers,
    ObjectKey, Observed, Options, Plan, ReadContext, RehearsalResult, RunEnd, RunOutcome, RunRecord,
    RunRequest, Scope, SecretLookup, ShardState, SkipKind, SkipReason, StagedIntegration, Wait, WriteContext,
    run,
};
use support::fixture::{DeclaredBox, ShelvesQuery, Stock, source};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 3, 31);

/// The value of every secret in these tests.
const SECRET: &str = "hunter22-hunter22";

/// Boxes whose content is the path of a secret, on shelves. Everything that it reports quotes the secret.
struct Vaults {
    about: IntegrationMeta,
    /// The secrets that were read.
    read: Arc<Mutex<Vec<String>>>,
    /// Number of times that `declare` fails.
    failures: Arc<AtomicUsize>,
    /// Whether applying fails.
    fails: bool,
}

fn lookup(content: &str) -> SecretLookup {
    SecretLookup::all(content, None)
}

impl StagedIntegration for Vaults {
    type Common = ();
    type Target = String;
    type State = Vec<DeclaredBox>;
    type Desired = ();
    type Current = ();
    type Action = ();

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let failing =
            self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if failing.is_ok() {
            return Err(Fault::remote("not now"));
        }
        support::fixture::declared(data)
    }

    fn secret_lookups(
        &self,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
    ) -> BTreeSet<SecretLookup> {
        view.shard.state.iter().map(|declared| lookup(&declared.content)).collect()
    }

    fn public_texts(&self, view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>) -> Vec<String> {
        let names = view.shard.state.iter().map(|declared| declared.name.as_str());
        // As if a template had rendered it.
        names.filter(|name| *name == "guess").map(|_| SECRET.to_owned()).collect()
    }

    async fn resolve(
        &self,
        read: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
    ) -> Result<Vec<DesiredItem<()>>, Fault> {
        let mut wants = Vec::new();
        for declared in &view.shard.state {
            let scope = Scope::new([("shelf", view.shard.target.as_str())]);
            let object = ObjectKey { scope, kind: "Box".to_owned(), name: declared.name.clone() };
            let wanted = match read.secrets.check(&lookup(&declared.content)) {
                Ok(()) => {
                    self.read.lock().unwrap().push(declared.content.clone());
                    read.secrets.record(SECRET);
                    DesiredState::Present(())
                }
                Err(fault) => DesiredState::Unresolved(fault),
            };
            wants.push(DesiredItem { object, place: None, state: wanted });
            if declared.name == "stops" {
                return Err(Fault::remote(format!("resolving {SECRET}")));
            }
        }
        Ok(wants)
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), String, Vec<DeclaredBox>>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<()>, Fault> {
        let shelf = view.shard.target.as_str();
        let unknown = Observed::Unknown(Fault::remote(format!("observing {SECRET}")));
        Ok(BTreeMap::from([
            (Scope::new([("shelf", shelf)]), Observed::Known(vec![(), ()])),
            (Scope::new([("shelf", shelf), ("other", "x")]), unknown),
        ]))
    }

    fn plan(&self, wanted: &[DesiredItem<()>], world: &CurrentState<()>) -> Plan<()> {
        let mut plan = Plan::default();
        let scope = world.keys().next().unwrap();
        let object =
            |name: &str| ObjectKey { scope: scope.clone(), kind: "Box".to_owned(), name: name.to_owned() };
        for want in wanted.iter().filter(|want| matches!(want.state, DesiredState::Present(()))) {
            let mut change = Change::new(ChangeKind::Add, want.object.clone(), "put")
                .with_diff(["2 fields".to_owned(), format!("line {SECRET}")]);
            change.diff_by_name = vec!["field `a`".into(), format!("field `{SECRET}`").into()];
            plan.add_step(change, ());
        }
        plan.add_step(Change::new(ChangeKind::Remove, object("unwanted"), "remove"), ());
        plan.waits.push(Wait { text: format!("waiting {SECRET}"), place: None });
        let change = Change::new(ChangeKind::Add, object("held"), format!("hold {SECRET}"));
        plan.held.push(HeldPlanChange {
            change,
            why: format!("because {SECRET}"),
            hold: Hold::Unresolved,
            plan: None,
            remedy: None,
        });
        plan.faults.push(Fault::remote(format!("planning {SECRET}")));
        plan
    }

    async fn rehearse(&self, _: &ReadContext, (): &()) -> Result<RehearsalResult, Fault> {
        Ok(RehearsalResult::NotValidated(format!("rehearsing {SECRET}")))
    }

    async fn apply(&self, _: &WriteContext<'_>, (): &()) -> Result<ApplyResult, Fault> {
        if self.fails { Err(Fault::remote(format!("applying {SECRET}"))) } else { Ok(ApplyResult::Done) }
    }
}

#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl Audit for Lines {
    fn record_write(&self, written: &WriteRecord<'_>) {
        self.0.lock().unwrap().push(format!("{written:?}"));
    }
}

struct Fixture {
    read: Arc<Mutex<Vec<String>>>,
    failures: Arc<AtomicUsize>,
    audit: Arc<Lines>,
    integration: Integration,
    request: RunRequest,
}

fn stock(lines: &[&str]) -> Stock {
    let declared = |word: &str| {
        let (name, content) = word.split_once('=').unwrap();
        DeclaredBox { name: name.to_owned(), content: content.to_owned(), delete: None, secret: None }
    };
    let shelf = |line: &&str| {
        let (shelf, boxes) = line.split_once(':').unwrap();
        (shelf.to_owned(), boxes.split_whitespace().map(declared).collect())
    };
    lines.iter().map(shelf).collect()
}

impl Fixture {
    fn new(mode: Mode, head: &[&str], fails: bool) -> Self {
        let (read, failures) = (Arc::default(), Arc::default());
        let about = IntegrationMeta::new("shelves", "boxes").query::<ShelvesQuery>();
        let vaults = Vaults { about, read: Arc::clone(&read), failures: Arc::clone(&failures), fails };
        let mut request =
            RunRequest::new("run", mode, source(&stock(head)), TODAY, ProtectedKinds::default());
        let audit = Arc::new(Lines::default());
        request.audit = Arc::clone(&audit) as Arc<dyn Audit>;
        Self { read, failures, audit, integration: Integration::staged(vaults), request }
    }

    fn check(base: &[&str], head: &[&str]) -> Self {
        let mut play = Self::new(Mode::DryRun, head, false);
        play.request.base = Some(source(&stock(base)));
        play
    }

    fn run(&self) -> RunOutcome {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(&self.integration, &self.request))
    }

    fn was_read(&self) -> Vec<String> {
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

fn unplanned(outcome: &RunOutcome) -> Vec<&str> {
    outcome.shards.values().flat_map(|shard| &shard.unplanned).map(|item| item.text.as_str()).collect()
}

#[test]
fn a_secret_that_only_head_names_is_not_read_in_a_check() {
    let mut play =
        Fixture::check(&["a: one=x/one", "b: two=x/two"], &["a: one=x/one new=x/two", "b: two=x/three"]);
    let outcome = play.run();
    // It does not matter that another shard of base names it.
    assert_eq!(play.was_read(), ["x/one"]);
    let elsewhere = "new for this shard (base names it only for other shards)";
    let expect = [
        format!("Box `new` (shelf=a): the secret `x/two` is {elsewhere}"),
        "Box `two` (shelf=b): the secret `x/three` is new in this change".to_owned(),
    ];
    let end = " and is not read before it is merged; no change to this object is shown; it is planned and applied after the merge";
    assert_eq!(unplanned(&outcome), expect.map(|start| start + end));
    // The rest is planned, and nothing is removed from a scope with an unresolved object.
    let shard = outcome.shards.values().next().unwrap();
    assert_eq!(shard.changes.iter().map(|change| change.object.name.as_str()).collect::<Vec<_>>(), ["one"]);
    let why: Vec<&str> = shard
        .held
        .iter()
        .filter(|held| held.change.kind == ChangeKind::Remove)
        .map(|held| held.why.as_str())
        .collect();
    assert_eq!(why, ["the desired state of Box `new` (shelf=a) is unknown"]);
    play.request.trust_head = true;
    play.run();
    assert_eq!(play.was_read(), ["x/one", "x/two", "x/three"]);
}

#[test]
fn without_a_base_and_in_a_real_run_every_secret_is_read() {
    let mut play = Fixture::new(Mode::DryRun, &["a: one=x/one"], false);
    play.run();
    assert_eq!(play.was_read(), ["x/one"]);
    play = Fixture::new(Mode::Real, &["a: one=x/one"], false);
    play.request.base = Some(source(&stock(&["a: one=x/other"])));
    play.run();
    assert_eq!(play.was_read(), ["x/one"]);
}

#[test]
fn no_secret_is_trusted_if_base_cannot_be_read() {
    let play = Fixture::check(&["a: one=x/one"], &["a: one=x/one two=x/two"]);
    // Base fails twice: for the comparison, and alone. Head can be declared.
    play.failures.store(2, Ordering::Relaxed);
    let outcome = play.run();
    assert!(
        outcome.decisions[0].text.contains("base and head could not be compared"),
        "{:?}",
        outcome.decisions
    );
    assert_eq!(play.was_read(), [""; 0]);
    assert_eq!(unplanned(&outcome).len(), 2, "{:?}", unplanned(&outcome));
}

#[test]
fn if_base_and_head_cannot_be_compared_only_addresses_of_base_are_contacted() {
    let play = Fixture::check(&["a: one=x/one"], &["a: one=x/one", "new: two=x/two"]);
    play.failures.store(1, Ordering::Relaxed);
    let outcome = play.run();
    assert!(
        outcome.decisions[0].text.contains("base and head could not be compared"),
        "{:?}",
        outcome.decisions
    );
    let states: Vec<&ShardState> = outcome.shards.values().map(|shard| &shard.state).collect();
    assert_eq!(states, [&ShardState::Ran, &ShardState::Skipped(SkipReason::UntrustedTarget)]);
    assert_eq!(play.was_read(), ["x/one"]);
}

#[test]
fn the_reason_for_a_skipped_shard_is_recorded_as_a_word_and_a_sentence() {
    let play = Fixture::check(&["a: one=x/one"], &["a: one=x/one", "new: two=x/two"]);
    let outcome = play.run();
    let record = RunRecord::new(
        &outcome,
        qontract_runtime::RunTiming { began: jiff::Timestamp::UNIX_EPOCH, milliseconds: 0 },
        LineResolvers::uniform(&|_| String::new()),
    );
    let shard = &record.shards["shelf=new"];
    assert_eq!(shard.reason, Some(SkipKind::UntrustedTarget));
    let why = "its address is new or changed: not contacted in a dry run without --trust-head";
    assert_eq!(shard.why.as_deref(), Some(why));
    for (skip, reason, why) in [
        (SkipReason::Invalid, "wrong", "its declaration has errors"),
        (SkipReason::Disabled("x".to_owned()), "disabled", "disabled for x"),
        (SkipReason::DisabledInBase("x".to_owned()), "disabled", "only in base, and disabled there for x"),
        (SkipReason::UntrustedTarget, "unapproved", why),
    ] {
        assert_eq!((skip.kind().as_str(), skip.to_string().as_str()), (reason, why));
    }
}

/// Everything that a run reports.
fn output(play: &Fixture, outcome: &RunOutcome) -> String {
    let record = RunRecord::new(
        outcome,
        qontract_runtime::RunTiming { began: jiff::Timestamp::UNIX_EPOCH, milliseconds: 0 },
        LineResolvers::uniform(&|_| String::new()),
    );
    format!("{outcome:?}\n{}\n{:?}", serde_json::to_string(&record).unwrap(), play.audit.0.lock().unwrap())
}

#[test]
fn no_report_contains_a_secret_that_was_read() {
    for (mode, boxes, fails) in [
        (Mode::DryRun, "a: one=x/one", false),
        (Mode::Real, "a: one=x/one", false),
        (Mode::Real, "a: one=x/one", true),
        (Mode::DryRun, "a: stops=x/one", false),
    ] {
        let play = Fixture::new(mode, &[boxes], fails);
        let outcome = play.run();
        let output = output(&play, &outcome);
        assert!(!output.contains("hunter22"), "{output}");
        assert!(output.contains("[redacted]"), "{output}");
    }
}

#[test]
fn public_data_is_reported_even_where_it_equals_a_secret() {
    // As the path of another secret in the shard, and as rendered by a template.
    for boxes in ["a: one=x/one two=hunter22-hunter22", "a: one=x/one guess=x/two"] {
        let play = Fixture::new(Mode::Real, &[boxes], true);
        let output = output(&play, &play.run());
        for what in ["applying", "planning", "observing", "waiting", "because", "line", "hold"] {
            let expect =
                if what == "line" { "field `hunter22".to_owned() } else { format!("{what} {SECRET}") };
            assert!(output.contains(&expect), "{expect}: {output}");
        }
        assert!(!output.contains("[redacted]"), "{output}");
    }
}

#[test]
fn only_the_record_of_a_real_run_names_secret_fields() {
    let diff = |mode| {
        let outcome = Fixture::new(mode, &["a: one=x/one"], false).run();
        outcome.shards.values().next().unwrap().changes[0].diff.clone()
    };
    assert_eq!(diff(Mode::DryRun), ["2 fields", "[redacted]"].map(DiffEntry::from));
    assert_eq!(diff(Mode::Real), ["field `a`", "[redacted]"].map(DiffEntry::from));
}

#[test]
fn a_secret_that_is_not_read_yet_is_not_a_failure() {
    let mut play = Fixture::check(&["a: one=x/one"], &["a: one=x/two"]);
    play.request.only_affected = true;
    let outcome = play.run();
    // Only the faults of the integration itself count; the secret that is not read is not a fault.
    assert_eq!(outcome.ended, RunEnd::Transient);
    assert!(outcome.all_faults().all(|fault| !fault.text.contains("x/two")), "{:?}", outcome.faults);
}
