//! Vault, or a server that speaks as it does: KV 1 and 2.
//!
//! **Invariant:** what is latest is asked for again after a bounded time; only answers about secrets are kept, never
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

/// Maximum size of an answer of Vault, in bytes. Vault itself limits requests to 32 MiB; secrets have a few KiB.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Where Vault is and how it is spoken to.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// Its address: `https://host:8200/`.
    pub server: Url,
    /// How we are let in.
    pub login: Login,
    /// Mounts whose engine is not to be asked for, by path.
    pub mounts: BTreeMap<String, Kv>,
    /// What is remembered, and for how long.
    pub caching: Caching,
}

impl VaultSettings {
    /// The usual settings.
    pub fn new(server: Url, login: Login) -> Self {
        Self { server, login, mounts: BTreeMap::new(), caching: Caching::default() }
    }
}

/// A Vault. A clone is the same one.
#[derive(Clone, Debug)]
pub struct Vault {
    http: Http,
    shared: Arc<Shared>,
}

/// What all runs have in common: who we are there, and what was read.
#[derive(Debug)]
struct Shared {
    server: Url,
    login: Login,
    sessions: Sessions,
    mounts: Mounts,
    cache: Arc<Cache>,
}

/// A secret as it was read.
#[derive(Clone, Debug)]
struct Found {
    fields: Fields,
    mount: String,
}

impl Vault {
    /// The Vault of these settings; nothing is sent yet.
    #[expect(
        clippy::disallowed_methods,
        reason = "logging in, and prolonging that login, change nothing but our own session"
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

    /// The same Vault for another run.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { http: self.http.for_run(permit), shared: Arc::clone(&self.shared) }
    }

    /// A secret, from memory if it is fresh enough.
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
            // Whatever became of it, what we know is old.
            self.shared.cache.forget(path);
            written
        }
        .boxed()
    }
}
