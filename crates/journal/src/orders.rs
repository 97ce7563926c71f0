//! The orders that operators give to loops: pause, resume, and run now.
//!
//! | blob | content |
//! |---|---|
//! | `orders/current` | the orders that are in effect, of all integrations: a process reads one blob, however many loops it runs |
//! | `orders/log/DAY/TIME-ID` | an order that was given, by whom and why |

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Precondition};
use serde::{Deserialize, Serialize};

use crate::run_key::days_since;

const CURRENT: &str = "orders/current";
const LOG: &str = "orders/log/";

/// The name under which orders to all integrations are stored.
const ALL: &str = "@all";

/// The version of the format of orders.
const VERSION: u32 = 1;

/// Maximum number of attempts to write the orders when other processes write them concurrently.
const MAX_ATTEMPTS: usize = 20;

/// The person or process that gave an order, and the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderOrigin {
    /// The person or process that gave the order.
    pub by: String,
    /// The time at which the order was given.
    pub at: Timestamp,
    /// Identifies the order.
    pub id: String,
}

/// A pause: no run starts, and a run in progress starts no further step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The origin of the order to pause.
    #[serde(flatten)]
    pub origin: OrderOrigin,
    /// The reason for the pause.
    pub reason: String,
    /// The time at which the pause ends; `None` if it lasts until an order to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin: OrderOrigin { by, at, .. }, reason, until } = self;
        write!(f, "paused by {by} at {at:.0}")?;
        match until {
            Some(until) => write!(f, " until {until:.0}: {reason}"),
            None => write!(f, " until it is resumed: {reason}"),
        }
    }
}

/// The orders to the loops of one integration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopOrders {
    /// The pause, if one was ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The last order to run now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<OrderOrigin>,
}

/// The orders that are in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentOrders {
    version: u32,
    loops: BTreeMap<String, LoopOrders>,
}

impl Default for CurrentOrders {
    fn default() -> Self {
        Self { version: VERSION, loops: BTreeMap::new() }
    }
}

impl CurrentOrders {
    /// The pause of an integration at this time: the pause of this integration, or the pause of all integrations.
    pub fn pause(&self, integration: &str, now: Timestamp) -> Option<&Pause> {
        let pauses = [integration, ALL].into_iter().filter_map(|name| self.loops.get(name)?.pause.as_ref());
        let mut active = pauses.filter(|pause| pause.until.is_none_or(|until| now < until));
        active.next()
    }

    /// The last order to run an integration now: the order to this integration, or the order to all integrations.
    pub fn run_now(&self, integration: &str) -> Option<&OrderOrigin> {
        let orders = [integration, ALL].into_iter().filter_map(|name| self.loops.get(name)?.run.as_ref());
        orders.max_by_key(|order| order.at)
    }

    /// All pauses at this time, by integration; `None` stands for all integrations.
    pub fn pauses(&self, now: Timestamp) -> impl Iterator<Item = (Option<&str>, &Pause)> {
        self.loops.iter().filter_map(move |(name, orders)| {
            let pause = orders.pause.as_ref().filter(|pause| pause.until.is_none_or(|until| now < until))?;
            Some((Some(&**name).filter(|name| *name != ALL), pause))
        })
    }

    /// Applies an order.
    fn apply(&mut self, order: &Order, origin: &OrderOrigin) {
        let name = order.integration.as_deref().unwrap_or(ALL);
        let orders = self.loops.entry(name.to_owned()).or_default();
        match &order.action {
            OrderAction::Pause { reason, until } => {
                let (origin, reason) = (origin.clone(), reason.clone());
                orders.pause = Some(Pause { origin, reason, until: *until });
            }
            OrderAction::Resume => orders.pause = None,
            OrderAction::Run => orders.run = Some(origin.clone()),
        }
        self.loops.retain(|_, orders| *orders != LoopOrders::default());
    }
}

/// The action that an order requests from loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum OrderAction {
    /// Loops start no run, and runs in progress start no further step.
    Pause {
        /// The reason for the pause.
        reason: String,
        /// The time at which the pause ends; `None` if it lasts until an order to resume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The pause ends.
    Resume,
    /// Each loop runs now.
    Run,
}

/// An order to loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The integration; `None` means all integrations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    /// The action that is ordered.
    #[serde(flatten)]
    pub action: OrderAction,
}

