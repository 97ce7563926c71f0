//! The bundles of a server: loaded, found, dropped. Loading happens beside everything else.
//!
//! **Invariant:** what fails to load changes nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use qontract_bundle::{LoadError, Pool, Sha256, load};
use qontract_graphql::{Engine, SchemaError};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::origin::{Content, Origin, OriginError, Store};
use crate::route::Which;
use crate::shelf::Shelf;

/// How long a sha that the store does not have is not looked for again, in milliseconds.
const ABSENT: u64 = 10_000;
/// How many of those are remembered.
const MOST_ABSENT: usize = 1024;

/// Why a bundle is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// It cannot be read.
    #[error("the bundle cannot be read")]
    Origin(#[from] OriginError),
    /// It is no bundle.
    #[error("it is no bundle")]
    Bundle(#[from] LoadError),
    /// Its types are wrong.
    #[error("its GraphQL types cannot be used")]
    Types(#[from] SchemaError),
    /// A defect of ours.
    #[error("loading it failed: this is a defect")]
    Panic,
}

/// Why a sha is not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nobody has it.
    Unknown,
    /// It may be there later.
    Later(String),
}

/// What happened to the bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// One was loaded and is the latest.
    Loaded(Sha256),
    /// The source still has the latest one.
    Same(Sha256),
    /// The source has one again that is still held.
    RolledBack(Sha256),
    /// One was loaded from the store.
    Fetched(Sha256),
    /// One was dropped.
    Dropped(Sha256),
    /// One could not be loaded; everything is as it was.
    Failed(String),
}

/// Hears what happens.
pub type Listener = Arc<dyn Fn(Told) + Send + Sync>;

/// The bundles.
pub struct Bundles {
    pool: Arc<Pool>,
    shelf: Mutex<Shelf>,
    origin: Option<Arc<dyn Origin>>,
    store: Option<Store>,
    listener: Listener,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
    /// One bundle at a time is fetched.
    fetching: Semaphore,
    /// Who waits for which sha waits here.
    waiting: Mutex<HashMap<Sha256, watch::Receiver<()>>>,
    /// What the store did not have, and when.
    absent: Mutex<HashMap<Sha256, u64>>,
}

impl Bundles {
    /// No bundles yet.
    pub fn new(
        shelf: Shelf,
        origin: Option<Arc<dyn Origin>>,
        store: Option<Store>,
        listener: Listener,
    ) -> Self {
        Self {
            pool: Arc::default(),
            shelf: Mutex::new(shelf),
            origin,
            store,
            listener,
            reloading: tokio::sync::Mutex::default(),
            fetching: Semaphore::new(1),
            waiting: Mutex::default(),
            absent: Mutex::default(),
        }
    }

