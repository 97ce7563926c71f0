//! Tests of leases in a directory and on an S3 server.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::sync::atomic::AtomicBool;

use qontract_access::{Mode, Permits};
use qontract_client_blobs::{
    BlobLayer, BlobOperation, Directory, LayeredBlobs, S3, S3Credentials, S3Settings,
};
use qontract_client_http::Secret;
use qontract_runtime::ShardKey;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, permits};
use tokio::time::Instant;

use super::*;

/// A clock that tests can step, and a list of processes that have ended.
struct TestHost {
    started: Instant,
    ahead: Mutex<Duration>,
    gone: Mutex<Vec<String>>,
}

impl TestHost {
    fn new() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), ahead: Mutex::default(), gone: Mutex::default() })
    }

    fn step(&self, by: Duration) {
        *self.ahead.lock() += by;
    }
}

impl LeaseHost for TestHost {
    fn elapsed(&self) -> Duration {
        self.started.elapsed() + *self.ahead.lock()
    }

    fn wall_time(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn is_gone(&self, process: &LeaseProcess) -> bool {
        self.gone.lock().contains(&process.id)
    }
}

const MINUTE: Duration = Duration::from_mins(1);

/// A process with its leases, which runs on a host of its own.
struct TestProcess {
    leases: LeaseTable,
    host: Arc<TestHost>,
    permits: Permits,
    shard: ShardKey,
}

impl TestProcess {
    fn new(blobs: &Arc<dyn Blobs>, id: &str) -> Self {
        let host = TestHost::new();
        let process =
            LeaseProcess { id: id.to_owned(), host: "h".to_owned(), pid: 7, started: 1, machine: None };
        let leases =
            LeaseTable::new(Arc::clone(blobs), Arc::clone(&host) as _, process, LeaseTiming::new(MINUTE));
        Self { leases, host, permits: permits(Mode::Real), shard: ShardKey::new([("cluster", "c/1")]) }
    }

    fn request<'a>(&'a self, run: &'a str) -> LeaseRequest<'a> {
        let (read, write) = (&self.permits.read, self.permits.write.as_ref().unwrap());
        LeaseRequest { integration: "x", shard: &self.shard, run, read, write }
    }

    async fn acquire(&self) -> LeaseAcquisition {
        self.leases.acquire(self.request("run-1")).await
    }

