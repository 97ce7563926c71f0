//! Tests of the journal in a directory.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use qontract_access::{Mode, Permits};
use qontract_client_blobs::Directory;
use qontract_runtime::guard::{LedgerEntry, ObjectRef};
use qontract_testkit::{Scratch, permits};

use super::*;

fn journal(scratch: &Scratch, absence: MissingJournal) -> Journal {
    let location = JournalLocation { place: "here".to_owned(), init: "init".to_owned() };
    Journal::new(Arc::new(Directory::new(scratch.path())), location, absence)
}

fn real() -> Permits {
    permits(Mode::Real)
}

fn state(name: &str) -> LedgerState {
    let object = ObjectRef { target: "t".to_owned(), kind: "k".to_owned(), name: name.to_owned() };
    let (run, shard) = ("run".to_owned(), "all".to_owned());
    let entry =
        LedgerEntry { at: jiff::Timestamp::UNIX_EPOCH, run, shard, caller: None, object, incarnation: None };
    LedgerState { removals: vec![entry], ..LedgerState::default() }
}

async fn load(journal: &Journal) -> Result<LedgerSnapshot, LedgerError> {
    journal.load(&real().read, "x").await
}

async fn store(journal: &Journal, over: Option<&str>, name: &str) -> Result<StoreResult, LedgerError> {
    journal.store(real().write.as_ref().unwrap(), "x", over, &state(name)).await
}

async fn init(journal: &Journal) -> InitResult {
    let permits = real();
    journal.init(&permits.read, permits.write.as_ref().unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_journal_that_was_never_initialised_cannot_be_used() {
    let scratch = Scratch::new();
    let lost = journal(&scratch, MissingJournal::Lost);
    assert!(matches!(load(&lost).await, Err(LedgerError::NotInitialised { .. })));
    assert_eq!(init(&lost).await, InitResult::Created);
    assert_eq!(load(&lost).await.unwrap().version, None);
    assert_eq!(store(&lost, None, "a").await, Ok(StoreResult::Done));
    assert_eq!(init(&lost).await, InitResult::Unchanged);
    assert_eq!(load(&lost).await.unwrap().state, state("a"), "intact parts stay as they are");
}

#[tokio::test]
async fn the_journal_of_a_new_target_is_created_with_the_first_write() {
    let scratch = Scratch::new();
    let new = journal(&scratch, MissingJournal::New);
    assert_eq!(load(&new).await.unwrap().state, LedgerState::default());
    assert_eq!(store(&new, None, "a").await, Ok(StoreResult::Done));
    assert_eq!(load(&journal(&scratch, MissingJournal::Lost)).await.unwrap().state, state("a"));
    std::fs::remove_dir_all(scratch.path()).unwrap();
    assert!(matches!(load(&new).await, Err(LedgerError::NotInitialised { .. })), "it was there before");
}

#[tokio::test]
async fn a_lost_or_manually_changed_ledger_is_an_error_until_it_is_initialised_again() {
    let scratch = Scratch::new();
    let journal = journal(&scratch, MissingJournal::New);
    store(&journal, None, "a").await.unwrap();
    let file = scratch.path().join("ledger/x.blob");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"a\"", "\"b\"")).unwrap();
    let error = load(&journal).await.unwrap_err().to_string();
    assert!(error.contains("its checksum is wrong"), "{error}");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(load(&journal).await, Err(LedgerError::Damaged { .. })));
    std::fs::remove_file(&file).unwrap();
    let error = load(&journal).await.unwrap_err().to_string();
    assert!(error.contains("has lost the removals of `x`"), "{error}");
    assert_eq!(init(&journal).await, InitResult::Repaired(vec!["x".to_owned()]));
    assert_eq!(load(&journal).await.unwrap().state, LedgerState::default());
    std::fs::write(scratch.path().join("format.blob"), "{").unwrap();
    assert!(matches!(load(&journal).await, Err(LedgerError::Damaged { .. })));
    assert_eq!(init(&journal).await, InitResult::Repaired(vec!["index".to_owned()]));
    assert!(load(&journal).await.is_ok());
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_initialised_again() {
    let scratch = Scratch::new();
    scratch.write("format.blob", r#"{"format": 2, "ledgers": []}"#);
    let journal = journal(&scratch, MissingJournal::Lost);
    let error = load(&journal).await.unwrap_err().to_string();
    assert!(error.contains("has format 2"), "{error}");
}

#[tokio::test]
async fn of_two_writers_over_one_version_the_second_gets_a_conflict() {
    let scratch = Scratch::new();
    let journal = journal(&scratch, MissingJournal::New);
    assert_eq!(store(&journal, None, "a").await, Ok(StoreResult::Done));
    assert_eq!(store(&journal, None, "b").await, Ok(StoreResult::Conflict));
    let version = load(&journal).await.unwrap().version;
    assert_eq!(store(&journal, version.as_deref(), "c").await, Ok(StoreResult::Done));
    assert_eq!(store(&journal, version.as_deref(), "d").await, Ok(StoreResult::Conflict));
    assert_eq!(load(&journal).await.unwrap().state, state("c"));
}
