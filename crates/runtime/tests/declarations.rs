//! Concurrent runs share one declared state.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod shelves;
}

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use qontract_runtime::{
    About, Cx, Data, Declaration, Fault, Function, FunctionState, LooksUp, Options, Room, Source, Terms,
};
use support::shelves::{Stock, source};

/// Counts how often its state is declared, for which it reads a resource.
struct Counting {
    about: About,
    asked: Arc<AtomicUsize>,
}

impl Function for Counting {
    fn about(&self) -> &About {
        &self.about
    }

    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        data.resource("/read").unwrap();
        match options.values("end") {
            [] => Ok(Some(FunctionState::new(number.into()))),
            [how, ..] => Err(Fault::author(format!("{how} {number}"))),
        }
    }

    async fn run(&self, _: &Cx<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

struct Play {
    integration: Room,
    asked: Arc<AtomicUsize>,
    source: Arc<dyn Source>,
}

impl Play {
    fn new() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let mut about = About::new("counting", "");
        about.looks_up = LooksUp::Always;
        let integration = Room::function(Counting { about, asked: Arc::clone(&asked) });
        Self { integration, asked, source: source(&Stock::default()) }
    }

    fn data(&self) -> Data {
        Data::new(Arc::clone(&self.source), Terms::of(self.integration.about()))
    }

    fn declare(&self) -> Declaration {
        let data = self.data();
        let declared = self.integration.declare(&data, &Options::default()).unwrap().unwrap();
        assert!(data.asked().resources.contains("/read"), "the reads are logged for each caller");
        declared
    }

    fn times(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[test]
fn a_state_that_another_caller_holds_is_shared() {
    let play = Play::new();
    let first = play.declare();
    assert_eq!((play.declare().json(), play.times()), (first.json(), 1));
    drop(first);
    drop(play.declare());
    assert_eq!(play.times(), 2, "a state without holders is not cached");
}

#[test]
fn concurrent_callers_wait_for_one_declaration() {
    let (play, all) = (Play::new(), Barrier::new(8));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let declared = play.declare();
                all.wait();
                drop(declared);
            });
        }
    });
    assert_eq!(play.times(), 1);
}

#[test]
fn other_data_flags_and_policies_are_declared_separately() {
    let mut play = Play::new();
    let _first = play.declare();
    let mut options = Options::default();
    options.add("other", "yes");
    let _flags = play.integration.declare(&play.data(), &options).unwrap();
    assert_eq!(play.times(), 2);
    let mut terms = Terms::of(play.integration.about());
    terms.allowed = Some(["/shelf".to_owned()].into());
    let _terms =
        play.integration.declare(&Data::new(Arc::clone(&play.source), terms), &Options::default()).unwrap();
    assert_eq!(play.times(), 3);
    play.source = source(&Stock::default());
    let _data = play.declare();
    assert_eq!(play.times(), 4, "equal data from another source may have other locations");
}

#[test]
fn a_failed_declaration_is_tried_again() {
    let play = Play::new();
    let mut options = Options::default();
    options.add("end", "fails");
    let declare = || play.integration.declare(&play.data(), &options).unwrap_err().text;
    assert_eq!((declare(), declare()), ("fails 0".to_owned(), "fails 1".to_owned()));
}
