//! Tests of the reconciled data of loops.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::Mode;
use qontract_client_blobs::{BlobLayer, BlobOperation, BlobsError, Directory, LayeredBlobs};
use qontract_journal::{JournalLocation, MissingJournal};
use qontract_runtime::guard::{Budgets, MemoryLedger};
use qontract_testkit::Scratch;
use tokio::sync::watch;

use super::*;

/// A source whose bundles are only in the journal.
struct NoSource;

impl DataSource for NoSource {
    fn current(&self) -> anyhow::Result<Arc<PinnedData>> {
        unreachable!()
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        unreachable!()
    }
}

/// Data with one team of this name.
fn data(name: &str) -> Arc<PinnedData> {
    let bundle = bundle(name);
    let input = Input { bundle, repo: None };
    let engine = input.engine(None, &SchemaCache::default()).unwrap();
    Arc::new(PinnedData::with_engine(input, Arc::new(engine), &Layout::default()))
}

fn bundle(name: &str) -> Bundle {
    let json = format!(
        r#"{{"git_commit": "", "git_commit_timestamp": "", "schemas": {{}}, "resources": {{}},
        "graphql": [
            {{"name": "Query", "fields": [
                {{"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}}]}},
            {{"name": "Team", "fields": [{{"name": "name", "type": "string"}}]}}],
        "data": {{"/core.yml": {{"$schema": "/team.yml", "name": "{name}"}}}}}}"#
    );
    let mut bytes = Vec::new();
    let load = |bytes: &[u8]| qontract_bundle::load(bytes, &Pool::default()).unwrap();
    load(json.as_bytes()).write_to(&mut bytes).unwrap();
    load(&bytes)
}

/// The reconciled data of a loop with this flag, after a restart of its process.
fn restarted(scratch: &Scratch, source: &str, flag: Option<&str>) -> ReconciledData {
    stored_in(&journal::of_sandbox(scratch.path()), scratch, source, flag)
}

fn stored_in(journal: &Journal, scratch: &Scratch, source: &str, flag: Option<&str>) -> ReconciledData {
    let mut settings = RunSettings::new(Mode::Real, Budgets::default(), Arc::new(MemoryLedger::default()));
    if let Some(value) = flag {
        settings.options.add("cluster-name", value);
    }
    let folder = journal::folder_in(scratch.path());
    ReconciledData::stored(journal, Some(&folder), source.to_owned(), "x", &settings)
}

/// The sha of the data that `head` is compared with.
async fn base(reconciled: &ReconciledData, head: &Arc<PinnedData>) -> Option<String> {
    reconciled.base_of(head, &NoSource).await.unwrap().map(|base| base.source.sha().to_owned())
}

/// A run on this data.
async fn run(reconciled: &ReconciledData, head: &Arc<PinnedData>, ended: RunEnd) -> Option<String> {
    let base = base(reconciled, head).await;
    reconciled.ran(head, ended).await.unwrap();
    base
}

fn bundles(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.path().join("journal/reconciled/bundles")).unwrap().count()
}

fn sha(data: &Arc<PinnedData>) -> String {
    data.source.sha().to_owned()
}

#[tokio::test]
async fn the_last_reconciled_data_survives_a_restart() {
    let scratch = Scratch::new();
    let [one, two, three] = ["one", "two", "three"].map(data);
    let first = restarted(&scratch, "repo", None);
    assert_eq!(run(&first, &one, RunEnd::Ok).await, None);
    assert_eq!(base(&first, &two).await, Some(sha(&one)));
    // A run that failed or held a change leaves work for the next run.
    first.ran(&two, RunEnd::Failed).await.unwrap();
    first.ran(&two, RunEnd::Held).await.unwrap();
    let second = restarted(&scratch, "repo", None);
    assert_eq!(base(&second, &two).await, Some(sha(&one)));
    second.ran(&two, RunEnd::Degraded).await.unwrap();
    assert_eq!(base(&second, &two).await, None);
    let third = restarted(&scratch, "repo", None);
    assert_eq!(base(&third, &three).await, Some(sha(&two)));
    assert_eq!(bundles(&scratch), 1, "the older bundle is removed");
}

#[tokio::test]
async fn a_run_compares_with_the_data_of_the_last_run_that_left_nothing_to_do() {
    let [first, second, third] = ["one", "two", "three"].map(data);
    let reconciled = ReconciledData::default();
    assert_eq!(base(&reconciled, &first).await, None);
    // The first data is the base even if its run failed, because no earlier data exists.
    reconciled.ran(&first, RunEnd::Failed).await.unwrap();
    assert_eq!(base(&reconciled, &first).await, None);
    assert_eq!(base(&reconciled, &second).await, Some(sha(&first)));
    for ended in [RunEnd::Failed, RunEnd::Held, RunEnd::Transient, RunEnd::Interrupted] {
        reconciled.ran(&second, ended).await.unwrap();
        assert_eq!(base(&reconciled, &third).await, Some(sha(&first)), "{ended:?}");
    }
    for ended in [RunEnd::Ok, RunEnd::Degraded] {
        reconciled.ran(&second, ended).await.unwrap();
        assert_eq!(base(&reconciled, &second).await, None, "{ended:?}");
        assert_eq!(base(&reconciled, &third).await, Some(sha(&second)), "{ended:?}");
    }
}

#[tokio::test]
async fn data_of_another_directory_is_not_used() {
    let scratch = Scratch::new();
    let [one, two] = ["one", "two"].map(data);
    run(&restarted(&scratch, "repo", None), &one, RunEnd::Ok).await;
    assert_eq!(base(&restarted(&scratch, "other", None), &two).await, None);
    // Loops with other flags reconcile other shards, so their data is separate.
    assert_eq!(base(&restarted(&scratch, "repo", Some("a")), &two).await, None);
    assert_eq!(base(&restarted(&scratch, "repo", None), &two).await, Some(sha(&one)));
}

#[tokio::test]
async fn processes_of_one_loop_share_its_data() {
    let scratch = Scratch::new();
    let [one, two, three, four] = ["one", "two", "three", "four"].map(data);
    let [first, second] = [(); 2].map(|()| restarted(&scratch, "repo", None));
    run(&first, &one, RunEnd::Ok).await;
    assert_eq!(run(&second, &two, RunEnd::Ok).await, Some(sha(&one)));
    // The first process has not reconciled `two`, but it compares with `two`.
    assert_eq!(run(&first, &three, RunEnd::Ok).await, Some(sha(&two)));
    // Data that another process has reconciled leaves nothing to clean up.
    assert_eq!(base(&second, &three).await, None);
    assert_eq!(base(&second, &four).await, Some(sha(&three)));
}

#[tokio::test]
async fn a_run_on_older_data_does_not_replace_the_pointer_of_a_newer_one() {
    let scratch = Scratch::new();
    let [one, two, three] = ["one", "two", "three"].map(data);
    run(&restarted(&scratch, "repo", None), &data("zero"), RunEnd::Ok).await;
    let [slow, fast] = [(); 2].map(|()| restarted(&scratch, "repo", None));
    // The slow process starts its run on `one`; meanwhile the other one reconciles `two`.
    base(&slow, &one).await;
    run(&fast, &two, RunEnd::Ok).await;
    slow.ran(&one, RunEnd::Ok).await.unwrap();
    assert_eq!(base(&restarted(&scratch, "repo", None), &three).await, Some(sha(&two)));
    assert_eq!(base(&slow, &three).await, Some(sha(&two)));
}

#[tokio::test]
async fn lost_or_damaged_data_is_an_error_once() {
    let scratch = Scratch::new();
    let [one, two] = ["one", "two"].map(data);
    run(&restarted(&scratch, "repo", None), &one, RunEnd::Ok).await;
    let folder = scratch.path().join("journal/reconciled");
    let [bundle] = <[_; 1]>::try_from(files(&folder.join("bundles"))).unwrap();
    let [pointer] = <[_; 1]>::try_from(files(&folder.join("loops"))).unwrap();
    for (file, content) in [(&bundle, None), (&bundle, Some("{")), (&pointer, Some("{}"))] {
        match content {
            None => fs::remove_file(file).unwrap(),
            Some(text) => fs::write(file, text).unwrap(),
        }
        let reconciled = restarted(&scratch, "repo", None);
        let error = reconciled.base_of(&two, &NoSource).await.err().expect("it is reported");
        let error = format!("{error:#}");
        assert!(error.contains("are not cleaned up; run once with `--base REV`"), "{error}");
        assert_eq!(base(&reconciled, &two).await, None);
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn bundles_that_an_unreadable_pointer_may_name_are_kept() {
    let scratch = Scratch::new();
    let [one, two] = ["one", "two"].map(data);
    let reconciled = restarted(&scratch, "repo", None);
    run(&reconciled, &one, RunEnd::Ok).await;
    scratch.write("journal/reconciled/loops/other.blob", "{");
    run(&reconciled, &two, RunEnd::Ok).await;
    assert_eq!(bundles(&scratch), 2);
}

#[tokio::test]
async fn pointers_of_earlier_versions_are_used_if_they_are_newer() {
    let scratch = Scratch::new();
    let [one, two, three] = ["one", "two", "three"].map(data);
    let write_legacy = |data: &Arc<PinnedData>| {
        let name = pointer_name();
        let sha = data.source.sha();
        let mut bytes = Vec::new();
        data.bundle().unwrap().write_to(&mut bytes).unwrap();
        scratch.write(&format!("journal/reconciled/bundles/{sha}.json"), bytes);
        let pointer = format!(r#"{{"version": 1, "data": "repo", "sha": "{sha}"}}"#);
        scratch.write(&format!("journal/reconciled/{name}.json"), pointer);
    };
    write_legacy(&one);
    assert_eq!(run(&restarted(&scratch, "repo", None), &two, RunEnd::Ok).await, Some(sha(&one)));
    assert_eq!(base(&restarted(&scratch, "repo", None), &three).await, Some(sha(&two)));
    // A process of the earlier version ran since then.
    write_legacy(&one);
    assert_eq!(base(&restarted(&scratch, "repo", None), &three).await, Some(sha(&one)));
}

/// The name of the loop without flags.
fn pointer_name() -> String {
    let settings = RunSettings::new(Mode::Real, Budgets::default(), Arc::new(MemoryLedger::default()));
    let name = LoopName::new("x", &settings);
    name.of_slot(name.slot)
}

/// Lets every request fail while the store is not available.
struct FlakyLayer {
    is_away: AtomicBool,
}

impl BlobLayer for FlakyLayer {
    fn send<'a, T: Send + 'a>(
        &'a self,
        _: BlobOperation,
        request: BoxFuture<'a, Result<T, BlobsError>>,
    ) -> BoxFuture<'a, Result<T, BlobsError>> {
        async move {
            if !self.is_away.load(Ordering::Relaxed) {
                return request.await;
            }
            let (what, reason) = ("the test".to_owned(), "away".to_owned());
            Err(BlobsError::Unreachable { what, reason, transient: true })
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_pointer_that_could_not_be_read_is_not_replaced() {
    let scratch = Scratch::new();
    let [one, two] = ["one", "two"].map(data);
    run(&restarted(&scratch, "repo", None), &one, RunEnd::Ok).await;
    let directory = Directory::new(journal::folder_in(scratch.path()));
    let layer = FlakyLayer { is_away: AtomicBool::new(true) };
    let store = Arc::new(LayeredBlobs::new(Arc::new(directory), layer));
    let location = JournalLocation { place: "test".to_owned(), init: String::new() };
    let journal = Journal::new(Arc::clone(&store) as _, location, MissingJournal::Lost);
    let reconciled = stored_in(&journal, &scratch, "repo", None);
    for _ in 0..2 {
        assert!(reconciled.base_of(&two, &NoSource).await.is_err());
        reconciled.ran(&two, RunEnd::Ok).await.unwrap();
    }
    store.layer.is_away.store(false, Ordering::Relaxed);
    assert_eq!(base(&reconciled, &two).await, Some(sha(&one)));
}
