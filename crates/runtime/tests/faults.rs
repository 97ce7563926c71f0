//! Seeded faults: reads that fail or never answer, writes that fail or whose answers are lost, concurrent
//! changes by others, missing secrets, and crashes after any write. `cargo xtask chaos faults` runs many more
//! seeds.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use qontract_access::Mode;
use qontract_runtime::guard::{MemoryLedger, ProtectedKinds};
use qontract_runtime::{BundleReader, Integration, RunEnd, RunOutcome, RunRequest, run};
use qontract_testkit::{SeededRng, chaos_count};
use support::fixture::{DeclaredBox, Faults, Shelves, ShelvesIntegration, Stock, StoredBox, source};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 1, 1);

/// The data and the target of a seed.
fn begin(chance: &mut SeededRng, seed: u64) -> (Stock, Shelves) {
    let (mut stock, mut boxes) = (Stock::new(), BTreeMap::new());
    for shelf in 0..=chance.below(4) {
        let shelf = format!("shelf-{shelf}");
        let mut declared = Vec::new();
        let mut there: BTreeMap<String, StoredBox> = BTreeMap::new();
        for name in 0..chance.below(7) {
            let name = format!("box-{name}");
            if chance.percent(70) {
                declared.push(DeclaredBox {
                    name: name.clone(),
                    content: format!("content {}", chance.below(3)),
                    delete: chance.percent(20).then_some(true),
                    secret: chance.percent(30).then_some(true),
                });
            }
            if chance.percent(60) {
                let content = format!("content {}", chance.below(3));
                // Two owners of one name would never converge: boxes of other owners have names of their own.
                there.insert(name, StoredBox { content, version: 1, ours: true });
            }
        }
        if chance.percent(50) {
            let stored = StoredBox { content: "theirs".to_owned(), version: 1, ours: false };
            there.insert("somebody-else".to_owned(), stored);
        }
        stock.insert(shelf.clone(), declared);
        boxes.insert(shelf, there);
    }
    (stock, Shelves::new(boxes, seed))
}

fn faults(chance: &mut SeededRng) -> Faults {
    Faults {
        silent_read: chance.below(20),
        failed_read: chance.below(20),
        failed_write: chance.below(25),
        lost_answer: chance.below(25),
        meddling: chance.below(30),
        no_secret: chance.below(60),
        crash_after: chance.percent(40).then(|| chance.below(6)),
    }
}

struct Fixture {
    integration: Integration,
    world: Arc<Mutex<Shelves>>,
    head: Arc<dyn BundleReader>,
    /// Shared by all runs, as by all processes.
    ledger: Arc<MemoryLedger>,
}

impl Fixture {
    fn new(stock: &Stock, world: Shelves) -> Self {
        let world = Arc::new(Mutex::new(world));
        let integration = Integration::staged(ShelvesIntegration::new(Arc::clone(&world)));
        Self { integration, world, head: source(stock), ledger: Arc::default() }
    }

    /// One run; `None` if it crashed.
    async fn run(&self, mode: Mode, faults: Faults) -> Option<RunOutcome> {
        let crash = {
            let mut world = self.world.lock().unwrap();
            world.begin(faults);
            Arc::clone(&world.crash)
        };
        let mut request =
            RunRequest::new("run", mode, Arc::clone(&self.head), TODAY, ProtectedKinds::default());
        request.ledger = Arc::clone(&self.ledger) as _;
        tokio::select! {
            outcome = run(&self.integration, &request) => Some(outcome),
            () = crash.notified() => None,
        }
    }

    fn boxes(&self) -> BTreeMap<String, BTreeMap<String, StoredBox>> {
        self.world.lock().unwrap().boxes.clone()
    }
}

async fn play(seed: u64) {
    let mut chance = SeededRng::new(seed);
    let (stock, world) = begin(&mut chance, seed);
    let play = Fixture::new(&stock, world);
    for _ in 0..=chance.below(4) {
        let faults = faults(&mut chance);
        let before = play.boxes();
        play.run(Mode::DryRun, faults).await;
        assert_eq!(play.boxes(), before, "seed {seed}: a dry run wrote");
        play.run(Mode::Real, faults).await;
        let problems = play.world.lock().unwrap().problems.clone();
        assert_eq!(problems, [""; 0], "seed {seed}");
    }
    // Without faults it converges in few runs.
    let mut last = None;
    for _ in 0..2 {
        last = play.run(Mode::Real, Faults::default()).await;
    }
    let last = last.unwrap();
    assert_eq!(last.applied(), 0, "seed {seed}: the second run did something");
    let held: Vec<(String, String)> = last
        .shards
        .values()
        .flat_map(|shard| &shard.held)
        .map(|held| {
            (held.change.object.scope.get("shelf").unwrap().to_owned(), held.change.object.name.clone())
        })
        .collect();
    let ended = if held.is_empty() { RunEnd::Ok } else { RunEnd::Held };
    assert_eq!(last.ended, ended, "seed {seed}: {last:?}");
    assert_eq!(held.is_empty(), last.approval.is_none(), "seed {seed}");
    for (shelf, there) in play.boxes() {
        for (name, stored) in there.iter().filter(|(_, stored)| stored.ours) {
            let declared = stock[&shelf].iter().find(|declared| declared.name == *name);
            match declared {
                Some(declared) => {
                    assert!(declared.delete.is_none(), "seed {seed}: {name} should be gone");
                    assert_eq!(stored.content, declared.content, "seed {seed}");
                }
                None => assert!(
                    held.contains(&(shelf.clone(), name.clone())),
                    "seed {seed}: {name} was forgotten"
                ),
            }
        }
        let present = stock[&shelf].iter().filter(|declared| declared.delete.is_none());
        for declared in present {
            assert!(there.contains_key(&declared.name), "seed {seed}: {} is missing", declared.name);
        }
    }
    let dry = play.run(Mode::DryRun, Faults::default()).await.unwrap();
    let left = dry.shards.values().map(|shard| shard.changes.len()).sum::<usize>();
    assert_eq!(left, 0, "seed {seed}: the second plan is not empty");
}

#[test]
fn whatever_happens_nothing_is_lost_and_it_converges() {
    let seeds = chaos_count(1000);
    // The clock is paused: deadlines expire immediately.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for seed in 0..seeds {
        runtime.block_on(play(seed));
    }
}

#[test]
fn boxes_of_other_owners_are_never_touched() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for seed in 0..50 {
        let mut chance = SeededRng::new(seed);
        let (stock, world) = begin(&mut chance, seed);
        let theirs = |boxes: &BTreeMap<String, BTreeMap<String, StoredBox>>| {
            let all = boxes
                .iter()
                .flat_map(|(shelf, there)| there.iter().map(move |(name, stored)| (shelf, name, stored)));
            all.filter(|(_, _, stored)| !stored.ours)
                .map(|(shelf, name, stored)| (shelf.clone(), name.clone(), stored.clone()))
                .collect::<Vec<_>>()
        };
        let before = theirs(&world.boxes);
        let play = Fixture::new(&stock, world);
        runtime.block_on(play.run(Mode::Real, Faults::default()));
        assert_eq!(theirs(&play.boxes()), before);
    }
}
