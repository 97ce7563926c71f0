//! The rules of the runner, one test each, on the shelves integration.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_runtime::guard::{
    Ledger, LedgerEntry, LedgerError, LedgerSnapshot, LedgerState, MemoryLedger, ObjectRef, ProtectedKinds,
    StoreResult,
};
use qontract_runtime::{
    BundleReader, Integration, RunEnd, RunOutcome, RunRequest, ShardKey, ShardState, SkipReason, run, slot,
};
use serde_json::json;
use support::fixture::{
    DeclaredBox, Faults, Shelves, ShelvesIntegration, Stock, StoredBox, source, source_with,
};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 3, 31);

/// `a: one two=content -three`: a shelf with its boxes. A dash marks a box for deletion; a plus means that it
/// needs a secret.
fn stock(lines: &[&str]) -> Stock {
    let declared = |word: &str| {
        let (name, content) = word.split_once('=').unwrap_or((word, "content"));
        DeclaredBox {
            name: name.trim_start_matches(['-', '+']).to_owned(),
            content: content.to_owned(),
            delete: name.starts_with('-').then_some(true),
            secret: name.starts_with('+').then_some(true),
        }
    };
    lines
        .iter()
        .map(|line| {
            let (shelf, boxes) = line.split_once(':').unwrap();
            (shelf.to_owned(), boxes.split_whitespace().map(declared).collect())
        })
        .collect()
}

fn world(lines: &[&str]) -> Shelves {
    let boxes = stock(lines).into_iter().map(|(shelf, boxes)| {
        let stored_box = |declared: DeclaredBox| {
            (declared.name, StoredBox { content: declared.content, version: 1, ours: true })
        };
        (shelf, boxes.into_iter().map(stored_box).collect::<BTreeMap<_, _>>())
    });
    Shelves::new(boxes.collect(), 1)
}

struct Fixture {
    world: Arc<Mutex<Shelves>>,
    integration: Integration,
    request: RunRequest,
}

impl Fixture {
    fn new(head: Arc<dyn BundleReader>, mode: Mode, world: Shelves) -> Self {
        let world = Arc::new(Mutex::new(world));
        let integration = Integration::staged(ShelvesIntegration::new(Arc::clone(&world)));
        Self {
            world,
            integration,
            request: RunRequest::new("run", mode, head, TODAY, ProtectedKinds::default()),
        }
    }

    fn real(data: &[&str], before: &[&str]) -> Self {
        Self::new(source(&stock(data)), Mode::Real, world(before))
    }

    fn dry(base: &[&str], head: &[&str], before: &[&str]) -> Self {
        let mut play = Self::new(source(&stock(head)), Mode::DryRun, world(before));
        play.request.base = Some(source(&stock(base)));
        play
    }

    fn run(&self) -> RunOutcome {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(&self.integration, &self.request))
    }

    /// All boxes in the target, as `a: one`.
    fn there(&self) -> Vec<String> {
        let world = self.world.lock().unwrap();
        let names = |boxes: &BTreeMap<String, StoredBox>| {
            boxes.keys().map(|name| format!(" {name}")).collect::<Vec<_>>()
        };
        world.boxes.iter().map(|(shelf, boxes)| format!("{shelf}:{}", names(boxes).concat())).collect()
    }
}

/// A ledger that cannot be read.
#[derive(Debug)]
struct UnreadableLedger;

impl Ledger for UnreadableLedger {
    fn load<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>> {
        ready(Err(LedgerError::Unavailable("no disk".to_owned()))).boxed()
    }

    fn store<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a str,
        _: Option<&'a str>,
        _: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>> {
        panic!("a ledger that cannot be read is not written")
    }
}

/// A ledger whose writes all have this result.
#[derive(Debug)]
struct UnwritableLedger(Result<StoreResult, LedgerError>);

impl Ledger for UnwritableLedger {
    fn load<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>> {
        ready(Ok(LedgerSnapshot { state: LedgerState::default(), version: None })).boxed()
    }

    fn store<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a str,
        _: Option<&'a str>,
        _: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>> {
        ready(self.0.clone()).boxed()
    }
}

