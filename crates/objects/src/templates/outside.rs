//! External look-ups of templates: secrets, and the addresses on the operator's allow-lists.
//!
//! **Invariant:** an address that is not on an allow-list is never requested, not even after a redirect.
//! Lists are empty by default.
//!
//! **Invariant:** errors contain neither a response body nor the query of a URL.
//!
//! **Invariant:** a secret that the data names is read only if the shard may read it, and is recorded with
//! the shard.

mod allowed;
mod github;
mod s3;
mod url;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use qontract_client_http::{Http, HttpError, StatusCode};
use qontract_client_secrets::{Fields, Reader, SecretsError};
use qontract_runtime::{Fault, Read, SecretLookup};
use qontract_template::{Address, Answer, Data};

use crate::resources::entry::SecretAddress;

pub use allowed::{Allowed, Limits};
use github::GithubFile;
use s3::BucketName;
pub(crate) use s3::{Account, accounts};

/// Redirect status codes.
const ELSEWHERE: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];

/// External look-ups of templates.
pub struct Outside {
    secrets: Arc<dyn Reader>,
    outward: Option<Outward>,
}

/// Look-ups over HTTP, restricted by allow-lists.
struct Outward {
    allowed: Allowed,
    http: Http,
}

/// The result of a look-up, cached for all shards of a round.
type Found = Result<Answer, Fault>;

impl Outside {
    /// Allows secrets only.
    pub fn secrets(secrets: Arc<dyn Reader>) -> Self {
        Self { secrets, outward: None }
    }

    /// Allows secrets and the addresses on allow-lists, through this HTTP client.
    pub fn allowed(secrets: Arc<dyn Reader>, allowed: Allowed, http: Http) -> Self {
        Self { secrets, outward: Some(Outward { allowed, http }) }
    }

    /// Reads all fields of a secret that the data names.
    pub(crate) async fn fields(&self, read: &Read, address: &SecretAddress) -> Result<Fields, Fault> {
        read.secrets.check(&address.lookup())?;
        let version = address.version.map(|version| version.unsigned_abs().into());
        let fields = self.secrets.read_all(&read.permit, &address.path, version).await;
        let fields = fields.map_err(|error| crate::resources::resolve::fault(&error))?;
        for value in fields.values() {
            read.secrets.record(value.expose());
        }
        Ok(fields)
    }

    /// Looks up one field of a secret. A failed read may be transient, so it is a fault: the object is
    /// unknown, and the template is not to blame.
    pub(crate) async fn secret(&self, read: &Read, lookup: &SecretLookup, allow_not_found: bool) -> Found {
        read.secrets.check(lookup)?;
        let (path, key) = (&lookup.path, lookup.field.as_deref().unwrap_or_default());
        let version = match lookup.version.as_deref().map(str::parse::<u64>) {
            None => None,
            Some(Ok(version)) => Some(version),
            Some(Err(_)) => return Ok(Answer::Failed(format!("the version of `{path}` is not a number"))),
        };
        let absent =
            |why: String| if allow_not_found { Answer::Known(Data::Null) } else { Answer::Failed(why) };
        match self.secrets.read_all(&read.permit, path, version).await {
            Ok(fields) => Ok(match fields.get(key) {
                Some(value) => {
                    read.secrets.record(value.expose());
                    Answer::Known(Data::text(value.expose()))
                }
                None => absent(format!("`{path}` has no field `{key}`")),
            }),
            Err(error @ SecretsError::NotFound(_)) => Ok(absent(error.to_string())),
            Err(error) => Err(crate::resources::resolve::fault(&error)),
        }
    }

    /// Looks up an external address; the result is cached for the round. A failed request is a fault, since
    /// it may be transient or for the operator to fix. An address that is not allowed, or does not exist, is
    /// an error of the template.
    pub(crate) async fn outward(
        &self,
        read: &Read,
        address: &Address,
        accounts: &BTreeMap<String, Account>,
    ) -> Found {
        // The account is not part of the address, and templates may resolve it differently; so it is part of
        // the cache key.
        let account = match address {
            Address::S3Object { account, .. } | Address::S3List { account, .. } => accounts.get(account),
            _ => None,
        };
        // The first shard of a round fills the cache for all others, so the permission is checked for each
        // shard.
        if let Some(account) = account.filter(|_| self.outward.is_some()) {
            read.secrets.check(&account.lookup())?;
        }
        let ask = async {
            match &self.outward {
                Some(outward) => outward.ask(read, &*self.secrets, address, account).await,
                None => Ok(Answer::Failed(not_named(setting(address)))),
            }
        };
        // Boxed because the AWS library makes the future large.
        let ask = ask.boxed();
        Found::clone(&*read.memo.once(format!("template {address:?} {account:?}"), ask).await)
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

impl Outward {
    async fn ask(
        &self,
        read: &Read,
        secrets: &dyn Reader,
        address: &Address,
        account: Option<&Account>,
    ) -> Found {
        match address {
            Address::Url { url } => self.url(read, url).await,
            Address::GithubFile { repo, path, reference } => {
                self.github(read, secrets, GithubFile { repository: repo, path, reference }).await
            }
            Address::S3Object { bucket, path, region, account: name }
            | Address::S3List { bucket, path, region, account: name } => {
                if !self.allowed.has_bucket(name, bucket) {
                    return Ok(Answer::Failed(not_named(setting(address))));
                }
                let Some(account) = account else {
                    return Ok(Answer::Failed(format!("the data has no account `{name}`")));
                };
                let bucket = self
                    .bucket(read, secrets, account, BucketName { name: bucket, region: region.as_deref() })
                    .await?;
                match address {
                    Address::S3List { .. } => self.list(read, &bucket, path).await,
                    _ => self.object(read, &bucket, path).await,
                }
            }
            Address::Secret { .. } | Address::Query { .. } | Address::Yesterday => Ok(Answer::Unknown),
        }
    }
}

/// The setting that allows an address.
fn setting(address: &Address) -> &'static str {
    match address {
        Address::GithubFile { .. } => "allow_github",
        Address::S3Object { .. } | Address::S3List { .. } => "allow_s3",
        Address::Url { .. } | Address::Secret { .. } | Address::Query { .. } | Address::Yesterday => {
            "allow_urls"
        }
    }
}

/// The reason why an address is not requested.
fn not_named(setting: &str) -> String {
    format!("`templates.{setting}` in the configuration does not allow it")
}

/// The fault for a failed request, without response body and URL query: either transient, or for the
/// operator.
fn failed(error: &HttpError) -> Fault {
    let text = error.without_body();
    let may_pass = error.is_transient() || error.status().is_some_and(|status| status.is_server_error());
    if may_pass { Fault::remote(text) } else { Fault::operator(text) }
}
