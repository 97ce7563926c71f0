//! Tests of a watched data repo: which bundle is used after a change.

use qontract_testkit::{Scratch, example};

use super::*;

const FILE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";

/// A copy of the example, and its data source.
struct Fixture {
    scratch: Scratch,
    repo: WatchedRepo,
    /// The findings that were shown.
    shown: Mutex<Vec<String>>,
}

impl Fixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.copy(&example(), "repo");
        let repo = WatchedRepo::new(scratch.path().join("repo"), Layout::default());
        Self { scratch, repo, shown: Mutex::default() }
    }

    fn poll(&self) -> PollResult {
        self.repo.poll(&|text| self.shown.lock().push(text.to_owned())).expect("readable files")
    }

    /// Rebuilds the bundle; `is_settled` is false if files change during the build.
    fn rebuild(&self, is_settled: bool) -> PollResult {
        let show = |text: &str| self.shown.lock().push(text.to_owned());
        self.repo.rebuild(&WakeReason::Elapsed, &show, &mut || is_settled).expect("readable files")
    }

    /// Appends a line to a file.
    fn append(&self, line: &str) {
        let text = self.scratch.read(FILE);
        self.scratch.write(FILE, format!("{text}{line}\n"));
    }

    fn sha(&self) -> String {
        self.repo.bundle_in_use().expect("a bundle")
    }
}

#[test]
fn a_change_is_used_once_and_announced() {
    let fixture = Fixture::new();
    assert!(fixture.repo.current().is_err(), "there is no bundle yet");
    let generation = fixture.repo.subscribe();
    assert_eq!(fixture.poll(), PollResult::New);
    assert_eq!((fixture.poll(), *generation.borrow()), (PollResult::Unchanged, 1));
    let before = fixture.sha();
    let text = fixture.scratch.read(FILE);
    fixture.scratch.write(FILE, text.replacen("description: ", "description: another ", 1));
    assert_eq!((fixture.poll(), *generation.borrow()), (PollResult::New, 2));
    assert_ne!(fixture.sha(), before);
    assert_eq!(*fixture.shown.lock(), [""; 0]);
}

#[test]
fn files_that_change_while_the_bundle_is_built_are_not_used() {
    let fixture = Fixture::new();
    assert_eq!(fixture.poll(), PollResult::New);
    let before = fixture.sha();
    // The data is also invalid, but findings in half-written files are not reported.
    fixture.append("nonsense: 1");
    assert_eq!((fixture.rebuild(false), fixture.sha()), (PollResult::Unsettled, before.clone()));
    assert_eq!(*fixture.shown.lock(), [""; 0]);
    assert_eq!((fixture.rebuild(true), fixture.sha()), (PollResult::Invalid, before));
}

#[test]
fn invalid_data_is_shown_once_and_the_last_bundle_stays() {
    let fixture = Fixture::new();
    assert_eq!(fixture.poll(), PollResult::New);
    let (before, text) = (fixture.sha(), fixture.scratch.read(FILE));
    fixture.append("nonsense: 1");
    assert_eq!(
        (fixture.rebuild(true), fixture.rebuild(true)),
        (PollResult::Invalid, PollResult::StillInvalid)
    );
    assert_eq!((fixture.shown.lock().len(), fixture.sha()), (1, before.clone()));
    assert!(fixture.repo.invalid().is_some());
    fixture.scratch.write(FILE, text);
    assert_eq!(
        (fixture.rebuild(true), fixture.rebuild(true)),
        (PollResult::ValidAgain, PollResult::Unchanged)
    );
    assert_eq!(fixture.sha(), before);
    assert!(fixture.repo.invalid().is_none());
}