/// A ledger in which another process reserves ten removals right after it is first loaded.
#[derive(Debug, Default)]
struct ContendedLedger {
    ledger: MemoryLedger,
    loads: AtomicUsize,
}

impl Ledger for ContendedLedger {
    fn load<'a>(
        &'a self,
        permit: &'a ReadPermit,
        integration: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>> {
        async move {
            let loaded = self.ledger.load(permit, integration).await;
            if self.loads.fetch_add(1, Ordering::Relaxed) == 0 {
                let permits = qontract_testkit::permits(Mode::Real);
                let state = reserved("shelf=a", 10);
                self.ledger.store(permits.write.as_ref().unwrap(), integration, None, &state).await.unwrap();
            }
            loaded
        }
        .boxed()
    }

    fn store<'a>(
        &'a self,
        permit: &'a WritePermit,
        integration: &'a str,
        over: Option<&'a str>,
        state: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>> {
        self.ledger.store(permit, integration, over, state)
    }
}

/// A ledger with this many removals of a shard today.
fn reserved(shard: &str, count: usize) -> LedgerState {
    let at = TODAY.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
    let entry = |number: usize| {
        let object =
            ObjectRef { target: shard.to_owned(), kind: "Box".to_owned(), name: format!("gone-{number}") };
        LedgerEntry {
            at,
            run: "before".to_owned(),
            shard: shard.to_owned(),
            caller: None,
            object,
            incarnation: None,
        }
    };
    LedgerState { removals: (0..count).map(entry).collect(), ..LedgerState::default() }
}

fn memory(state: &LedgerState) -> Arc<MemoryLedger> {
    let (ledger, permits) = (MemoryLedger::default(), qontract_testkit::permits(Mode::Real));
    let stored = ledger.store(permits.write.as_ref().unwrap(), "shelves", None, state);
    assert_eq!(stored.now_or_never().unwrap(), Ok(StoreResult::Done));
    Arc::new(ledger)
}

fn ledger_of(play: &Fixture) -> LedgerState {
    let permit = qontract_testkit::permits(Mode::DryRun).read;
    play.request.ledger.load(&permit, "shelves").now_or_never().unwrap().unwrap().state
}

fn keys(outcome: &RunOutcome) -> Vec<String> {
    outcome.shards.keys().map(ToString::to_string).collect()
}

fn changes(outcome: &RunOutcome) -> Vec<String> {
    outcome.shards.values().flat_map(|shard| &shard.changes).map(ToString::to_string).collect()
}

fn held(outcome: &RunOutcome) -> Vec<String> {
    outcome
        .shards
        .values()
        .flat_map(|shard| &shard.held)
        .map(|held| held.change.object.name.clone())
        .collect()
}

#[test]
fn an_integration_that_the_data_does_not_define_is_refused() {
    let play = Fixture::new(source_with(&stock(&["a: one"]), json!({})), Mode::Real, world(&[]));
    let outcome = play.run();
    assert_eq!((outcome.ended, outcome.ended.code()), (RunEnd::NotDefined, 4));
    assert_eq!(play.there(), [""; 0]);
    let mut unlisted = play;
    unlisted.request.validate_schemas = false;
    assert_eq!(unlisted.run().ended, RunEnd::Ok, "tolerated without validation");
}

#[test]
fn every_schema_that_a_declared_query_can_read_must_be_listed() {
    let listed = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/other"]}});
    // There are no shelves: the schemas that the query *can* read count.
    let outcome = Fixture::new(source_with(&stock(&[]), listed), Mode::Real, world(&[])).run();
    assert_eq!((outcome.ended, outcome.ended.code()), (RunEnd::Forbidden, 5));
    let fault = &outcome.faults[0];
    assert_eq!(
        fault.text,
        "the query `Shelves` can read `/shelf` through `Query.shelves`, which is not listed"
    );
    assert_eq!(fault.hint.as_deref(), Some("add to `schemas`:\n- /shelf"));
    assert_eq!(&*fault.places[0].path, "/integration.yml");
}

