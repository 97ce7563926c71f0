//! The secret store, opened by the first call, because an integration without secrets does not need a working
//! secret store.

use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_secrets::{
    Secret, SecretFields, SecretReader, SecretRef, SecretWriter, Secrets, SecretsError, WriteOutcome,
};

/// A secret store that is opened by the first call or, if opening it fails, by a later call.
pub(super) struct LazySecrets {
    open: Box<dyn Fn() -> anyhow::Result<Arc<dyn Secrets>> + Send + Sync>,
    /// The open store, which stays open until this value is dropped.
    opened: OnceLock<Arc<dyn Secrets>>,
}

impl LazySecrets {
    /// Creates a store that `open` opens.
    pub fn new(open: impl Fn() -> anyhow::Result<Arc<dyn Secrets>> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), opened: OnceLock::new() }
    }

    fn store(&self) -> Result<&dyn Secrets, SecretsError> {
        if let Some(store) = self.opened.get() {
            return Ok(&**store);
        }
        let opened = (self.open)().map_err(|error| SecretsError::Settings(format!("{error:#}")))?;
        Ok(&**self.opened.get_or_init(|| opened))
    }
}

impl SecretReader for LazySecrets {
    fn read<'a>(
        &'a self,
        permit: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>> {
        async move { self.store()?.read(permit, secret).await }.boxed()
    }

    fn read_all<'a>(
        &'a self,
        permit: &'a ReadPermit,
        path: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, Result<SecretFields, SecretsError>> {
        async move { self.store()?.read_all(permit, path, version).await }.boxed()
    }
}

impl SecretWriter for LazySecrets {
    fn write<'a>(
        &'a self,
        permit: &'a WritePermit,
        path: &'a str,
        fields: &'a SecretFields,
    ) -> BoxFuture<'a, Result<WriteOutcome, SecretsError>> {
        async move { self.store()?.write(permit, path, fields).await }.boxed()
    }
}
