//! Concurrent runs share one declared state.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use qontract_runtime::{
    AdHocReads, BundleReader, Data, Fault, Function, FunctionContext, FunctionState, Integration,
    IntegrationMeta, Options, QueryPolicy, SharedDeclaredState,
};
use support::fixture::{Stock, source};

/// Counts how often its state is declared, for which it reads a resource.
struct CountingFunction {
    about: IntegrationMeta,
    calls: Arc<AtomicUsize>,
}

impl Function for CountingFunction {
    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn state(&self, data: &Data, options: &Options) -> Result<Option<FunctionState>, Fault> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        data.resource("/read").unwrap();
        match options.values("end") {
            [] => Ok(Some(FunctionState::new(number.into()))),
            [how, ..] => Err(Fault::author(format!("{how} {number}"))),
        }
    }

    async fn run(&self, _: &FunctionContext<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

struct Fixture {
    integration: Integration,
    calls: Arc<AtomicUsize>,
    source: Arc<dyn BundleReader>,
}

impl Fixture {
    fn new() -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let mut about = IntegrationMeta::new("counting", "");
        about.ad_hoc_reads = AdHocReads::Anytime;
        let integration = Integration::function(CountingFunction { about, calls: Arc::clone(&calls) });
        Self { integration, calls, source: source(&Stock::default()) }
    }

    fn data(&self) -> Data {
        Data::new(Arc::clone(&self.source), QueryPolicy::of(self.integration.meta()))
    }

    fn declare(&self) -> SharedDeclaredState {
        let data = self.data();
        let declared = self.integration.declare(&data, &Options::default()).unwrap().unwrap();
        assert!(data.query_log().resources.contains("/read"), "the reads are logged for each caller");
        declared
    }

    fn times(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

#[test]
fn a_state_that_another_caller_holds_is_shared() {
    let play = Fixture::new();
    let first = play.declare();
    assert_eq!((play.declare().json(), play.times()), (first.json(), 1));
    drop(first);
    drop(play.declare());
    assert_eq!(play.times(), 2, "a state without holders is not cached");
}

#[test]
fn concurrent_callers_wait_for_one_declaration() {
    let (play, all) = (Fixture::new(), Barrier::new(8));
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
    let mut play = Fixture::new();
    let _first = play.declare();
    let mut options = Options::default();
    options.add("other", "yes");
    let _flags = play.integration.declare(&play.data(), &options).unwrap();
    assert_eq!(play.times(), 2);
    let mut terms = QueryPolicy::of(play.integration.meta());
    terms.allowed_schemas = Some(["/shelf".to_owned()].into());
    let _terms =
        play.integration.declare(&Data::new(Arc::clone(&play.source), terms), &Options::default()).unwrap();
    assert_eq!(play.times(), 3);
    play.source = source(&Stock::default());
    let _data = play.declare();
    assert_eq!(play.times(), 4, "equal data from another source may have other locations");
}

#[test]
fn a_failed_declaration_is_tried_again() {
    let play = Fixture::new();
    let mut options = Options::default();
    options.add("end", "fails");
    let declare = || play.integration.declare(&play.data(), &options).unwrap_err().text;
    assert_eq!((declare(), declare()), ("fails 0".to_owned(), "fails 1".to_owned()));
}
