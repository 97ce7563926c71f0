//! Asking something to come to an end.

use tokio::sync::watch;

/// Whether somebody asked for the end. A clone hears the same.
#[derive(Clone, Debug)]
pub struct Stop(Option<watch::Receiver<bool>>);

/// Asks for the end. A clone asks the same.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

/// One who asks, and one who hears it.
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(Some(receiver)))
}

impl Stopper {
    /// Asks for the end.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// What is never asked to end.
    pub fn never() -> Self {
        Self(None)
    }

    /// One who asks, and one who hears it.
    pub fn pair() -> (Stopper, Self) {
        pair()
    }

    /// Whether the end is asked for.
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|receiver| *receiver.borrow())
    }

    /// Waits until the end is asked for; for ever if nobody can ask any more.
    pub async fn asked(&self) {
        if let Some(receiver) = &self.0
            && receiver.clone().wait_for(|asked| *asked).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
