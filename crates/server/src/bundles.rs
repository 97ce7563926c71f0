//! The bundles of a server: loads, finds and drops them. Loading runs in the background.
//!
//! **Invariant:** a bundle that fails to load changes nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use qontract_bundle::{LoadError, Pool, Sha256};
use qontract_concurrency::OnceMap;
use qontract_graphql::{Engine, SchemaError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::origin::{Content, Origin, OriginError, Store};
use crate::route::Which;
use crate::shelf::Shelf;

/// Time for which a sha that the store does not have is not requested again, in milliseconds.
const ABSENT: u64 = 10_000;
/// Time for which a sha whose read failed is not requested again, in milliseconds.
const FAILED: u64 = 1_000;
/// Maximum number of unavailable shas that are cached. Then the cache is cleared.
const MOST_MISSING: usize = 1024;
/// Maximum number of shas that are fetched concurrently or wait for it.
const MAX_FETCHING: usize = 64;

/// Why a bundle is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// It cannot be read.
    #[error("the bundle cannot be read")]
    Origin(#[from] OriginError),
    /// It is not a bundle.
    #[error("it is not a valid bundle")]
    Bundle(#[from] LoadError),
    /// Its types are invalid.
    #[error("its GraphQL types are invalid")]
    Types(#[from] SchemaError),
    /// A bug of ours.
    #[error("loading it panicked: this is a bug")]
    Panic,
}

/// Why a bundle is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It does not exist.
    Unknown,
    /// It may be available later.
    Later(String),
}

/// An event in the life of the bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A bundle was loaded and is the latest.
    Loaded(Sha256),
    /// The source still has the latest bundle.
    Same(Sha256),
    /// The source has a bundle again that is still held; it is the latest now.
    RolledBack(Sha256),
    /// A bundle was loaded from the store.
    Fetched(Sha256),
    /// A bundle was dropped.
    Dropped(Sha256),
    /// A bundle could not be loaded; nothing changed.
    Failed(String),
}

/// Receives bundle events.
pub type Listener = Arc<dyn Fn(Told) + Send + Sync>;

/// The bundles of a server.
pub struct Bundles {
    pool: Arc<Pool>,
    shelf: Mutex<Shelf>,
    origin: Option<Arc<dyn Origin>>,
    store: Option<Store>,
    listener: Listener,
    /// Held during a reload: reloads run one at a time.
    reloading: tokio::sync::Mutex<()>,
    /// Held while a bundle is fetched: one at a time.
    turn: Semaphore,
    /// Fetches under way, so that concurrent requests for a sha share one.
    fetching: OnceMap<Sha256, Result<Arc<Engine>, Missing>>,
    /// Negative cache: shas that the store did not deliver, and since when.
    missing: Mutex<HashMap<Sha256, (u64, Missing)>>,
}

impl Bundles {
    /// No bundles yet.
    pub fn new(
        registry: Shelf,
        source: Option<Arc<dyn Origin>>,
        store: Option<Store>,
        observer: Listener,
    ) -> Self {
        Self {
            pool: Arc::default(),
            shelf: Mutex::new(registry),
            origin: source,
            store,
            listener: observer,
            reloading: tokio::sync::Mutex::default(),
            turn: Semaphore::new(1),
            fetching: OnceMap::default(),
            missing: Mutex::default(),
        }
    }

    /// Locks the registry. Do not hold the guard across an `await`.
    pub fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock()
    }

    /// Loads the bundle that the source has now, and makes it the latest.
    pub async fn reload(self: &Arc<Self>) -> Result<Told, LoadFailure> {
        match &self.origin {
            Some(origin) => self.load(Arc::clone(origin)).await,
            None => Err(OriginError::Other("no source to reload from".to_owned()).into()),
        }
    }

    /// Loads a bundle and makes it the latest. A load that began is completed, even if the caller goes away.
    pub async fn load(self: &Arc<Self>, origin: Arc<dyn Origin>) -> Result<Told, LoadFailure> {
        let bundles = Arc::clone(self);
        let loading = tokio::spawn(async move {
            let _one_at_a_time = bundles.reloading.lock().await;
            let result = bundles.load_now(&*origin).await;
            (bundles.listener)(match &result {
                Ok(event) => event.clone(),
                Err(error) => Told::Failed(format!("{}: {}", origin.name(), chain(error))),
            });
            result
        });
        loading.await.unwrap_or(Err(LoadFailure::Panic))
    }

    async fn load_now(&self, origin: &dyn Origin) -> Result<Told, LoadFailure> {
        let mut content = origin.read(&self.pool).await?;
        // Checking whether a bundle is held is cheaper than loading it; nothing is held before the first one.
        if self.shelf().latest().is_some() {
            let (sha, named) = named(content).await?;
            content = named;
            if self.shelf().latest().is_some_and(|latest| latest.bundle().sha() == sha) {
                self.shelf().asked(sha, now());
                return Ok(Told::Same(sha));
            }
            if self.shelf().make_latest(sha, now()) {
                return Ok(Told::RolledBack(sha));
            }
        }
        let engine = self.engine(content).await?;
        let sha = engine.bundle().sha();
        let dropped = self.shelf().put_latest(engine, now());
        self.dropped(dropped);
        Ok(Told::Loaded(sha))
    }

    /// Prepares a bundle for queries, incrementally from the latest: types, plans and tables that are equal
    /// are shared.
    async fn engine(&self, content: Content) -> Result<Arc<Engine>, LoadFailure> {
        if let Content::Ready(engine) = content {
            return Ok(engine);
        }
        let (pool, beside) = (Arc::clone(&self.pool), self.shelf().latest().cloned());
        in_background(move || {
            let bundle = content.load(&pool)?;
            let engine = match beside {
                Some(latest) => {
                    let bundle = Arc::unwrap_or_clone(bundle).along(latest.bundle());
                    latest.beside(Arc::new(bundle))?
                }
                None => Engine::new(bundle)?,
            };
            Ok(Arc::new(engine))
        })
        .await?
    }

    /// Reports dropped bundles and frees them in the background: freeing a hundred thousand documents takes
    /// time that no request should wait for.
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

    /// The selected bundle; one that is not held is fetched from the store.
    pub async fn find(self: &Arc<Self>, which: &Which) -> Result<Arc<Engine>, Missing> {
        let name = match which {
            Which::Latest => return self.shelf().latest().cloned().ok_or(Missing::Unknown),
            Which::Named(name) => name,
        };
        // A sha has one spelling: anything else is not a sha.
        let sha = Sha256::parse(name).filter(|sha| sha.to_string() == *name).ok_or(Missing::Unknown)?;
        let held = self.shelf().get(sha).cloned();
        match held {
            Some(engine) => Ok(engine),
            None if self.store.is_some() => self.fetch(sha).await,
            None => Err(Missing::Unknown),
        }
    }

    /// Fetches a bundle from the store. Requests for the same bundle share one read of it, which is completed
    /// even if all of them go away.
    async fn fetch(self: &Arc<Self>, sha: Sha256) -> Result<Arc<Engine>, Missing> {
        if let Some(missing) = self.remembered(sha) {
            return Err(missing);
        }
        let Some(entry) = self.fetching.entry_within(sha, MAX_FETCHING) else {
            return Err(Missing::Later("too many bundles are being read from the store".to_owned()));
        };
        let bundles = Arc::clone(self);
        let fetched =
            tokio::spawn(async move { entry.get_or_init_if(|_| false, || bundles.fetch_in_turn(sha)).await });
        fetched.await.unwrap_or_else(|_| Err(defect()))
    }

    async fn fetch_in_turn(&self, sha: Sha256) -> Result<Arc<Engine>, Missing> {
        let Some(store) = &self.store else { return Err(Missing::Unknown) };
        let _one_at_a_time = self.turn.acquire().await.map_err(|_| defect())?;
        if let Some(engine) = self.shelf().get(sha) {
            return Ok(Arc::clone(engine));
        }
        let full =
            || Missing::Later("the server holds its maximum number of bundles from the store".to_owned());
        if !self.shelf().has_room(now()) {
            return Err(full());
        }
        match self.fetch_from(store, sha).await {
            Ok(Some(engine)) => {
                let dropped = self.shelf().put_fetched(Arc::clone(&engine), now());
                self.dropped(dropped.map_err(|_| full())?);
                (self.listener)(Told::Fetched(sha));
                Ok(engine)
            }
            Ok(None) => Err(self.remember(sha, Missing::Unknown)),
            Err(why) => {
                (self.listener)(Told::Failed(format!("bundle {sha} from the store: {why}")));
                let text = "the bundle cannot be read from the store".to_owned();
                Err(self.remember(sha, Missing::Later(text)))
            }
        }
    }

    async fn fetch_from(&self, store: &Store, sha: Sha256) -> Result<Option<Arc<Engine>>, String> {
        let Some(content) = store.fetch(sha).await.map_err(|error| chain(&error))? else { return Ok(None) };
        let (found, content) = named(content).await.map_err(|error| chain(&error))?;
        if found != sha {
            return Err("its content does not match its sha".to_owned());
        }
        let engine = self.engine(content).await.map_err(|error| chain(&error))?;
        // The file may have been rewritten since.
        if engine.bundle().sha() != sha {
            return Err("it changed while it was being read".to_owned());
        }
        Ok(Some(engine))
    }

    /// Caches that a bundle is unavailable, so that it is not requested again for some time.
    fn remember(&self, sha: Sha256, missing: Missing) -> Missing {
        let mut cache = self.missing.lock();
        if cache.len() >= MOST_MISSING {
            cache.clear();
        }
        cache.insert(sha, (now(), missing.clone()));
        missing
    }

    fn remembered(&self, sha: Sha256) -> Option<Missing> {
        let (since, missing) = self.missing.lock().get(&sha).cloned()?;
        let time = match missing {
            Missing::Unknown => ABSENT,
            Missing::Later(_) => FAILED,
        };
        (now().saturating_sub(since) < time).then_some(missing)
    }
}

fn defect() -> Missing {
    Missing::Later("reading the bundle panicked: this is a bug".to_owned())
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadFailure> {
    spawn_blocking(work).await.map_err(|_| LoadFailure::Panic)
}

/// The content of a source, and its sha.
async fn named(mut content: Content) -> Result<(Sha256, Content), LoadFailure> {
    Ok(in_background(move || content.sha().map(|sha| (sha, content))).await??)
}

/// The current time, in milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An error with all its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
