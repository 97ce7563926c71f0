//! One run of an integration after the other.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::Mode;
use qontract_runtime::guard::{Budgets, Ledger};
use qontract_runtime::looping::{Stop, Turn};
use qontract_runtime::slot::Slot;
use qontract_runtime::{Bodies, Ended, Options, PlaceLines, Record, Room, run};

use crate::audit::WriteObserver;
use crate::run_setup::RunSetup;
use crate::run_store::RunStore;
use crate::source::DataSource;

/// How runs are made.
#[derive(Clone)]
pub struct RunSettings {
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
pub trait RunObserver: WriteObserver {
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
    pub feed: Arc<dyn DataSource>,
    /// How they are made.
    pub settings: RunSettings,
    /// Where records are kept.
    pub runs: Arc<RunStore>,
    /// Where runs are reported.
    pub observer: Arc<dyn RunObserver>,
}

impl Turn for Runner {
    fn turn(&self, stop: Stop) -> BoxFuture<'static, Ended> {
        let runner = self.clone();
        async move {
            let name = &runner.room.about().name;
            match runner.run(stop).await {
                Ok(record) => {
                    runner.observer.ran(name, Ok(&record));
                    record.ended
                }
                Err(error) => {
                    runner.observer.ran(name, Err(&error));
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
        let Self { room, options, feed, settings, runs, observer } = self;
        let head = feed.side()?;
        let start = RunSetup {
            integration: &room.about().name,
            mode: settings.mode,
            head: &head,
            runs,
            ledger: &settings.ledger,
            heard: Arc::clone(observer) as Arc<dyn WriteObserver>,
        };
        let mut begun = start.now()?;
        let request = &mut begun.request;
        request.set_options(options.clone(), &room.about().flags);
        request.slot = settings.slot;
        request.budgets = settings.budgets;
        request.validate_schemas = settings.validate_schemas;
        request.bodies = settings.bodies;
        request.stop = stop;
        let outcome = run(room, &begun.request).await;
        let clock = begun.clock();
        let mut record = head.with_lines(|line| Record::new(&outcome, clock, PlaceLines::same(line)));
        // What was done is reported, whether it can be kept or not.
        if let Err(error) = runs.record_loop_run(&record) {
            record.warnings.push(format!("the record of the run is not kept: {error:#}"));
        }
        Ok(record)
    }
}