    async fn acquired(&self) -> Box<dyn Lease> {
        match self.acquire().await {
            LeaseAcquisition::Acquired(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    async fn holder(&self) -> LeaseHolder {
        match self.acquire().await {
            LeaseAcquisition::Held(holder) => holder,
            other => panic!("{other:?}"),
        }
    }

    async fn release(&self, lease: &dyn Lease) {
        lease.release(&self.permits.read, self.permits.write.as_ref().unwrap()).await;
    }

    /// Renews a lease for some time.
    async fn maintain(&self, lease: &dyn Lease, time: Duration) {
        let maintained = lease.maintain(&self.permits.read, self.permits.write.as_ref().unwrap());
        assert!(timeout(time, maintained).await.is_err());
    }
}

fn directory(scratch: &Scratch) -> Arc<dyn Blobs> {
    Arc::new(Directory::new(scratch.path()))
}

/// Checks that leases work in this store.
async fn contract(blobs: Arc<dyn Blobs>) {
    let [one, two] = ["1", "2"].map(|id| TestProcess::new(&blobs, id));
    let lease = one.acquired().await;
    let expect = LeaseHolder {
        text: "run `run-1` on `h`, pid 7, observed without a renewal for 0 s".to_owned(),
        liveness: HolderLiveness::Unknown,
    };
    assert_eq!(two.holder().await, expect);
    two.host.step(MINUTE);
    let holder = two.holder().await;
    assert!(holder.text.ends_with("for 60 s"), "{holder:?}");
    // A renewal is observed, so the lease expires later.
    let renewed = one.leases.0.next_attempt();
    let held =
        one.leases.0.read(&one.permits.read, &lease_key("x", &one.shard).unwrap()).await.unwrap().unwrap();
    let write = LeaseWrite {
        subject: &LeaseSubject {
            key: lease_key("x", &one.shard).unwrap(),
            run: "run-1".to_owned(),
            shard: String::new(),
        },
        state: LeaseState::Held,
        counter: 2,
        precondition: Precondition::IfMatch(held.etag),
    };
    one.leases.0.put(one.permits.write.as_ref().unwrap(), write, renewed).await.unwrap();
    assert_eq!(two.holder().await.liveness, HolderLiveness::Alive);
    two.host.step(MINUTE * 11 / 10);
    let other = two.acquired().await;
    // The former holder stops at its own deadline and cannot release the lease of its successor.
    assert_eq!(lease.check(), Ok(()));
    one.host.step(MINUTE);
    assert_eq!(lease.check(), Err(LeaseLoss("it was not renewed for 60 s".to_owned())));
    one.release(&*lease).await;
    assert_eq!(one.holder().await.liveness, HolderLiveness::Unknown);
    two.release(&*other).await;
    drop(other);
    drop(lease);
    let lease = one.acquired().await;
    one.release(&*lease).await;
}

#[tokio::test]
async fn a_directory_passes_the_contract_of_leases() {
    contract(directory(&Scratch::new())).await;
}

#[tokio::test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_bucket_passes_the_contract_of_leases() {
    let server = TestAws::start();
    server.bucket("leases");
    let credentials = S3Credentials::Keys { id: "AKIATEST".to_owned(), secret: Secret::new("s3cret-key") };
    let mut settings = S3Settings::new("leases", "us-east-1", credentials);
    settings.endpoint = Some(server.url().parse().unwrap());
    contract(Arc::new(S3::new(&permits(Mode::Real).read, settings).await)).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_held_as_long_as_it_is_renewed() {
    let scratch = Scratch::new();
    let blobs = directory(&scratch);
    let [one, two] = ["1", "2"].map(|id| TestProcess::new(&blobs, id));
    let lease = one.acquired().await;
    assert_eq!(two.holder().await.liveness, HolderLiveness::Unknown);
    let request = two.request("run-2");
    let (waited, ()) = tokio::join!(two.leases.wait(request), one.maintain(&*lease, 5 * MINUTE));
    assert_eq!(waited.unwrap_err().liveness, HolderLiveness::Alive);
    assert_eq!(lease.check(), Ok(()));
    two.holder().await;
    one.release(&*lease).await;
    two.acquired().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_waited_for_and_taken_over() {
    let scratch = Scratch::new();
    let blobs = directory(&scratch);
    let [one, two] = ["1", "2"].map(|id| TestProcess::new(&blobs, id));
    let lease = one.acquired().await;
    two.holder().await;
    let began = Instant::now();
    two.leases.wait(two.request("run-2")).await.unwrap();
    assert!((66..68).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let other = two.acquired().await;
    assert!(lease.check().is_err());
    assert_eq!(other.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_finds_a_successor_ends_the_lease() {
    let scratch = Scratch::new();
    let blobs = directory(&scratch);
    let [one, two] = ["1", "2"].map(|id| TestProcess::new(&blobs, id));
    let lease = one.acquired().await;
    // Only a machine whose clock is wrong by more than the margin takes the lease over so early.
    two.holder().await;
    two.host.step(2 * MINUTE);
    let other = two.acquired().await;
    one.maintain(&*lease, MINUTE / 2).await;
    let loss = LeaseLoss("run `run-1` on `h` (pid 7) took it over".to_owned());
    assert_eq!(lease.check(), Err(loss));
    assert_eq!(other.check(), Ok(()));
}

#[tokio::test]
async fn the_lease_of_a_process_that_has_ended_is_free() {
    let scratch = Scratch::new();
    let blobs = directory(&scratch);
    let [one, two] = ["1", "2"].map(|id| TestProcess::new(&blobs, id));
    let _lease = one.acquired().await;
    two.holder().await;
    two.host.gone.lock().push("1".to_owned());
    two.acquired().await;
}

#[tokio::test]
async fn two_runs_of_one_process_do_not_share_a_lease() {
    let scratch = Scratch::new();
    let process = TestProcess::new(&directory(&scratch), "1");
    let lease = process.acquired().await;
    let holder = process.holder().await;
    assert_eq!(holder.text, "run `run-1` of this process");
    // A run that was dropped holds no lease, and a run that hangs loses its lease.
    drop(lease);
    let hangs = process.acquired().await;
    process.host.step(MINUTE);
    let next = process.acquired().await;
    drop(hangs);
    assert_eq!(next.check(), Ok(()));
    assert_eq!(process.holder().await.liveness, HolderLiveness::Alive);
}

#[tokio::test]
async fn a_damaged_lease_is_taken_over_when_it_stays_unchanged() {
    let scratch = Scratch::new();
    let process = TestProcess::new(&directory(&scratch), "1");
    let key = lease_key("x", &process.shard).unwrap();
    scratch.write(&format!("{key}.blob"), "{");
    assert!(process.holder().await.text.starts_with("a process of another version"));
    process.host.step(MINUTE * 11 / 10);
    process.acquired().await;
}

/// Loses the responses to writes or fails all requests.
struct FaultyLayer {
    is_available: AtomicBool,
    loses_answers: AtomicBool,
}

fn fault() -> BlobsError {
    let (what, reason) = ("request".to_owned(), "connection reset".to_owned());
    BlobsError::Unreachable { what, reason, transient: true }
}

impl BlobLayer for FaultyLayer {
    fn send<'a, T: Send + 'a>(
        &'a self,
        operation: BlobOperation,
        request: BoxFuture<'a, Result<T, BlobsError>>,
    ) -> BoxFuture<'a, Result<T, BlobsError>> {
        async move {
            if !self.is_available.load(Ordering::Relaxed) {
                return Err(fault());
            }
            let answer = request.await;
            let is_lost = operation == BlobOperation::Write && self.loses_answers.load(Ordering::Relaxed);
            if is_lost { Err(fault()) } else { answer }
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answers_lose_no_lease_and_an_outage_only_if_it_lasts() {
    let scratch = Scratch::new();
    let layer = FaultyLayer { is_available: AtomicBool::new(true), loses_answers: AtomicBool::new(true) };
    let store = Arc::new(LayeredBlobs::new(directory(&scratch), layer));
    let blobs: Arc<dyn Blobs> = Arc::clone(&store) as _;
    let store = &store.layer;
    let [one, two] = ["1", "2"].map(|id| TestProcess::new(&blobs, id));
    let lease = one.acquired().await;
    one.maintain(&*lease, 5 * MINUTE).await;
    assert_eq!(lease.check(), Ok(()));
    store.is_available.store(false, Ordering::Relaxed);
    one.maintain(&*lease, MINUTE / 2).await;
    assert_eq!(lease.check(), Ok(()));
    store.is_available.store(true, Ordering::Relaxed);
    one.maintain(&*lease, 2 * MINUTE).await;
    assert_eq!(lease.check(), Ok(()));
    store.is_available.store(false, Ordering::Relaxed);
    one.maintain(&*lease, MINUTE).await;
    let loss = lease.check().unwrap_err().0;
    assert!(loss.starts_with("it was not renewed for "), "{loss}");
    let LeaseAcquisition::Unavailable(reason) = two.acquire().await else { panic!("the store is away") };
    assert_eq!(reason, "request failed: connection reset");
    store.is_available.store(true, Ordering::Relaxed);
    one.release(&*lease).await;
    assert!(matches!(two.acquire().await, LeaseAcquisition::Unavailable(_)), "it is not requested at once");
    two.host.step(MINUTE);
    two.acquired().await;
}
