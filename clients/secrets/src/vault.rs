//! Vault and compatible servers: KV 1 and 2.
//!
//! **Invariant:** a cached latest version is read again after a bounded time. Failures to read a secret are
//! never cached.

mod cache;
mod call;
mod kv;
mod login;
mod mounts;
mod session;
mod token_lease;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{AccessPermit, ReadPermit, WritePermit};
use qontract_client_http::{Http, SafePost, Secret, Url};

use cache::{CacheKey, SecretCache};
use mounts::MountCache;
use session::SharedSession;

pub use cache::CacheSettings;
pub use login::Login;
pub use mounts::KvVersion;

use crate::error::SecretsError;
use crate::location::{SecretLocation, segments};
use crate::reference::SecretRef;
use crate::{SecretFields, SecretReader, SecretWriter, WriteOutcome};

/// Maximum size of a Vault response, in bytes. Vault itself limits requests to 32 MiB; secrets have a few
/// KiB.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The settings of a Vault client.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// The address: `https://host:8200/`.
    pub server: Url,
    /// The login method.
    pub login: Login,
    /// Mounts whose KV version is configured instead of queried, by path.
    pub mounts: BTreeMap<String, KvVersion>,
    /// The cache settings.
    pub caching: CacheSettings,
}

impl VaultSettings {
    /// The default settings.
    pub fn new(server: Url, login: Login) -> Self {
        Self { server, login, mounts: BTreeMap::new(), caching: CacheSettings::default() }
    }
}

/// A Vault client. Clones share session and cache.
#[derive(Clone, Debug)]
pub struct Vault {
    http: Http,
    shared: Arc<SharedVault>,
}

/// The state that all runs share: session, mounts and cache.
#[derive(Debug)]
struct SharedVault {
    server: Url,
    login: Login,
    sessions: SharedSession,
    mounts: MountCache,
    cache: Arc<SecretCache>,
}

/// A secret that was read.
#[derive(Clone, Debug)]
struct FetchedSecret {
    fields: SecretFields,
    mount: String,
}

impl Vault {
    /// Creates a client with these settings. Sends no requests.
    #[expect(
        clippy::disallowed_methods,
        reason = "logins and token renewals change nothing but our own session"
    )]
    pub fn new(http: &Http, settings: VaultSettings) -> Self {
        let VaultSettings { server, login, mounts, caching } = settings;
        let mut http = http.clone();
        for path in login.post_paths() {
            let place = call::build_api_url(&server, &path.split('/').collect::<Vec<_>>());
            http = http.with_safe_post(SafePost::new(&server, place.path()));
        }
        let shared = SharedVault {
            server,
            login,
            sessions: SharedSession::default(),
            mounts: MountCache::new(mounts, caching.pinned_ttl),
            cache: Arc::new(SecretCache::new(caching)),
        };
        Self { http, shared: Arc::new(shared) }
    }

    /// Creates a client for another run that shares session and cache.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { http: self.http.for_run(permit), shared: Arc::clone(&self.shared) }
    }

    /// Reads a secret, from the cache if it has not expired.
    async fn cached_secret(
        &self,
        permit: &ReadPermit,
        path: &str,
        version: Option<u64>,
    ) -> Result<Arc<FetchedSecret>, SecretsError> {
        segments(path)?;
        let (vault, permit) = (self.clone(), permit.clone());
        let key = CacheKey { path: path.to_owned(), version };
        let load = |CacheKey { path, version }: CacheKey| {
            async move { vault.fetch(AccessPermit::Read(&permit), &path, version).await }.boxed()
        };
        self.shared.cache.get(key, load).await
    }
}

impl SecretReader for Vault {
    fn read<'a>(
        &'a self,
        permit: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>> {
        async move {
            let found = self.cached_secret(permit, &secret.path, secret.version).await?;
            secret.select_field(&found.fields, || {
                SecretLocation::in_mount(&secret.path, secret.version, &found.mount)
            })
        }
        .boxed()
    }

    fn read_all<'a>(
        &'a self,
        permit: &'a ReadPermit,
        path: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, Result<SecretFields, SecretsError>> {
        async move { Ok(self.cached_secret(permit, path, version).await?.fields.clone()) }.boxed()
    }
}

impl SecretWriter for Vault {
    fn write<'a>(
        &'a self,
        permit: &'a WritePermit,
        path: &'a str,
        fields: &'a SecretFields,
    ) -> BoxFuture<'a, Result<WriteOutcome, SecretsError>> {
        async move {
            let written = self.put(permit, path, fields).await;
            // The cache is invalidated after any outcome, because a failed write may have changed the secret.
            self.shared.cache.invalidate(path);
            written
        }
        .boxed()
    }
}
