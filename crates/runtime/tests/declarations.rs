//! What is declared of the same data at the same time is declared once.
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

/// Counts how often it is asked for its state, for which it reads a resource.
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
    room: Room,
    asked: Arc<AtomicUsize>,
    source: Arc<dyn Source>,
}

impl Play {
    fn new() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let mut about = About::new("counting", "");
        about.looks_up = LooksUp::Always;
        let room = Room::function(Counting { about, asked: Arc::clone(&asked) });
        Self { room, asked, source: source(&Stock::default()) }
    }

    fn data(&self) -> Data {
        Data::new(Arc::clone(&self.source), Terms::of(self.room.about()))
    }

    fn declare(&self) -> Declaration {
        let data = self.data();
        let declared = self.room.declare(&data, &Options::default()).unwrap().unwrap();
        assert!(data.asked().resources.contains("/read"), "what was asked counts for each");
        declared
    }

    fn times(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[test]
fn who_asks_while_another_has_it_shares_it() {
    let play = Play::new();
    let first = play.declare();
    assert_eq!((play.declare().json(), play.times()), (first.json(), 1));
    drop(first);
    drop(play.declare());
    assert_eq!(play.times(), 2, "nothing is kept that nobody has");
}

#[test]
fn many_at_once_wait_for_one() {
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
fn other_data_other_flags_and_other_terms_are_declared_apart() {
    let mut play = Play::new();
    let _first = play.declare();
    let mut options = Options::default();
    options.add("other", "yes");
    let _flags = play.room.declare(&play.data(), &options).unwrap();
    assert_eq!(play.times(), 2);
    let mut terms = Terms::of(play.room.about());
    terms.allowed = Some(["/shelf".to_owned()].into());
    let _terms = play.room.declare(&Data::new(Arc::clone(&play.source), terms), &Options::default()).unwrap();
    assert_eq!(play.times(), 3);
    play.source = source(&Stock::default());
    let _data = play.declare();
    assert_eq!(play.times(), 4, "equal data from elsewhere may come with other places");
}

#[test]
fn what_failed_is_tried_again() {
    let play = Play::new();
    let mut options = Options::default();
    options.add("end", "fails");
    let declare = || play.room.declare(&play.data(), &options).unwrap_err().text;
    assert_eq!((declare(), declare()), ("fails 0".to_owned(), "fails 1".to_owned()));
}
