//! One run of an integration after the other.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::Mode;
use qontract_runtime::guard::{Budgets, Ledger};
use qontract_runtime::looping::{Stop, Turn};
use qontract_runtime::slot::Slot;
use qontract_runtime::{Bodies, Ended, Options, PlaceLines, Record, Room, run};

use crate::audit::Heard;
use crate::run_setup::Start;
use crate::run_store::Runs;
use crate::source::Feed;

/// How runs are made.
#[derive(Clone)]
pub struct Manner {
    /// Whether they may change the world.
    pub mode: Mode,
    /// The hash slot of this process.
    pub slot: Slot,
    /// How much may be removed.
    pub budgets: Budgets,
    /// Where removals are reserved.
    pub ledger: Arc<dyn Ledger>,
    /// Whether the list of allowed schemas is enforced.
    pub validate_schemas: bool,
    /// Whether plans show the content of what is created.
    pub bodies: Bodies,
}

/// What is done with the record of a run.
pub trait Kept: Heard {
    /// A run ended, and this is its record; or it could not begin.
    fn ran(&self, integration: &str, run: Result<&Record, &anyhow::Error>);
}

/// The runs of an integration.
#[derive(Clone)]
pub struct Runner {
    /// The integration.
    pub room: Arc<Room>,
    /// Its flags.
    pub options: Options,
    /// Where its data comes from.
    pub feed: Arc<dyn Feed>,
    /// How they are made.
    pub manner: Manner,
    /// Where records are kept.
    pub runs: Arc<Runs>,
    /// Where runs are reported.
    pub kept: Arc<dyn Kept>,
}

impl Turn for Runner {
    fn turn(&self, stop: Stop) -> BoxFuture<'static, Ended> {
        let runner = self.clone();
        async move {
            let name = &runner.room.about().name;
            match runner.run(stop).await {
                Ok(record) => {
                    runner.kept.ran(name, Ok(&record));
                    record.ended
                }
                Err(error) => {
                    runner.kept.ran(name, Err(&error));
                    Ended::Transient
                }
            }
        }
        .boxed()
    }
}

impl Runner {
    /// One run, and its record.
    async fn run(&self, stop: Stop) -> anyhow::Result<Record> {
        let Self { room, options, feed, manner, runs, kept } = self;
        let head = feed.side()?;
        let start = Start {
            integration: &room.about().name,
            mode: manner.mode,
            head: &head,
            runs,
            ledger: &manner.ledger,
            heard: Arc::clone(kept) as Arc<dyn Heard>,
        };
        let mut begun = start.now()?;
        let request = &mut begun.request;
        request.set_options(options.clone(), &room.about().flags);
        request.slot = manner.slot;
        request.budgets = manner.budgets;
        request.validate_schemas = manner.validate_schemas;
        request.bodies = manner.bodies;
        request.stop = stop;
        let outcome = run(room, &begun.request).await;
        let clock = begun.clock();
        let mut record = head.with_lines(|line| Record::new(&outcome, clock, PlaceLines::same(line)));
        // What was done is reported, whether it can be kept or not.
        if let Err(error) = runs.keep_of_loop(&record) {
            record.warnings.push(format!("the record of the run is not kept: {error:#}"));
        }
        Ok(record)
    }
}