/// An order in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOrder {
    /// The origin of the order.
    #[serde(flatten)]
    pub origin: OrderOrigin,
    /// The order that was given.
    #[serde(flatten)]
    pub order: Order,
}

/// An error of the orders.
#[derive(Debug, thiserror::Error)]
pub enum OrdersError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] BlobsError),
    /// The blob is damaged, or another version wrote it.
    #[error("`{CURRENT}` has unsupported content")]
    Content,
    /// Other processes changed the orders concurrently.
    #[error("other processes changed the orders during each of {MAX_ATTEMPTS} attempts")]
    Contended,
}

/// Access to the orders in a store.
#[derive(Clone)]
pub struct Orders {
    blobs: Arc<dyn Blobs>,
    read: ReadPermit,
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

impl Orders {
    /// Creates access to the orders in a store.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, read: ReadPermit::for_data() }
    }

    /// The orders that are in effect; `None` if none was ever given.
    pub async fn current(&self) -> Result<Option<CurrentOrders>, OrdersError> {
        let (orders, precondition) = self.load().await?;
        Ok((precondition != Precondition::IfAbsent).then_some(orders))
    }

    async fn load(&self) -> Result<(CurrentOrders, Precondition), OrdersError> {
        let Some(blob) = self.blobs.get(&self.read, &BlobKey::new(CURRENT)?).await? else {
            return Ok((CurrentOrders::default(), Precondition::IfAbsent));
        };
        let orders: CurrentOrders = serde_json::from_slice(&blob.bytes).map_err(|_| OrdersError::Content)?;
        if orders.version != VERSION {
            return Err(OrdersError::Content);
        }
        Ok((orders, Precondition::IfMatch(blob.head.etag)))
    }