#[test]
fn a_listed_schema_that_is_never_read_is_a_warning() {
    let listed = json!({"/integration.yml": {"$schema": "/integration", "path": "/integration.yml", "name": "shelves",
        "schemas": ["/approval", "/integration", "/shelf"]}});
    let outcome = Fixture::new(source_with(&stock(&["a: one"]), listed), Mode::Real, world(&[])).run();
    assert_eq!(outcome.ended, RunEnd::Ok);
    assert_eq!(outcome.warnings[0], "`/approval` is listed in `schemas` but never read");
}

#[test]
fn equal_declared_states_end_a_dry_run_early() {
    let outcome = Fixture::dry(&["a: one"], &["a: one"], &[]).run();
    assert_eq!((outcome.ended, outcome.ended.code()), (RunEnd::EarlyExit, 0));
    assert!(outcome.decisions[0].text.starts_with("no change between "), "{:?}", outcome.decisions);
    let mut real = Fixture::dry(&["a: one"], &["a: one"], &[]);
    real.request.mode = Mode::Real;
    assert_eq!(changes(&real.run()).len(), 1, "a real run observes the target");
}

#[test]
fn the_order_of_a_list_matters() {
    let outcome = Fixture::dry(&["a: one two"], &["a: two one"], &[]).run();
    assert_eq!(outcome.ended, RunEnd::Ok);
}

#[test]
fn a_failure_on_either_side_means_a_full_run() {
    let mut play = Fixture::dry(&["a: one"], &["a: one", "b: two"], &[]);
    play.request.base =
        Some(source_with(&Stock::new(), json!({"/a.yml": {"$schema": "/shelf", "name": ["no text"]}})));
    let outcome = play.run();
    assert_eq!(keys(&outcome), ["shelf=a", "shelf=b"]);
    assert!(
        outcome.decisions[0].text.starts_with("all shards run: base and head could not be compared"),
        "{:?}",
        outcome.decisions
    );
}

#[test]
fn only_affected_shards_run_and_the_differing_paths_are_reported() {
    let mut play = Fixture::dry(&["a: one", "b: two", "c: x"], &["a: one", "b: two=new", "c: x"], &[]);
    // All addresses are in base.
    let outcome = play.run();
    assert_eq!(keys(&outcome), ["shelf=b"]);
    let texts: Vec<String> = outcome.decisions.iter().map(|one| one.text.clone()).collect();
    assert_eq!(
        texts,
        [
            "affected by 1 file (desired state)",
            "`shelf=b` differs at /0/content",
            "2 shards not affected by the change"
        ]
    );
    assert_eq!(&*outcome.decisions[1].places[0].path, "/b.yml");
    play.request.only_affected = false;
    assert_eq!(keys(&play.run()).len(), 3);
}

#[test]
fn only_differences_of_selected_shards_are_reported() {
    let mut reported = Vec::new();
    for index in 0..3 {
        let mut play = Fixture::dry(&["a: one", "b: one"], &["a: one=new", "b: one=new"], &[]);
        play.request.slot = slot::Slot::new(index, 3).unwrap();
        let outcome = play.run();
        let texts = outcome.decisions.iter().map(|one| one.text.as_str());
        let differing: Vec<String> =
            texts.filter_map(|text| Some(text.split_once("` differs")?.0[1..].to_owned())).collect();
        assert_eq!(differing, keys(&outcome), "slot {index}");
        reported.extend(differing);
    }
    reported.sort();
    assert_eq!(reported, ["shelf=a", "shelf=b"]);
}

