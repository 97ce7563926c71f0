//! Vault and compatible servers: KV 1 and 2.
//!
//! **Invariant:** a cached latest version is read again after a bounded time; only secrets are cached, never
//! failures.

mod cache;
mod call;
mod kv;
mod lease;
mod login;
mod mounts;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{AccessPermit, ReadPermit, WritePermit};
use qontract_client_http::{Http, SafePost, Secret, Url};

use cache::{Cache, Key};
use mounts::Mounts;
use session::Sessions;

pub use cache::Caching;
pub use login::Login;
pub use mounts::Kv;

use crate::error::SecretsError;
use crate::place::{Place, segments};
use crate::reference::SecretRef;
use crate::{Fields, Reader, Writer, Written};

/// Maximum size of a response of Vault, in bytes. Vault itself limits requests to 32 MiB; secrets have a few
/// KiB.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The settings of a Vault client.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// Its address: `https://host:8200/`.
    pub server: Url,
    /// The login method.
    pub login: Login,
    /// Mounts whose KV version is configured instead of queried, by path.
    pub mounts: BTreeMap<String, Kv>,
    /// The cache settings.
    pub caching: Caching,
}

impl VaultSettings {
    /// The default settings.
    pub fn new(server: Url, login: Login) -> Self {
        Self { server, login, mounts: BTreeMap::new(), caching: Caching::default() }
    }
}

/// A Vault client. Clones share session and cache.
#[derive(Clone, Debug)]
pub struct Vault {
    http: Http,
    shared: Arc<Shared>,
}

/// The state that all runs share: session, mounts and cache.
#[derive(Debug)]
struct Shared {
    server: Url,
    login: Login,
    sessions: Sessions,
    mounts: Mounts,
    cache: Arc<Cache>,
}

/// A secret that was read.
#[derive(Clone, Debug)]
struct Found {
    fields: Fields,
    mount: String,
}

impl Vault {
    /// A client with these settings. Sends nothing yet.
    #[expect(
        clippy::disallowed_methods,
        reason = "logins and token renewals change nothing but our own session"
    )]
    pub fn new(http: &Http, settings: VaultSettings) -> Self {
        let VaultSettings { server, login, mounts, caching } = settings;
        let mut http = http.clone();
        for path in login.posts() {
            let place = call::address(&server, &path.split('/').collect::<Vec<_>>());
            http = http.with_safe_post(SafePost::new(&server, place.path()));
        }
        let shared = Shared {
            server,
            login,
            sessions: Sessions::default(),
            mounts: Mounts::new(mounts, caching.pinned),
            cache: Arc::new(Cache::new(caching)),
        };
        Self { http, shared: Arc::new(shared) }
    }

    /// A client for another run that shares session and cache.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { http: self.http.for_run(permit), shared: Arc::clone(&self.shared) }
    }

    /// A secret, from the cache if it has not expired.
    async fn found(
        &self,
        permit: &ReadPermit,
        path: &str,
        version: Option<u64>,
    ) -> Result<Arc<Found>, SecretsError> {
        segments(path)?;
        let (vault, permit) = (self.clone(), permit.clone());
        let key = Key { path: path.to_owned(), version };
        let load = |Key { path, version }: Key| {
            async move { vault.fetch(AccessPermit::Read(&permit), &path, version).await }.boxed()
        };
        self.shared.cache.get(key, load).await
    }
}

impl Reader for Vault {
    fn read<'a>(
        &'a self,
        permit: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>> {
        async move {
            let found = self.found(permit, &secret.path, secret.version).await?;
            secret.pick(&found.fields, || Place::within(&secret.path, secret.version, &found.mount))
        }
        .boxed()
    }

    fn read_all<'a>(
        &'a self,
        permit: &'a ReadPermit,
        path: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, Result<Fields, SecretsError>> {
        async move { Ok(self.found(permit, path, version).await?.fields.clone()) }.boxed()
    }
}

impl Writer for Vault {
    fn write<'a>(
        &'a self,
        permit: &'a WritePermit,
        path: &'a str,
        fields: &'a Fields,
    ) -> BoxFuture<'a, Result<Written, SecretsError>> {
        async move {
            let written = self.put(permit, path, fields).await;
            // Invalidate after any outcome: a failed write may have changed the secret.
            self.shared.cache.forget(path);
            written
        }
        .boxed()
    }
}