    /// Gives an order. The order is logged before it takes effect.
    pub async fn give(
        &self,
        write: &WritePermit,
        order: &Order,
        origin: &OrderOrigin,
    ) -> Result<(), OrdersError> {
        let logged = LoggedOrder { origin: origin.clone(), order: order.clone() };
        let time = origin.at.strftime("%H%M%SZ");
        let key = format!("{LOG}{}/{time}-{}", origin.at.strftime("%Y%m%d"), origin.id);
        let content = BlobContent::new(serde_json::to_vec(&logged).expect("an order can be written as JSON"));
        self.blobs.put(write, &BlobKey::new(key)?, &content, &Precondition::Any).await?;
        for _ in 0..MAX_ATTEMPTS {
            let (mut orders, precondition) = self.load().await?;
            orders.apply(order, origin);
            let bytes = serde_json::to_vec_pretty(&orders).expect("orders can be written as JSON");
            let content = BlobContent::new(bytes);
            match self.blobs.put(write, &BlobKey::new(CURRENT)?, &content, &precondition).await {
                Ok(_) => return Ok(()),
                Err(BlobsError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(OrdersError::Contended)
    }

    /// The orders that were given since a time, the oldest first. Orders that cannot be read are omitted.
    pub async fn log(&self, since: Timestamp, now: Timestamp) -> Result<Vec<LoggedOrder>, OrdersError> {
        let mut orders: Vec<LoggedOrder> = Vec::new();
        for prefix in days_since(LOG, Some(since), now) {
            for key in self.blobs.keys(&self.read, &prefix).await? {
                let blob = self.blobs.get(&self.read, &BlobKey::new(key)?).await?;
                orders.extend(blob.and_then(|blob| serde_json::from_slice(&blob.bytes).ok()));
            }
        }
        orders.retain(|order| order.origin.at >= since);
        orders.sort_by_key(|order| order.origin.at);
        Ok(orders)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use qontract_access::Mode;
    use qontract_client_blobs::Directory;
    use qontract_testkit::{Scratch, permits};

    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn origin(id: u32, second: i64) -> OrderOrigin {
        OrderOrigin { by: "ann@laptop".to_owned(), at: time(second), id: format!("{id:04}") }
    }

    fn pause(integration: Option<&str>, until: Option<i64>) -> Order {
        let action = OrderAction::Pause { reason: "INC-7".to_owned(), until: until.map(time) };
        Order { integration: integration.map(str::to_owned), action }
    }

    fn order(integration: Option<&str>, action: OrderAction) -> Order {
        Order { integration: integration.map(str::to_owned), action }
    }

    async fn give(orders: &Orders, order: &Order, id: u32, second: i64) {
        let permits = permits(Mode::Real);
        orders.give(permits.write.as_ref().unwrap(), order, &origin(id, second)).await.unwrap();
    }

    fn orders(scratch: &Scratch) -> Orders {
        Orders::new(Arc::new(Directory::new(scratch.path())))
    }

    #[tokio::test]
    async fn a_pause_ends_when_it_is_resumed_or_expires() {
        let scratch = Scratch::new();
        let orders = orders(&scratch);
        assert_eq!(orders.current().await.unwrap(), None);
        give(&orders, &pause(Some("a"), Some(60)), 1, 0).await;
        give(&orders, &pause(None, None), 2, 1).await;
        let current = orders.current().await.unwrap().unwrap();
        let id = |integration, second| {
            current.pause(integration, time(second)).map(|pause| pause.origin.id.clone())
        };
        assert_eq!(id("a", 59).as_deref(), Some("0001"));
        assert_eq!(id("a", 60).as_deref(), Some("0002"), "that of all integrations lasts");
        assert_eq!(id("b", 0).as_deref(), Some("0002"));
        let names = |second| {
            let pauses = current.pauses(time(second));
            pauses.map(|(name, _)| name.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(names(59), [None, Some("a".to_owned())]);
        assert_eq!(names(60), [None]);
        let text = current.pause("a", time(0)).unwrap().to_string();
        let expect = "paused by ann@laptop at 2027-01-15T08:00:00Z until 2027-01-15T08:01:00Z: INC-7";
        assert_eq!(text, expect);
        // An order to resume all integrations does not end a pause of a single integration.
        give(&orders, &order(None, OrderAction::Resume), 3, 2).await;
        let current = orders.current().await.unwrap().unwrap();
        assert!(current.pause("a", time(3)).is_some() && current.pause("b", time(3)).is_none());
        give(&orders, &order(Some("a"), OrderAction::Resume), 4, 4).await;
        assert_eq!(orders.current().await.unwrap(), Some(CurrentOrders::default()));
        let log = orders.log(time(1), time(10)).await.unwrap();
        let ids: Vec<&str> = log.iter().map(|order| &*order.origin.id).collect();
        assert_eq!(ids, ["0002", "0003", "0004"]);
    }

    #[tokio::test]
    async fn the_newest_order_to_run_counts() {
        let scratch = Scratch::new();
        let orders = orders(&scratch);
        give(&orders, &order(Some("a"), OrderAction::Run), 1, 0).await;
        give(&orders, &order(None, OrderAction::Run), 2, 1).await;
        let current = orders.current().await.unwrap().unwrap();
        let id = |integration| current.run_now(integration).map(|order| order.id.clone());
        assert_eq!((id("a").as_deref(), id("b").as_deref()), (Some("0002"), Some("0002")));
        give(&orders, &order(Some("a"), OrderAction::Run), 3, 2).await;
        let current = orders.current().await.unwrap().unwrap();
        assert_eq!(current.run_now("a").unwrap().id, "0003");
        assert_eq!(current.run_now("b").unwrap().id, "0002");
    }

    #[tokio::test]
    async fn orders_that_are_given_at_the_same_time_are_all_in_effect() {
        let scratch = Scratch::new();
        let orders = orders(&scratch);
        let names: Vec<String> = (0..8).map(|number| format!("i{number}")).collect();
        join_all(names.iter().map(async |name| give(&orders, &pause(Some(name), None), 1, 0).await)).await;
        let current = orders.current().await.unwrap().unwrap();
        assert!(names.iter().all(|name| current.pause(name, time(1)).is_some()));
    }

    #[tokio::test]
    async fn orders_that_cannot_be_read_are_an_error_and_are_not_replaced() {
        let scratch = Scratch::new();
        let orders = orders(&scratch);
        give(&orders, &pause(Some("a"), None), 1, 0).await;
        let file = scratch.path().join("orders/current.blob");
        for text in ["{", r#"{"version": 2, "loops": {}}"#] {
            std::fs::write(&file, text).unwrap();
            assert!(matches!(orders.current().await, Err(OrdersError::Content)), "{text}");
            let permits = permits(Mode::Real);
            let given = orders.give(permits.write.as_ref().unwrap(), &pause(None, None), &origin(2, 1)).await;
            assert!(matches!(given, Err(OrdersError::Content)), "{text}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
