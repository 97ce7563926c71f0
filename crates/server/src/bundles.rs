//! Loads, finds and drops the bundles of a server. Loading runs in the background.
//!
//! **Invariant:** a failed load leaves the loaded bundles unchanged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use qontract_bundle::{LoadError, Pool, Sha256};
use qontract_concurrency::{Limiter, OnceMap};
use qontract_diagnostics::error_chain;
use qontract_graphql::{Engine, SchemaError};
use tokio::task::spawn_blocking;

use crate::bundle_source::{BundleSource, BundleStore, Content, SourceError};
use crate::registry::BundleRegistry;
use crate::route::RequestedBundle;

/// Time in milliseconds before the bundle of a sha that the store did not contain is requested again.
const ABSENT_RETRY_MS: u64 = 10_000;
/// Time in milliseconds before the bundle of a sha whose read failed is requested again.
const FAILED_RETRY_MS: u64 = 1_000;
/// Maximum number of unavailable shas in the negative cache. When it is full, it is cleared.
const MAX_MISSING: usize = 1024;
/// Maximum number of bundles that are being fetched or are queued to be fetched.
const MAX_FETCHING: usize = 64;

/// The reason why a bundle could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// The bundle cannot be read.
    #[error("the bundle cannot be read")]
    Source(#[from] SourceError),
    /// The content is not a valid bundle.
    #[error("not a valid bundle")]
    Bundle(#[from] LoadError),
    /// The GraphQL types of the bundle are invalid.
    #[error("the GraphQL types of the bundle are invalid")]
    Types(#[from] SchemaError),
    /// Loading panicked, which is a bug in this program.
    #[error("loading the bundle panicked; this is a bug")]
    Panic,
}

/// The reason why a bundle is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The bundle does not exist.
    NotFound,
    /// The bundle may be available later.
    RetryLater(String),
}

/// A change to the set of loaded bundles, or a failed attempt to load a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleEvent {
    /// A bundle was loaded and is the latest.
    Loaded(Sha256),
    /// The source still has the bundle that is already the latest.
    Same(Sha256),
    /// The source returned to an earlier bundle that is still loaded. This bundle is the latest now.
    RolledBack(Sha256),
    /// A bundle was loaded from the store.
    Fetched(Sha256),
    /// A bundle was dropped.
    Dropped(Sha256),
    /// A bundle could not be loaded; nothing changed.
    Failed(String),
}

/// Receives bundle events.
pub type BundleObserver = Arc<dyn Fn(BundleEvent) + Send + Sync>;

/// The bundles of a server.
pub struct Bundles {
    pool: Arc<Pool>,
    registry: Mutex<BundleRegistry>,
    source: Option<Arc<dyn BundleSource>>,
    store: Option<BundleStore>,
    observer: BundleObserver,
    /// A lock that is held during a reload, so that only one reload runs at a time.
    reloading: tokio::sync::Mutex<()>,
    /// A permit that is held while a bundle is fetched, so that only one bundle is fetched at a time.
    fetch_permit: Limiter,
    /// The fetches in progress, by sha, so that concurrent requests for one bundle share a fetch.
    fetching: OnceMap<Sha256, Result<Arc<Engine>, Unavailable>>,
    /// The negative cache: shas of bundles that the store did not deliver.
    missing: Mutex<HashMap<Sha256, MissingBundle>>,
}

impl Bundles {
    /// Creates an empty set of bundles.
    pub fn new(
        registry: BundleRegistry,
        source: Option<Arc<dyn BundleSource>>,
        store: Option<BundleStore>,
        observer: BundleObserver,
    ) -> Self {
        Self {
            pool: Arc::default(),
            registry: Mutex::new(registry),
            source,
            store,
            observer,
            reloading: tokio::sync::Mutex::default(),
            fetch_permit: Limiter::new(1),
            fetching: OnceMap::default(),
            missing: Mutex::default(),
        }
    }

