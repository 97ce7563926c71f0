//! Delivers the orders in the journal to the loops of this process.
//!
//! One request per period reads the orders for all loops. If the journal cannot be read, the orders that were read
//! last stay in force.

mod command;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use qontract_journal::{CurrentOrders, Journal, Orders};
use qontract_runtime::reconcile_loop::{LoopOrder, LoopOrders};
use qontract_telemetry::log::{Level, Log, LogLine};
use tokio::sync::watch;

pub use command::{OrderDesk, pause_of};

/// The time within which every loop reads an order that is stored in a directory.
const FOLDER_PERIOD: Duration = Duration::from_millis(500);

/// The time within which every loop reads an order that is stored in a bucket.
const BUCKET_PERIOD: Duration = Duration::from_secs(20);

/// Maximum time that the first read delays the loops.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The kind of store that contains the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalKind {
    /// The journal is in a directory.
    Folder,
    /// The journal is in a bucket.
    Bucket,
}

impl JournalKind {
    /// The kind of a journal: `Folder` if the journal has a directory, otherwise `Bucket`.
    pub fn of(folder: Option<&std::path::Path>) -> Self {
        folder.map_or(Self::Bucket, |_| Self::Folder)
    }

    /// The time within which every loop reads an order.
    pub fn order_period(self) -> Duration {
        match self {
            Self::Folder => FOLDER_PERIOD,
            Self::Bucket => BUCKET_PERIOD,
        }
    }
}

/// The orders to the loops of this process.
pub struct OrderFeed {
    orders: Orders,
    state: Mutex<FeedState>,
    log: Arc<Log>,
}

#[derive(Default)]
struct FeedState {
    /// The orders that were last read; `None` if none was ever given.
    current: Option<CurrentOrders>,
    loops: BTreeMap<String, watch::Sender<LoopOrder>>,
    is_unreadable: bool,
}

impl OrderFeed {
    /// Reads the orders before any loop starts, so that no paused loop runs, and then periodically.
    pub async fn start(journal: &Journal, kind: JournalKind, log: Arc<Log>) -> Arc<Self> {
        let feed = Arc::new(Self { orders: journal.orders(), state: Mutex::default(), log });
        if tokio::time::timeout(FIRST_READ_TIMEOUT, feed.read()).await.is_err() {
            feed.report_unreadable("it does not respond");
        }
        let reader = Arc::downgrade(&feed);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(kind.order_period()).await;
                let Some(feed) = reader.upgrade() else { break };
                feed.read().await;
            }
        });
        feed
    }

    /// The orders to the loop of an integration.
    pub fn subscribe(&self, integration: &str) -> LoopOrders {
        let mut state = self.state.lock();
        let order = order_to(state.current.as_ref(), integration, Timestamp::now());
        let sender = state.loops.entry(integration.to_owned()).or_insert_with(|| watch::Sender::new(order));
        LoopOrders::new(sender.subscribe())
    }

    async fn read(&self) {
        let read = self.orders.current().await;
        let now = Timestamp::now();
        let was_given = self.state.lock().current.is_some();
        match read {
            // A pause must not end because the journal was lost.
            Ok(None) if was_given => self.report_unreadable("they are missing from the journal"),
            Ok(current) => {
                let mut state = self.state.lock();
                (state.current, state.is_unreadable) = (current, false);
            }
            Err(error) => self.report_unreadable(&format!("{:#}", anyhow::Error::new(error))),
        }
        let state = self.state.lock();
        // The orders in force are computed again, because a pause may have ended without a new order.
        for (integration, sender) in &state.loops {
            let order = order_to(state.current.as_ref(), integration, now);
            sender.send_if_modified(|last| {
                let is_new = *last != order;
                *last = order;
                is_new
            });
        }
    }

    fn report_unreadable(&self, why: &str) {
        if !std::mem::replace(&mut self.state.lock().is_unreadable, true) {
            let text = format!("cannot read the orders to loops; the last ones remain in effect: {why}");
            self.log.write(&LogLine::new(Level::Error, text));
        }
    }
}

/// The orders to one loop that are in force now.
fn order_to(orders: Option<&CurrentOrders>, integration: &str, now: Timestamp) -> LoopOrder {
    let Some(orders) = orders else { return LoopOrder::default() };
    LoopOrder {
        pause: orders.pause(integration, now).map(ToString::to_string),
        run: orders.run_now(integration).map(|order| order.id.clone()),
    }
}