#[test]
fn a_change_of_permissions_affects_everything() {
    let listed = |schemas: serde_json::Value| {
        let data = json!({"/integration.yml":
            {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": schemas}});
        source_with(&stock(&["a: one"]), data)
    };
    let mut play = Fixture::new(listed(json!(["/integration", "/shelf", "/x"])), Mode::DryRun, world(&[]));
    play.request.base = Some(listed(json!(["/integration", "/shelf"])));
    assert_eq!(keys(&play.run()), ["shelf=a"]);
}

#[test]
fn a_new_address_in_head_is_not_contacted_unless_it_is_trusted() {
    let mut play = Fixture::dry(&["a: one"], &["a: one", "new: two"], &[]);
    let outcome = play.run();
    assert!(matches!(
        &outcome.shards.values().next().unwrap().state,
        ShardState::Skipped(SkipReason::UntrustedTarget)
    ));
    play.request.trust_head = true;
    assert_eq!(changes(&play.run()), ["+ put box `two` (shelf=new)"]);
}

#[test]
fn a_shard_that_only_base_has_is_planned_with_the_address_of_base() {
    let outcome = Fixture::dry(&["a: one", "gone: two"], &["a: one"], &["a: one", "gone: two three"]).run();
    assert_eq!(keys(&outcome), ["shelf=gone"]);
    assert_eq!(outcome.shards.values().next().unwrap().state, ShardState::Orphaned);
    assert_eq!(held(&outcome), ["three", "two"], "it would be emptied, which needs an approval");
    assert_eq!(outcome.ended, RunEnd::Held);
    assert!(outcome.approval.unwrap().contains("target: \"shelf=gone\"\n  kind: \"Box\"\n  name: \"three\""));
}

#[test]
fn a_real_run_cleans_up_shards_that_only_base_has_and_runs_all_of_head() {
    let mut play = Fixture::dry(&["a: one", "gone: two"], &["a: one", "new: x"], &["gone: two theirs"]);
    play.request.mode = Mode::Real;
    let mut approved = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/shelf"]}});
    approved["/approval.yml"] = json!({"$schema": "/approval", "integration": "shelves", "expiration": "2026-12-31",
        "removals": [{"target": "shelf=gone", "kind": "Box", "name": "two"}]});
    play.request.head = source_with(&stock(&["a: one", "new: x"]), approved);
    play.world.lock().unwrap().boxes.get_mut("gone").unwrap().get_mut("theirs").unwrap().ours = false;
    let outcome = play.run();
    assert_eq!(
        (outcome.ended, keys(&outcome)),
        (RunEnd::Ok, vec!["shelf=a".to_owned(), "shelf=gone".into(), "shelf=new".into()])
    );
    assert_eq!(play.there(), ["a: one", "gone: theirs", "new: x"]);
}

/// A head in which the file of the shelf `gone` declares something else, and further files.
fn head_with(shelves: &[&str], files: &serde_json::Value) -> Arc<dyn BundleReader> {
    let mut data = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/shelf"]}});
    for (path, shelf) in files.as_object().unwrap() {
        data[path] = json!({"$schema": "/shelf", "name": shelf, "boxes": []});
    }
    source_with(&stock(shelves), data)
}

#[test]
fn nothing_is_removed_because_of_an_error_in_the_file_that_declared_a_shard() {
    // Two files declare the shelf `a`: it is invalid.
    for (files, is_postponed) in [
        // The file of `gone`.
        (json!({"/gone.yml": "a"}), true),
        // A new file, to which `gone` may have moved.
        (json!({"/moved.yml": "a"}), true),
        // The file of another shelf of base. The file of `gone` is deleted.
        (json!({"/b.yml": "a"}), false),
    ] {
        for mode in [Mode::DryRun, Mode::Real] {
            let all = ["a: one", "b: two", "gone: three"];
            let mut play = Fixture::dry(&all, &[], &all);
            play.request.mode = mode;
            play.request.head = head_with(&["a: one"], &files);
            let outcome = play.run();
            let gone = &outcome.shards[&ShardKey::new([("shelf", "gone")])];
            let expect = if is_postponed { ShardState::Postponed } else { ShardState::Orphaned };
            assert_eq!(gone.state, expect, "{files}");
            assert_eq!(outcome.ended, RunEnd::Failed, "{files}");
            assert_eq!((gone.held.len(), gone.changes.len()), if is_postponed { (1, 0) } else { (0, 1) });
            let is_there = play.there().contains(&"gone: three".to_owned());
            assert_eq!(is_there, is_postponed || mode == Mode::DryRun, "{files} {mode:?}");
            if is_postponed {
                let why = &gone.held[0].why;
                assert!(why.contains("`shelf=a` is declared more than once"), "{why}");
                assert_eq!(outcome.approval, None, "no approval can release it");
            }
        }
    }
}

#[test]
fn a_shard_is_postponed_because_of_an_error_of_a_shard_that_flags_do_not_select() {
    let mut play = Fixture::dry(&["a: one", "gone: three"], &[], &["a: one", "gone: three"]);
    play.request.mode = Mode::Real;
    let mut integration = ShelvesIntegration::new(Arc::clone(&play.world));
    integration.about = integration.about.selects("shelf-name", "shelf");
    play.integration = Integration::staged(integration);
    play.request.head = head_with(&["a: one"], &json!({"/gone.yml": "a"}));
    play.request.options.add("shelf-name", "gone");
    let outcome = play.run();
    assert_eq!((outcome.ended, keys(&outcome)), (RunEnd::Failed, vec!["shelf=gone".to_owned()]));
    assert_eq!(play.there(), ["a: one", "gone: three"]);
}

#[test]
fn an_error_that_base_has_too_postpones_nothing() {
    let twice = json!({"/gone.yml": "gone", "/x.yml": "a", "/y.yml": "a"});
    let mut play = Fixture::dry(&[], &[], &["b: one", "gone: three"]);
    play.request.base = Some(head_with(&["b: one"], &twice));
    play.request.head = head_with(&["b: one"], &json!({"/x.yml": "a", "/y.yml": "a"}));
    let outcome = play.run();
    assert_eq!(outcome.shards[&ShardKey::new([("shelf", "gone")])].state, ShardState::Orphaned);
}

#[test]
fn an_integration_with_ad_hoc_reads_is_never_unaffected() {
    let mut play = Fixture::dry(&["a: one"], &["a: one"], &[]);
    let mut integration = ShelvesIntegration::new(Arc::clone(&play.world));
    integration.about = integration.about.reads_ad_hoc();
    play.integration = Integration::staged(integration);
    assert_eq!(play.run().ended, RunEnd::EarlyExit, "the same bundle is the same");
    let other = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/shelf"]},
        "/else.yml": {"$schema": "/other"}});
    play.request.base = Some(source_with(&stock(&["a: one"]), other));
    assert_eq!((play.run().ended, changes(&play.run()).len()), (RunEnd::Ok, 1));
}

#[test]
fn an_approval_that_comes_with_the_removal_of_a_shard_does_not_hide_it() {
    let mut approved = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/shelf"]}});
    approved["/approval.yml"] = json!({"$schema": "/approval", "integration": "shelves", "expiration": "2026-12-31",
        "removals": [{"target": "shelf=gone", "kind": "Box", "name": "two"}]});
    let mut play = Fixture::dry(&["a: one", "gone: two"], &["a: one"], &["a: one", "gone: two"]);
    play.request.head = source_with(&stock(&["a: one"]), approved);
    let outcome = play.run();
    assert_eq!(
        (outcome.ended, changes(&outcome)),
        (RunEnd::Ok, vec!["- remove box `two` (shelf=gone)".to_owned()])
    );
}

#[test]
fn a_flag_that_matches_nothing_is_a_warning_or_a_usage_error() {
    let mut play = Fixture::real(&["a: one"], &[]);
    let mut integration = ShelvesIntegration::new(Arc::clone(&play.world));
    integration.about = integration.about.selects("shelf-name", "shelf");
    play.integration = Integration::staged(integration);
    play.request.options.add("shelf-name", "aa");
    let outcome = play.run();
    let text = "`--shelf-name aa` matches nothing in the data; did you mean `a`?";
    assert_eq!((outcome.ended, &outcome.warnings[..]), (RunEnd::Ok, &[text.to_owned()][..]));
    assert_eq!(keys(&outcome), [""; 0]);
    // With strict selectors, it is an error before anything runs.
    play.request.strict_selectors = true;
    let outcome = play.run();
    let faults: Vec<&str> = outcome.faults.iter().map(|fault| fault.text.as_str()).collect();
    assert_eq!((outcome.ended, outcome.ended.code(), faults), (RunEnd::Usage, 2, vec![text]));
    play.request.options = qontract_runtime::Options::default();
    play.request.options.add("shelf-name", "a");
    assert_eq!(play.run().ended, RunEnd::Ok);
}

#[test]
fn shards_are_processed_concurrently_up_to_a_limit() {
    let mut play = Fixture::real(&["a: x", "b: x", "c: x", "d: x", "e: x"], &[]);
    play.request.limits.max_shards = 2;
    assert_eq!(keys(&play.run()).len(), 5);
    assert_eq!(play.world.lock().unwrap().reading.1, 2);
}

#[test]
fn an_integration_limits_the_number_of_concurrent_shards() {
    let mut play = Fixture::real(&["a: x", "b: x", "c: x", "d: x", "e: x"], &[]);
    let mut integration = ShelvesIntegration::new(Arc::clone(&play.world));
    integration.about.limits.max_shards = Some(2);
    play.integration = Integration::staged(integration);
    assert_eq!(keys(&play.run()).len(), 5);
    assert_eq!(play.world.lock().unwrap().reading.1, 2);
}

#[test]
fn a_permanent_failure_outweighs_transient_ones() {
    let play = Fixture::real(&["a: +secret", "b:"], &["b: one two"]);
    play.world.lock().unwrap().faults = Faults { no_secret: 100, ..Faults::default() };
    let outcome = play.run();
    assert_eq!(held(&outcome), ["one", "two"], "it would empty the shelf");
    assert_eq!((outcome.ended.code(), outcome.all_faults().count()), (1, 1));
}

#[test]
fn slots_and_flags_select() {
    let data = ["a: one", "b: one", "c: one", "d: one"];
    let mut all = Vec::new();
    for index in 0..3 {
        let mut play = Fixture::real(&data, &[]);
        play.request.slot = slot::Slot::new(index, 3).unwrap();
        all.extend(keys(&play.run()));
    }
    all.sort();
    assert_eq!(all, ["shelf=a", "shelf=b", "shelf=c", "shelf=d"]);
}

#[test]
fn a_refused_removal_is_reported_as_held_and_the_rest_proceeds() {
    let play = Fixture::real(&["a: new"], &["a: one two three four five six seven eight nine ten eleven"]);
    let outcome = play.run();
    assert_eq!((outcome.ended, held(&outcome).len()), (RunEnd::Held, 11));
    assert_eq!(changes(&outcome), ["+ put box `new` (shelf=a)"]);
    assert!(play.there()[0].contains("eleven") && play.there()[0].contains("new"));
    assert!(outcome.approval.unwrap().contains("expiration: \"2026-04-07\""));
}

#[test]
fn an_approval_in_the_data_releases_a_removal() {
    let mut data = json!({"/integration.yml":
        {"$schema": "/integration", "path": "/integration.yml", "name": "shelves", "schemas": ["/integration", "/shelf"]}});
    data["/approval.yml"] = json!({"$schema": "/approval", "integration": "shelves", "expiration": "2026-03-31",
        "removals": [{"target": "shelf=a", "kind": "Box", "name": "one"}]});
    let play = Fixture::new(source_with(&stock(&["a:"]), data), Mode::Real, world(&["a: one"]));
    assert_eq!((play.run().ended, play.there()), (RunEnd::Ok, vec!["a:".to_owned()]));
}

#[test]
fn removals_are_summed_over_runs_and_held_without_a_ledger() {
    let mut play = Fixture::real(&["a: x"], &["a: x one two"]);
    play.request.ledger = memory(&reserved("shelf=a", 9));
    assert_eq!(held(&play.run()), ["one", "two"]);
    assert_eq!(play.there(), ["a: one two x"]);
    let mut play = Fixture::real(&["a: x"], &["a: x one"]);
    play.request.ledger = Arc::new(UnreadableLedger);
    assert_eq!(held(&play.run()), ["one"], "earlier removals are not known");
    for error in [Err(LedgerError::Unavailable("the disk is full".to_owned())), Ok(StoreResult::Conflict)] {
        let mut play = Fixture::real(&["a: x new"], &["a: x one"]);
        play.request.ledger = Arc::new(UnwritableLedger(error));
        let outcome = play.run();
        let found = (held(&outcome), changes(&outcome).len());
        assert_eq!(found, (vec!["one".to_owned()], 1), "it cannot be reserved");
    }
}

#[test]
fn a_removal_that_another_process_reserves_meanwhile_counts() {
    let mut play = Fixture::real(&["a: x"], &["a: x one"]);
    play.request.ledger = Arc::new(ContendedLedger::default());
    assert_eq!(held(&play.run()), ["one"]);
    assert_eq!(play.there(), ["a: one x"]);
}

#[test]
fn a_real_run_stores_removals_holds_and_counts_and_a_dry_run_stores_nothing() {
    let mut play = Fixture::real(&["a: x", "b: x"], &["a: x one", "b: x two"]);
    play.request.ledger = memory(&reserved("shelf=b", 10));
    play.request.mode = Mode::DryRun;
    let before = ledger_of(&play);
    assert_eq!(held(&play.run()), ["two"]);
    assert_eq!(ledger_of(&play), before);
    play.request.mode = Mode::Real;
    assert_eq!(held(&play.run()), ["two"]);
    let after = ledger_of(&play);
    let last = after.removals.iter().find(|entry| entry.run == "run").unwrap();
    assert_eq!((last.shard.as_str(), last.object.name.as_str()), ("shelf=a", "one"));
    assert_eq!(after.held[0].object.name, "two");
    assert_eq!(after.counts["shelf=a"].total, 2);
    let again = play.run();
    assert_eq!(held(&again), ["two"], "it stays held");
    assert_eq!(ledger_of(&play).counts["shelf=a"].total, 1);
}

#[test]
fn delete_true_removes_and_approves() {
    let play = Fixture::real(&["a: -one"], &["a: one"]);
    assert_eq!((play.run().ended, play.there()), (RunEnd::Ok, vec!["a:".to_owned()]));
}

#[test]
fn unresolved_forbids_removals_in_its_scope_only() {
    let play = Fixture::real(&["a: +secret new", "b: x"], &["a: old", "b: x old"]);
    play.world.lock().unwrap().faults = Faults { no_secret: 100, ..Faults::default() };
    let outcome = play.run();
    assert_eq!(outcome.ended, RunEnd::Transient);
    assert_eq!(play.there(), ["a: new old", "b: x"]);
    assert_eq!(outcome.approval, None, "an approval would not help");
}

#[test]
fn unknown_is_not_absent() {
    let play = Fixture::real(&["a: new"], &["a: old"]);
    play.world.lock().unwrap().faults = Faults { failed_read: 100, ..Faults::default() };
    let outcome = play.run();
    assert_eq!((outcome.ended, outcome.ended.code()), (RunEnd::Transient, 75));
    assert_eq!(play.there(), ["a: old"]);
    assert!(outcome.all_faults().next().unwrap().text.starts_with("cannot read `shelf=a`"));
}

#[test]
fn a_read_that_never_answers_ends_with_the_deadline() {
    let play = Fixture::real(&["a: new"], &[]);
    play.world.lock().unwrap().faults = Faults { silent_read: 100, ..Faults::default() };
    let outcome = play.run();
    assert_eq!(outcome.ended, RunEnd::Transient);
    assert_eq!(outcome.all_faults().next().unwrap().text, "`observe` took longer than 600 s");
}

#[test]
fn stale_is_planned_again_in_the_same_run() {
    let play = Fixture::real(&["a: one=new"], &["a: one=old"]);
    play.world.lock().unwrap().faults = Faults { meddling: 60, ..Faults::default() };
    let outcome = play.run();
    let shard = outcome.shards.values().next().unwrap();
    assert!(shard.rounds > 1 || shard.applied == 1, "{outcome:?}");
    play.world.lock().unwrap().faults = Faults { meddling: 100, ..Faults::default() };
    play.world.lock().unwrap().boxes.get_mut("a").unwrap().get_mut("one").unwrap().content = "old".to_owned();
    let outcome = play.run();
    assert_eq!((outcome.ended, outcome.shards.values().next().unwrap().rounds), (RunEnd::Transient, 3));
}
