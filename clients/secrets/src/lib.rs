//! Secrets client with a Read half and a Write half, without policy. Works with Vault, with tables of the
//! configuration file, or with a file of a sandbox.
//!
//! **Invariant:** errors and `Debug` output contain no values; a value is a [`Secret`] from the moment it is
//! received until it is sent.
//!
//! ```
//! use qontract_access::ReadPermit;
//! use qontract_client_secrets::{Secret, SecretReader, SecretRef, SecretsError};
//!
//! async fn token(permit: &ReadPermit, secrets: &dyn SecretReader) -> Result<Secret, SecretsError> {
//!     secrets.read(permit, &SecretRef::new("creds/forge", "token")).await
//! }
//! ```

mod config_secrets;
mod error;
mod file_secrets;
mod location;
mod reference;
mod vault;

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

pub use config_secrets::ConfigSecrets;
pub use error::SecretsError;
pub use file_secrets::FileSecrets;
pub use location::SecretLocation;
pub use qontract_client_http::Secret;
pub use reference::{SecretRef, ValueFormat};
pub use vault::{CacheSettings, KvVersion, Login, MAX_ANSWER_BYTES, Vault, VaultSettings};

/// All values of one secret, by field.
pub type SecretFields = BTreeMap<String, Secret>;

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The new values were written.
    Changed,
    /// The secret already had the values; nothing was written.
    Unchanged,
}

/// The Read half.
pub trait SecretReader: Send + Sync {
    /// Reads the value of a reference.
    fn read<'a>(
        &'a self,
        permit: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>>;

    /// Reads all values of a secret, in this version or the latest.
    fn read_all<'a>(
        &'a self,
        permit: &'a ReadPermit,
        path: &'a str,
        version: Option<u64>,
    ) -> BoxFuture<'a, Result<SecretFields, SecretsError>>;
}

/// The Write half. Every call is idempotent.
pub trait SecretWriter: Send + Sync {
    /// Writes exactly these fields as the latest version of a secret, unless the latest version already has
    /// them.
    fn write<'a>(
        &'a self,
        permit: &'a WritePermit,
        path: &'a str,
        fields: &'a SecretFields,
    ) -> BoxFuture<'a, Result<WriteOutcome, SecretsError>>;
}

/// A client with both halves.
pub trait Secrets: SecretReader + SecretWriter {}

impl<T: SecretReader + SecretWriter> Secrets for T {}
