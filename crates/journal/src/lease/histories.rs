//! Random histories of processes that compete for one lease: pauses, kills, clocks that run at different speeds, lost
//! requests, lost responses, late requests and stale reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use qontract_client_blobs::{Etag, Precondition};
use qontract_testkit::{SeededRng, chaos_count};

use super::holding::{HeldLease, WriteAttempt};
use super::observation::{Availability, LeaseObservation, Observer};
use super::record::{LeaseProcess, LeaseRecord, LeaseState, StoredLease};
use super::timing::LeaseTiming;

const DURATION: Duration = Duration::from_secs(10);
/// Duration of the part of a history with faults, in milliseconds of true time.
const HORIZON: u64 = 120_000;
const PROCESSES: usize = 3;

/// True time, in milliseconds.
type TrueTime = u64;

/// A request to the store.
#[derive(Clone, Debug)]
enum Request {
    Read,
    Write { record: Box<LeaseRecord>, precondition: Precondition },
}

/// The response of the store.
#[derive(Clone, Debug)]
enum Answer {
    Stored(Option<StoredLease>),
    Written(Etag),
    Stale,
    Timeout,
}

/// The current activity of a process.
#[derive(Clone, Debug)]
enum Activity {
    Idle,
    /// The process reads the lease that it wants to acquire.
    Acquiring,
    /// The process writes the lease.
    Claiming(WriteAttempt, u64),
    /// The process reads the lease after a write whose result is unknown.
    Confirming(WriteAttempt, u64),
    /// The process applies steps until a point in true time.
    Applying(HeldLease, TrueTime, Renewal),
}

/// The renewal in progress of a lease.
#[derive(Clone, Copy, Debug)]
enum Renewal {
    None,
    Writing(WriteAttempt),
    ReadingBack(WriteAttempt),
}

#[derive(Clone, Debug)]
enum Event {
    Wake { process: usize, call: u64 },
    Arrive { process: usize, call: u64, request: Request },
    Deliver { process: usize, call: u64, answer: Answer },
}

struct SimulatedProcess {
    id: String,
    /// The speed of the process's clock, in thousandths.
    rate: u64,
    offset: u64,
    paused_until: TrueTime,
    /// Whether the process can determine which of the other processes exist.
    is_local: bool,
    sequence: u64,
    /// The number of the current call. Responses to earlier calls are ignored.
    call: u64,
    observation: Option<LeaseObservation>,
    activity: Activity,
}

/// Counts how often each situation occurred.
#[derive(Debug, Default)]
struct Coverage {
    acquired: usize,
    takeovers: usize,
    lost: usize,
    confirmed: usize,
    pauses: usize,
    kills: usize,
}

struct Simulation {
    rng: SeededRng,
    now: TrueTime,
    order: u64,
    queue: BTreeMap<(TrueTime, u64), Event>,
    /// All versions of the lease; the last one is current.
    versions: Vec<Option<StoredLease>>,
    processes: Vec<SimulatedProcess>,
    ended: BTreeSet<String>,
    coverage: Coverage,
}

impl SimulatedProcess {
    fn clock(&self, now: TrueTime) -> Duration {
        Duration::from_millis(self.offset + now * self.rate / 1000)
    }