    /// The shelf, for a moment.
    pub fn shelf(&self) -> MutexGuard<'_, Shelf> {
        lock(&self.shelf)
    }

    /// Loads what the source has now, and makes it the latest.
    pub async fn reload(&self) -> Result<Told, LoadFailure> {
        match &self.origin {
            Some(origin) => self.load(&**origin).await,
            None => Err(OriginError::Other("there is no source to read again".to_owned()).into()),
        }
    }

    /// Loads a bundle and makes it the latest.
    pub async fn load(&self, origin: &dyn Origin) -> Result<Told, LoadFailure> {
        let _one_at_a_time = self.reloading.lock().await;
        let told = self.load_now(origin).await;
        (self.listener)(match &told {
            Ok(told) => told.clone(),
            Err(error) => Told::Failed(format!("{}: {}", origin.name(), chain(error))),
        });
        told
    }

    async fn load_now(&self, origin: &dyn Origin) -> Result<Told, LoadFailure> {
        let content = origin.read(&self.pool).await?;
        let (sha, content) = in_background(move || match content {
            Content::Bytes(bytes) => (Sha256::of(&bytes), Content::Bytes(bytes)),
            Content::Bundle(bundle) => (bundle.sha(), Content::Bundle(bundle)),
        })
        .await?;
        if self.shelf().latest().is_some_and(|latest| latest.bundle().sha() == sha) {
            self.shelf().asked(sha, now());
            return Ok(Told::Same(sha));
        }
        if self.shelf().make_latest(sha, now()) {
            return Ok(Told::RolledBack(sha));
        }
        let engine = self.engine(content).await?;
        let dropped = self.shelf().put_latest(engine, now());
        self.dropped(dropped);
        Ok(Told::Loaded(sha))
    }

    /// A bundle that can be asked. Types and plans of the latest are shared, if it has the same.
    async fn engine(&self, content: Content) -> Result<Arc<Engine>, LoadFailure> {
        let (pool, beside) = (Arc::clone(&self.pool), self.shelf().latest().cloned());
        in_background(move || {
            let bundle = match content {
                Content::Bytes(bytes) => Arc::new(load(&bytes, &pool)?),
                Content::Bundle(bundle) => bundle,
            };
            let engine = match beside {
                Some(latest) => latest.beside(bundle)?,
                None => Engine::new(bundle)?,
            };
            Ok(Arc::new(engine))
        })
        .await?
    }

    /// Dropping a hundred thousand documents takes time that no request should wait for.
    fn dropped(&self, engines: Vec<Arc<Engine>>) {
        if engines.is_empty() {
            return;
        }
        for engine in &engines {
            (self.listener)(Told::Dropped(engine.bundle().sha()));
        }
        let pool = Arc::clone(&self.pool);
        spawn_blocking(move || {
            drop(engines);
            pool.sweep();
        });
    }

    /// The bundle that is meant; one that is not held is looked for in the store.
    pub async fn find(&self, which: &Which) -> Result<Arc<Engine>, Missing> {
        let name = match which {
            Which::Latest => return self.shelf().latest().cloned().ok_or(Missing::Unknown),
            Which::Named(name) => name,
        };
        // Shas are written in one way: what is written otherwise is no sha.
        let sha = Sha256::parse(name).filter(|sha| sha.to_string() == *name).ok_or(Missing::Unknown)?;
        let held = self.shelf().get(sha).cloned();
        match (held, &self.store) {
            (Some(engine), _) => Ok(engine),
            (None, None) => Err(Missing::Unknown),
            (None, Some(store)) => self.fetch(store, sha).await,
        }
    }

    /// Many who ask for the same bundle wait for one read of it.
    async fn fetch(&self, store: &Store, sha: Sha256) -> Result<Arc<Engine>, Missing> {
        loop {
            let waiting = {
                let mut waiting = lock(&self.waiting);
                if let Some(receiver) = waiting.get(&sha).cloned() {
                    Err(receiver)
                } else {
                    let (sender, receiver) = watch::channel(());
                    waiting.insert(sha, receiver);
                    Ok(Fetching { sender, sha, waiting: &self.waiting })
                }
            };
            match waiting {
                Ok(fetching) => {
                    let found = self.fetch_now(store, sha).await;
                    drop(fetching);
                    return found;
                }
                Err(mut receiver) => {
                    // It ends when the other one is done, whatever came of it.
                    let _ = receiver.changed().await;
                    if let Some(engine) = self.shelf().get(sha) {
                        return Ok(Arc::clone(engine));
                    }
                    if self.is_absent(sha) {
                        return Err(Missing::Unknown);
                    }
                }
            }
        }
    }

    async fn fetch_now(&self, store: &Store, sha: Sha256) -> Result<Arc<Engine>, Missing> {
        if let Some(engine) = self.shelf().get(sha) {
            return Ok(Arc::clone(engine));
        }
        if self.is_absent(sha) {
            return Err(Missing::Unknown);
        }
        let full = || Missing::Later("as many bundles are held as there is room for".to_owned());
        if !self.shelf().has_room(now()) {
            return Err(full());
        }
        let _one_at_a_time = self.fetching.acquire().await.expect("the semaphore is never closed");
        match self.fetch_bytes(store, sha).await {
            Ok(Some(engine)) => {
                let dropped = self.shelf().put_fetched(Arc::clone(&engine), now());
                self.dropped(dropped.map_err(|_| full())?);
                (self.listener)(Told::Fetched(sha));
                Ok(engine)
            }
            Ok(None) => {
                let mut absent = lock(&self.absent);
                if absent.len() >= MOST_ABSENT {
                    absent.clear();
                }
                absent.insert(sha, now());
                Err(Missing::Unknown)
            }
            Err(why) => {
                (self.listener)(Told::Failed(format!("bundle {sha} of the store: {why}")));
                Err(Missing::Later("the bundle cannot be read from the store".to_owned()))
            }
        }
    }

    async fn fetch_bytes(&self, store: &Store, sha: Sha256) -> Result<Option<Arc<Engine>>, String> {
        let Some(bytes) = store.fetch(sha).await.map_err(|error| chain(&error))? else { return Ok(None) };
        let (is_it, bytes) =
            in_background(move || (Sha256::of(&bytes) == sha, bytes)).await.map_err(|error| chain(&error))?;
        if !is_it {
            return Err("its bytes are not those of that sha".to_owned());
        }
        self.engine(Content::Bytes(bytes)).await.map(Some).map_err(|error| chain(&error))
    }

    fn is_absent(&self, sha: Sha256) -> bool {
        let since = lock(&self.absent).get(&sha).copied();
        since.is_some_and(|since| now().saturating_sub(since) < ABSENT)
    }
}

/// Whoever waits for a sha is told when this is dropped, even if whoever fetched it has gone away.
struct Fetching<'b> {
    #[expect(dead_code, reason = "dropped, it wakes those who wait")]
    sender: watch::Sender<()>,
    sha: Sha256,
    waiting: &'b Mutex<HashMap<Sha256, watch::Receiver<()>>>,
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.sha);
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadFailure> {
    spawn_blocking(work).await.map_err(|_| LoadFailure::Panic)
}

/// The time, in milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An error with all its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// The tables are whole at any time, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
