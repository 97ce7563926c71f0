//! Handovers under arbitrary interleavings: controllers with old state, late, lost and repeated acknowledgements,
//! processes that crash, and an assignment that changes in the meantime.

use qontract_fleet::balance::{Assignment, Handover, Placement, PlacementReason, SlotConfiguration};
use qontract_testkit::{SeededRng, chaos_count};
use std::collections::{BTreeMap, BTreeSet};

const KEYS: usize = 6;
const SLOTS: u32 = 4;
const ACTIONS: usize = 400;

/// 20,000 histories with `cargo xtask chaos fleet-handover`.
#[test]
fn a_handover_never_runs_a_key_twice_and_always_ends() {
    for seed in 0..chaos_count(200) {
        let mut fixture = Fixture::new(seed);
        for _ in 0..ACTIONS {
            fixture.act();
            fixture.check();
        }
        fixture.finish();
    }
}

/// An acknowledgement on its way.
#[derive(Clone, Copy, Debug)]
struct Acknowledgement {
    slot: u32,
    generation: u64,
}

/// The process of a slot.
#[derive(Debug, Default)]
struct Worker {
    /// The configuration that it read, but has not applied.
    read: Option<SlotConfiguration>,
    applied: SlotConfiguration,
    running: BTreeSet<String>,
}

/// A controller with the state that it read.
#[derive(Debug, Default)]
struct Controller {
    version: u64,
    state: Handover,
    wanted: Assignment,
}

struct Fixture {
    seed: u64,
    rng: SeededRng,
    /// The stored state, which is written only if its version is the one that was read.
    stored: Handover,
    version: u64,
    wanted: Assignment,
    controllers: [Controller; 2],
    workers: BTreeMap<u32, Worker>,
    messages: Vec<Acknowledgement>,
}

impl Fixture {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            rng: SeededRng::new(seed),
            stored: Handover::default(),
            version: 0,
            wanted: Assignment::default(),
            controllers: Default::default(),
            workers: (0..SLOTS).map(|slot| (slot, Worker::default())).collect(),
            messages: Vec::new(),
        }
    }

    fn act(&mut self) {
        let slot = u32::try_from(self.rng.below(SLOTS as usize)).unwrap();
        let controller = self.rng.below(2);
        match self.rng.below(20) {
            0 => self.want(),
            1..=2 => self.read(controller),
            3..=4 => self.write(controller),
            5..=6 => self.deliver(controller),
            7 => drop(self.messages.pop()),
            8..=10 => self.read_configuration(slot),
            11..=13 => self.apply(slot),
            14..=16 => self.stop_one(slot),
            17..=18 => self.acknowledge(slot),
            _ => *self.worker(slot) = Worker::default(),
        }
    }

    fn worker(&mut self, slot: u32) -> &mut Worker {
        self.workers.get_mut(&slot).unwrap()
    }

    /// Another assignment, on another number of slots.
    fn want(&mut self) {
        let slots = 1 + self.rng.below(SLOTS as usize);
        let mut keys = BTreeMap::new();
        for key in 0..KEYS {
            if self.rng.percent(90) {
                let slot = u32::try_from(self.rng.below(slots)).unwrap();
                keys.insert(
                    format!("k{key}"),
                    Placement { slot, from: None, reason: PlacementReason::Balance },
                );
            }
        }
        self.wanted = Assignment::new(u32::try_from(slots).unwrap(), keys).unwrap();
    }

    fn read(&mut self, controller: usize) {
        let (version, state, wanted) = (self.version, self.stored.clone(), self.wanted.clone());
        self.controllers[controller] = Controller { version, state, wanted };
    }

    /// The controller may have crashed before this, and its state may be old.
    fn write(&mut self, controller: usize) {
        let controller = &mut self.controllers[controller];
        controller.state.advance(&controller.wanted);
        if controller.version == self.version {
            self.version += 1;
            controller.version = self.version;
            self.stored = Handover::from_json(&controller.state.to_json()).unwrap();
        }
    }

    /// Delivers any message, and possibly delivers it again later.
    fn deliver(&mut self, controller: usize) {
        if self.messages.is_empty() {
            return;
        }
        let index = self.rng.below(self.messages.len());
        let Acknowledgement { slot, generation } = self.messages[index];
        self.controllers[controller].state.acknowledge(slot, generation);
        if self.rng.percent(50) {
            self.messages.swap_remove(index);
        }
    }

    fn read_configuration(&mut self, slot: u32) {
        self.worker(slot).read = self.stored.configurations().get(&slot).cloned();
        // A process that has just started applies what it reads.
        if self.worker(slot).applied.generation == 0 {
            self.apply(slot);
        }
    }

    /// Starts the added keys. Those that were removed run until they are stopped.
    fn apply(&mut self, slot: u32) {
        let worker = self.worker(slot);
        if let Some(read) = worker.read.take()
            && read.generation > worker.applied.generation
        {
            worker.running.extend(read.keys.iter().cloned());
            worker.applied = read;
        }
    }

    fn stop_one(&mut self, slot: u32) {
        let worker = self.worker(slot);
        let surplus = worker.running.difference(&worker.applied.keys).next().cloned();
        surplus.map(|key| worker.running.remove(&key));
    }

    fn acknowledge(&mut self, slot: u32) {
        let worker = self.worker(slot);
        let generation = worker.applied.generation;
        if worker.running.is_subset(&worker.applied.keys) {
            self.messages.push(Acknowledgement { slot, generation });
        }
    }

    /// **Invariant:** no key is configured or running twice.
    fn check(&self) {
        let mut configured = BTreeSet::new();
        for configuration in self.stored.configurations().values() {
            assert!(
                configuration.keys.iter().all(|key| configured.insert(key)),
                "seed {}: configured twice",
                self.seed
            );
        }
        let mut running = BTreeSet::new();
        for worker in self.workers.values() {
            assert!(worker.running.iter().all(|key| running.insert(key)), "seed {}: runs twice", self.seed);
        }
    }

    /// Without faults, the wanted assignment is reached after at most two rounds.
    fn finish(&mut self) {
        for _ in 0..3 {
            self.read(0);
            for slot in 0..SLOTS {
                self.read_configuration(slot);
                self.apply(slot);
                for _ in 0..KEYS {
                    self.stop_one(slot);
                }
                let generation = self.worker(slot).applied.generation;
                self.controllers[0].state.acknowledge(slot, generation);
            }
            self.write(0);
            self.check();
        }
        assert!(self.stored.is_complete(&self.wanted), "seed {}: not complete", self.seed);
        for (slot, keys) in self.wanted.clone().keys_by_slot() {
            self.read_configuration(slot);
            self.apply(slot);
            assert!(self.worker(slot).running.iter().eq(keys), "seed {}: slot {slot}", self.seed);
        }
        let removable: BTreeSet<u32> = self
            .stored
            .configurations()
            .keys()
            .copied()
            .filter(|slot| *slot >= self.wanted.slots())
            .collect();
        assert_eq!(self.stored.removable_slots(&self.wanted), removable, "seed {}", self.seed);
    }
}