    /// Whether the fence of the process holds. Only the fence counts, because a process that is paused does not know
    /// how late it is.
    fn believes(&self, now: TrueTime) -> bool {
        let Activity::Applying(lease, ..) = &self.activity else { return false };
        lease.clone().check(self.clock(now)).is_ok()
    }
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut simulation = Self {
            rng: SeededRng::new(seed),
            now: 0,
            order: 0,
            queue: BTreeMap::new(),
            versions: vec![None],
            processes: Vec::new(),
            ended: BTreeSet::new(),
            coverage: Coverage::default(),
        };
        for number in 0..PROCESSES {
            let process = simulation.start_process(format!("{number}"));
            simulation.processes.push(process);
            simulation.wake(number, 0);
        }
        simulation
    }

    fn start_process(&mut self, id: String) -> SimulatedProcess {
        SimulatedProcess {
            id,
            rate: 910 + self.below(181),
            offset: self.below(1_000_000),
            paused_until: 0,
            is_local: self.rng.percent(30),
            sequence: 0,
            call: 0,
            observation: None,
            activity: Activity::Idle,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.rng.below(usize::try_from(limit).unwrap()) as u64
    }

    fn schedule(&mut self, at: TrueTime, event: Event) {
        self.order += 1;
        self.queue.insert((at, self.order), event);
    }

    fn wake(&mut self, process: usize, within: u64) {
        let at = self.now + self.below(within + 1);
        let call = self.processes[process].call;
        self.schedule(at, Event::Wake { process, call });
    }

    /// Sends a request. The request or its response may be lost or late. The process waits at most one interval of
    /// renewals for the response.
    fn send(&mut self, process: usize, request: Request) {
        self.processes[process].call += 1;
        let call = self.processes[process].call;
        let timeout = self.now + 3_000 + self.below(1_000);
        self.schedule(timeout, Event::Deliver { process, call, answer: Answer::Timeout });
        if self.rng.percent(90) {
            let at = self.now + self.delay();
            self.schedule(at, Event::Arrive { process, call, request });
        }
    }

    fn delay(&mut self) -> u64 {
        if self.rng.percent(10) { self.below(30_000) } else { self.below(800) }
    }

    fn record(
        &self,
        process: usize,
        state: LeaseState,
        attempt: WriteAttempt,
        counter: u64,
    ) -> Box<LeaseRecord> {
        let id = self.processes[process].id.clone();
        let process = LeaseProcess { id, host: String::new(), pid: 1, started: 0, machine: None };
        let milliseconds = u64::try_from(DURATION.as_millis()).unwrap();
        let (run, shard, renewed) = (String::new(), String::new(), Timestamp::UNIX_EPOCH);
        let sequence = attempt.sequence;
        Box::new(LeaseRecord { state, process, sequence, counter, run, shard, milliseconds, renewed })
    }

    fn attempt(&mut self, process: usize) -> WriteAttempt {
        let now = self.now;
        let process = &mut self.processes[process];
        process.sequence += 1;
        WriteAttempt { sequence: process.sequence, sent: process.clock(now) }
    }

    /// Handles a request in the store.
    fn arrive(&mut self, request: Request) -> Answer {
        let current = self.versions.last().unwrap().clone();
        match request {
            Request::Read if self.rng.percent(5) => {
                let index = self.rng.below(self.versions.len());
                Answer::Stored(self.versions[index].clone())
            }
            Request::Read => Answer::Stored(current),
            Request::Write { record, precondition } => {
                let holds = match (&precondition, &current) {
                    (Precondition::IfAbsent, None) => true,
                    (Precondition::IfMatch(etag), Some(stored)) => stored.etag == *etag,
                    _ => false,
                };
                if !holds {
                    return Answer::Stale;
                }
                // A tag depends only on the content, as in real stores.
                let etag = Etag(format!("{} {} {:?}", record.process.id, record.sequence, record.state));
                self.versions.push(Some(StoredLease { etag: etag.clone(), record: Some(*record) }));
                Answer::Written(etag)
            }
        }
    }

    fn run(&mut self) {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            self.now = at;
            match event {
                Event::Arrive { process, call, request } => {
                    let answer = self.arrive(request);
                    if self.rng.percent(90) {
                        let at = self.now + self.delay();
                        self.schedule(at, Event::Deliver { process, call, answer });
                    }
                }
                Event::Wake { process, call } | Event::Deliver { process, call, .. }
                    if self.processes[process].call != call => {}
                // A process that is paused handles its events after the pause, in any order.
                Event::Wake { process, .. } | Event::Deliver { process, .. }
                    if self.processes[process].paused_until > self.now =>
                {
                    let at = self.processes[process].paused_until + self.below(3);
                    self.schedule(at, event);
                }
                Event::Wake { process, .. } => self.act(process),
                Event::Deliver { process, answer, .. } => {
                    self.processes[process].call += 1;
                    self.answered(process, answer);
                }
            }
        }
    }

    /// Continues a process that waits for no response.
    fn act(&mut self, process: usize) {
        if self.now > HORIZON {
            return;
        }
        if self.rng.percent(4) {
            self.coverage.pauses += 1;
            self.processes[process].paused_until = self.now + self.below(30_000);
            return self.wake(process, 0);
        }
        if self.rng.percent(2) {
            self.kill(process);
            return self.wake(process, 5_000);
        }
        let now = self.processes[process].clock(self.now);
        let Activity::Applying(mut lease, ends, _) = self.processes[process].activity.clone() else {
            self.processes[process].activity = Activity::Acquiring;
            return self.send(process, Request::Read);
        };
        if self.now >= ends {
            // Only some runs release the lease; the other runs are abandoned.
            if self.rng.percent(80) {
                let attempt = self.attempt(process);
                let record = self.record(process, LeaseState::Released, attempt, lease.next_counter());
                let precondition = Precondition::IfMatch(lease.etag().clone());
                self.send(process, Request::Write { record, precondition });
            }
            return self.idle(process);
        }
        if lease.check(now).is_err() {
            self.coverage.lost += 1;
            return self.idle(process);
        }
        if lease.next_attempt().is_some_and(|next| now >= next) {
            let attempt = self.attempt(process);
            let record = self.record(process, LeaseState::Held, attempt, lease.next_counter());
            let precondition = Precondition::IfMatch(lease.etag().clone());
            self.processes[process].activity = Activity::Applying(lease, ends, Renewal::Writing(attempt));
            return self.send(process, Request::Write { record, precondition });
        }
        self.processes[process].activity = Activity::Applying(lease, ends, Renewal::None);
        self.wake(process, 1_000);
    }

    fn idle(&mut self, process: usize) {
        self.processes[process].activity = Activity::Idle;
        self.processes[process].call += 1;
        self.wake(process, 4_000);
    }

    /// Kills the process and replaces it by another process with another clock.
    fn kill(&mut self, process: usize) {
        self.coverage.kills += 1;
        self.order += 1;
        let (call, id) = (self.processes[process].call + 1, format!("{process}.{}", self.order));
        let next = self.start_process(id);
        let former = std::mem::replace(&mut self.processes[process], SimulatedProcess { call, ..next });
        self.ended.insert(former.id);
    }

    fn answered(&mut self, process: usize, answer: Answer) {
        match (self.processes[process].activity.clone(), answer) {
            (Activity::Acquiring, Answer::Stored(stored)) => self.judge(process, stored),
            (Activity::Claiming(attempt, counter), Answer::Written(etag)) => {
                self.hold(process, attempt, etag, counter);
            }
            (Activity::Claiming(attempt, counter), _) => {
                self.processes[process].activity = Activity::Confirming(attempt, counter);
                self.send(process, Request::Read);
            }
            (Activity::Confirming(attempt, counter), Answer::Stored(stored)) => {
                let id = self.processes[process].id.clone();
                match stored {
                    Some(stored) if stored.is_write_of(&id, attempt.sequence) => {
                        self.coverage.confirmed += 1;
                        self.hold(process, attempt, stored.etag, counter);
                    }
                    stored => self.judge(process, stored),
                }
            }
            (Activity::Applying(mut lease, ends, Renewal::Writing(attempt)), Answer::Written(etag)) => {
                lease.confirm(attempt, etag);
                self.processes[process].activity = Activity::Applying(lease, ends, Renewal::None);
                self.assert_alone();
                self.wake(process, 1_000);
            }
            (Activity::Applying(lease, ends, Renewal::Writing(attempt)), _) => {
                self.processes[process].activity =
                    Activity::Applying(lease, ends, Renewal::ReadingBack(attempt));
                self.send(process, Request::Read);
            }
            (Activity::Applying(mut lease, ends, Renewal::ReadingBack(attempt)), answer) => {
                let now = self.processes[process].clock(self.now);
                match answer {
                    Answer::Stored(stored) => lease.read_back(attempt, stored, now),
                    _ => lease.retry_later(now),
                }
                self.processes[process].activity = Activity::Applying(lease, ends, Renewal::None);
                self.assert_alone();
                self.wake(process, 1_000);
            }
            _ => self.idle(process),
        }
    }

    /// Judges a lease that was read and tries to acquire it if it is free.
    fn judge(&mut self, process: usize, stored: Option<StoredLease>) {
        let mut observation = self.processes[process].observation.take();
        let available = {
            let own = &self.processes[process];
            let is_gone = |process: &LeaseProcess| own.is_local && self.ended.contains(&process.id);
            let (timing, now) = (LeaseTiming::new(DURATION), own.clock(self.now));
            Observer { process: &own.id, timing, now, is_gone: &is_gone }
                .judge(&mut observation, stored.as_ref())
        };
        self.processes[process].observation = observation;
        let Availability::Free { precondition, counter } = available else { return self.idle(process) };
        let is_held =
            stored.and_then(|stored| stored.record).is_some_and(|record| record.state == LeaseState::Held);
        self.coverage.takeovers += usize::from(is_held);
        let attempt = self.attempt(process);
        self.processes[process].activity = Activity::Claiming(attempt, counter);
        let record = self.record(process, LeaseState::Held, attempt, counter);
        self.send(process, Request::Write { record, precondition });
    }

    fn hold(&mut self, process: usize, attempt: WriteAttempt, etag: Etag, counter: u64) {
        self.coverage.acquired += 1;
        let lease =
            HeldLease::new(LeaseTiming::new(DURATION), &self.processes[process].id, attempt, etag, counter);
        let ends = self.now + self.below(40_000);
        self.processes[process].activity = Activity::Applying(lease, ends, Renewal::None);
        self.assert_alone();
        self.wake(process, 1_000);
    }

    /// Asserts that the fence of at most one process holds. The check after each response suffices, because a fence
    /// starts to hold, or holds longer, only after a response.
    fn assert_alone(&self) {
        let believing = self.processes.iter().filter(|process| process.believes(self.now));
        let believing: Vec<&str> = believing.map(|process| process.id.as_str()).collect();
        assert!(believing.len() <= 1, "at {} ms, the fences of {believing:?} hold", self.now);
    }

    /// Asserts that a process that is alone acquires the lease when no more faults occur, and that this takes no
    /// longer than a takeover.
    fn assert_recovers(&mut self) {
        let (timing, mut observation) = (LeaseTiming::new(DURATION), None);
        let stored = self.versions.last().unwrap().clone();
        for second in 0..=timing.takeover().as_secs() {
            let now = Duration::from_secs(second);
            let observer = Observer { process: "last", timing, now, is_gone: &|_| false };
            if matches!(observer.judge(&mut observation, stored.as_ref()), Availability::Free { .. }) {
                return;
            }
        }
        panic!("the lease stays held: {stored:?}");
    }
}

#[test]
fn at_most_one_fence_holds_in_random_histories() {
    let mut all = Coverage::default();
    for seed in 0..chaos_count(1_000) {
        let mut simulation = Simulation::new(seed);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            simulation.run();
            simulation.assert_recovers();
        }));
        assert!(ran.is_ok(), "seed {seed}");
        let Coverage { acquired, takeovers, lost, confirmed, pauses, kills } = simulation.coverage;
        all.acquired += acquired;
        all.takeovers += takeovers;
        all.lost += lost;
        all.confirmed += confirmed;
        all.pauses += pauses;
        all.kills += kills;
    }
    let Coverage { acquired, takeovers, lost, confirmed, pauses, kills } = all;
    for count in [acquired, takeovers, lost, confirmed, pauses, kills] {
        assert!(count > 20, "{all:?}");
    }
}