    /// Locks the registry. Do not hold the guard across an `await`.
    pub fn registry(&self) -> MutexGuard<'_, BundleRegistry> {
        self.registry.lock()
    }

    /// Loads the current bundle of the source and makes it the latest.
    pub async fn reload(self: &Arc<Self>) -> Result<BundleEvent, LoadFailure> {
        match &self.source {
            Some(origin) => self.load(Arc::clone(origin)).await,
            None => Err(SourceError::Other("no source to reload from".to_owned()).into()),
        }
    }

    /// Loads a bundle and makes it the latest. A load that has started completes even if the caller is dropped.
    pub async fn load(self: &Arc<Self>, origin: Arc<dyn BundleSource>) -> Result<BundleEvent, LoadFailure> {
        let bundles = Arc::clone(self);
        let loading = tokio::spawn(async move {
            let _one_at_a_time = bundles.reloading.lock().await;
            let result = bundles.load_now(&*origin).await;
            (bundles.observer)(match &result {
                Ok(event) => event.clone(),
                Err(error) => BundleEvent::Failed(format!("{}: {}", origin.name(), error_chain(error))),
            });
            result
        });
        loading.await.unwrap_or(Err(LoadFailure::Panic))
    }

    async fn load_now(&self, origin: &dyn BundleSource) -> Result<BundleEvent, LoadFailure> {
        let mut content = origin.read(&self.pool).await?;
        // Checking whether a bundle is loaded is cheaper than loading it. The check is skipped before the
        // first load, when no bundle is loaded.
        if self.registry().latest().is_some() {
            let (sha, named) = with_sha(content).await?;
            content = named;
            if self.registry().latest().is_some_and(|latest| latest.bundle().sha() == sha) {
                self.registry().touch(sha, now());
                return Ok(BundleEvent::Same(sha));
            }
            if self.registry().make_latest(sha, now()) {
                return Ok(BundleEvent::RolledBack(sha));
            }
        }
        let engine = self.engine(content).await?;
        let sha = engine.bundle().sha();
        let dropped = self.registry().put_latest(engine, now());
        self.drop_engines(dropped);
        Ok(BundleEvent::Loaded(sha))
    }

    /// Prepares a bundle for queries. The engine shares equal types, plans and tables with the engine of the latest
    /// bundle.
    async fn engine(&self, content: Content) -> Result<Arc<Engine>, LoadFailure> {
        if let Content::Ready(engine) = content {
            return Ok(engine);
        }
        let (pool, beside) = (Arc::clone(&self.pool), self.registry().latest().cloned());
        in_background(move || {
            let bundle = content.load(&pool)?;
            let engine = match beside {
                Some(latest) => {
                    let bundle = Arc::unwrap_or_clone(bundle).sharing_paths_with(latest.bundle());
                    latest.derive(Arc::new(bundle))?
                }
                None => Engine::new(bundle)?,
            };
            Ok(Arc::new(engine))
        })
        .await?
    }

    /// Reports dropped bundles and frees them in the background: requests should not wait for the time that it takes
    /// to free a hundred thousand documents.
    fn drop_engines(&self, engines: Vec<Arc<Engine>>) {
        if engines.is_empty() {
            return;
        }
        for engine in &engines {
            (self.observer)(BundleEvent::Dropped(engine.bundle().sha()));
        }
        let pool = Arc::clone(&self.pool);
        spawn_blocking(move || {
            drop(engines);
            pool.sweep();
        });
    }

    /// Finds the requested bundle; a bundle that is not loaded is fetched from the store.
    pub async fn find(self: &Arc<Self>, which: &RequestedBundle) -> Result<Arc<Engine>, Unavailable> {
        let name = match which {
            RequestedBundle::Latest => return self.registry().latest().cloned().ok_or(Unavailable::NotFound),
            RequestedBundle::Named(name) => name,
        };
        // A sha has only one valid spelling; any other spelling is not found.
        let sha = Sha256::parse(name).filter(|sha| sha.to_string() == *name).ok_or(Unavailable::NotFound)?;
        let held = self.registry().get(sha).cloned();
        match held {
            Some(engine) => Ok(engine),
            None if self.store.is_some() => self.fetch(sha).await,
            None => Err(Unavailable::NotFound),
        }
    }

    /// Fetches a bundle from the store. Concurrent requests for the same bundle share one read, which
    /// completes even if all of them are dropped.
    async fn fetch(self: &Arc<Self>, sha: Sha256) -> Result<Arc<Engine>, Unavailable> {
        if let Some(missing) = self.cached_missing(sha) {
            return Err(missing);
        }
        let Some(entry) = self.fetching.entry_within(sha, MAX_FETCHING) else {
            return Err(Unavailable::RetryLater("too many bundles are being read from the store".to_owned()));
        };
        let bundles = Arc::clone(self);
        let fetched =
            tokio::spawn(
                async move { entry.get_or_init_if(|_| false, || bundles.fetch_exclusive(sha)).await },
            );
        fetched.await.unwrap_or_else(|_| Err(defect()))
    }

    async fn fetch_exclusive(&self, sha: Sha256) -> Result<Arc<Engine>, Unavailable> {
        let Some(store) = &self.store else { return Err(Unavailable::NotFound) };
        let _one_at_a_time = self.fetch_permit.acquire().await.map_err(|_| defect())?;
        if let Some(engine) = self.registry().get(sha) {
            return Ok(Arc::clone(engine));
        }
        let full = || {
            Unavailable::RetryLater(
                "the server holds its maximum number of bundles from the store".to_owned(),
            )
        };
        if !self.registry().has_room(now()) {
            return Err(full());
        }
        match self.fetch_from(store, sha).await {
            Ok(Some(engine)) => {
                let dropped = self.registry().put_fetched(Arc::clone(&engine), now());
                self.drop_engines(dropped.map_err(|_| full())?);
                (self.observer)(BundleEvent::Fetched(sha));
                Ok(engine)
            }
            Ok(None) => Err(self.cache_missing(sha, Unavailable::NotFound)),
            Err(why) => {
                (self.observer)(BundleEvent::Failed(format!("bundle {sha} from the store: {why}")));
                let text = "the bundle cannot be read from the store".to_owned();
                Err(self.cache_missing(sha, Unavailable::RetryLater(text)))
            }
        }
    }

    async fn fetch_from(&self, store: &BundleStore, sha: Sha256) -> Result<Option<Arc<Engine>>, String> {
        let Some(content) = store.fetch(sha).await.map_err(|error| error_chain(&error))? else {
            return Ok(None);
        };
        let (actual, content) = with_sha(content).await.map_err(|error| error_chain(&error))?;
        if actual != sha {
            return Err("the content does not match the sha".to_owned());
        }
        let engine = self.engine(content).await.map_err(|error| error_chain(&error))?;
        // The file may have been rewritten since its sha was computed.
        if engine.bundle().sha() != sha {
            return Err("the bundle changed while it was being read".to_owned());
        }
        Ok(Some(engine))
    }

    /// Records in the negative cache that a bundle is unavailable, so that it is not requested again for some time.
    fn cache_missing(&self, sha: Sha256, missing: Unavailable) -> Unavailable {
        let mut cache = self.missing.lock();
        if cache.len() >= MAX_MISSING {
            cache.clear();
        }
        cache.insert(sha, MissingBundle { since: now(), reason: missing.clone() });
        missing
    }

    fn cached_missing(&self, sha: Sha256) -> Option<Unavailable> {
        let MissingBundle { since, reason } = self.missing.lock().get(&sha).cloned()?;
        let time = match reason {
            Unavailable::NotFound => ABSENT_RETRY_MS,
            Unavailable::RetryLater(_) => FAILED_RETRY_MS,
        };
        (now().saturating_sub(since) < time).then_some(reason)
    }
}

/// A bundle that the store did not deliver.
#[derive(Clone, Debug)]
struct MissingBundle {
    /// The time of the request, in milliseconds since 1970.
    since: u64,
    reason: Unavailable,
}

fn defect() -> Unavailable {
    Unavailable::RetryLater("reading the bundle panicked; this is a bug".to_owned())
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadFailure> {
    spawn_blocking(work).await.map_err(|_| LoadFailure::Panic)
}

/// Computes the sha of the content of a source, and returns both.
async fn with_sha(mut content: Content) -> Result<(Sha256, Content), LoadFailure> {
    Ok(in_background(move || content.sha().map(|sha| (sha, content))).await??)
}

/// The current time, in milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
