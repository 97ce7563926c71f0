//! The orders of operators that a loop obeys: pause, and run now.

use tokio::sync::watch;

/// The orders that are in force for a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopOrder {
    /// The reason why the loop is paused, if it is paused.
    pub pause: Option<String>,
    /// The last order to run now.
    pub run: Option<String>,
}

/// Receives the orders to a loop.
#[derive(Clone, Debug)]
pub struct LoopOrders {
    orders: watch::Receiver<LoopOrder>,
    /// The order to run that the last run obeyed.
    obeyed: Option<String>,
}

impl LoopOrders {
    /// Receives the orders of this channel. An order to run that was given before this call is ignored.
    pub fn new(orders: watch::Receiver<LoopOrder>) -> Self {
        let obeyed = orders.borrow().run.clone();
        Self { orders, obeyed }
    }

    /// Creates a receiver that gets no orders.
    pub fn none() -> Self {
        Self::new(watch::channel(LoopOrder::default()).1)
    }

    /// The reason why the loop is paused, if it is paused.
    pub fn pause(&self) -> Option<String> {
        self.orders.borrow().pause.clone()
    }

    /// Waits until the loop is paused.
    pub(super) async fn paused(&self) {
        self.until(|order| order.pause.is_some()).await;
    }

    /// Waits until the loop is not paused.
    pub(super) async fn resumed(&self) {
        self.until(|order| order.pause.is_none()).await;
    }

    /// Waits for an order to run that no run has obeyed.
    pub(super) async fn run_ordered(&self) {
        self.until(|order| order.run.is_some() && order.run != self.obeyed).await;
    }

    /// Records that a run starts: the run obeys all orders to run that were given so far.
    pub(super) fn obey(&mut self) {
        self.obeyed = self.orders.borrow().run.clone();
    }

    async fn until(&self, holds: impl FnMut(&LoopOrder) -> bool) {
        if self.orders.clone().wait_for(holds).await.is_err() {
            // The sender of the orders was dropped, so no further order can arrive.
            std::future::pending::<()>().await;
        }
    }
}
