//! External lookups of templates: secrets, and the addresses on the operator's allow-lists.
//!
//! **Invariant:** an address that is not on an allow-list is never requested, not even after a redirect.
//! Lists are empty by default.
//!
//! **Invariant:** errors contain neither a response body nor the query of a URL.
//!
//! **Invariant:** a secret that the data names is read only if the shard may read it. Every secret that is
//! read is recorded with the shard.

mod allow_list;
mod github;
mod s3;
mod url;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use qontract_client_http::{Http, HttpError, StatusCode};
use qontract_client_secrets::{SecretFields, SecretReader, SecretsError};
use qontract_runtime::{Fault, ReadContext, SecretLookup};
use qontract_template::{Data, LookupState, TemplateLookup};

pub use allow_list::{AllowList, LookupLimits};
use github::{GithubFile, GithubRef};
use s3::BucketName;
pub(crate) use s3::{AwsAccount, accounts};

/// Redirect status codes.
const REDIRECT_STATUSES: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];

/// External lookups of templates.
pub struct ExternalLookups {
    secrets: Arc<dyn SecretReader>,
    /// Opens the lookups over HTTP; `None` if no address is allowed.
    open: Box<OpenHttpLookups>,
    /// The result of the first successful call of `open`. It is never invalidated.
    opened: OnceLock<Option<HttpLookups>>,
}

/// Opens the lookups over HTTP; an error names the setting that is wrong.
type OpenHttpLookups = dyn Fn() -> Result<Option<HttpLookups>, String> + Send + Sync;

/// Lookups over HTTP, restricted by allow-lists.
pub struct HttpLookups {
    /// The addresses that may be requested.
    pub allowed: AllowList,
    /// The HTTP client.
    pub http: Http,
}

/// The key of a lookup in the cache of a round. The key includes the account, which is not part of the
/// address, because templates may resolve the name of an account differently.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LookupKey {
    address: TemplateLookup,
    account: Option<AwsAccount>,
}

/// The key of a commit in the cache of a round.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CommitKey {
    repository: String,
    reference: String,
}

/// The result of a lookup, cached for all shards of a round.
type LookupResult = Result<LookupState, Fault>;

impl ExternalLookups {
    /// Allows secrets only.
    pub fn secrets(secrets: Arc<dyn SecretReader>) -> Self {
        Self::on_demand(secrets, || Ok(None))
    }

    /// Allows secrets, and the addresses on the allow-lists that `open` returns. `open` is called by the
    /// first lookup of an address, and again by the next lookup if it failed.
    pub fn on_demand(
        secrets: Arc<dyn SecretReader>,
        open: impl Fn() -> Result<Option<HttpLookups>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { secrets, open: Box::new(open), opened: OnceLock::new() }
    }

    /// The lookups over HTTP; `None` if no address is allowed.
    fn http(&self) -> Result<Option<&HttpLookups>, Fault> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened.as_ref());
        }
        let opened = (self.open)().map_err(Fault::operator)?;
        Ok(self.opened.get_or_init(|| opened).as_ref())
    }

    /// Reads all fields of a secret that the data names.
    pub(crate) async fn fields(
        &self,
        read: &ReadContext,
        path: &str,
        version: Option<i32>,
    ) -> Result<SecretFields, Fault> {
        read.secrets.check(&SecretLookup::all(path, version.map(|version| version.to_string())))?;
        let version = version.map(|version| version.unsigned_abs().into());
        let fields = self.secrets.read_all(&read.permit, path, version).await;
        let fields = fields.map_err(|error| secret_fault(&error))?;
        for (field, value) in &fields {
            let lookup = SecretLookup {
                path: path.to_owned(),
                field: Some(field.clone()),
                version: version.map(|version: u64| version.to_string()),
            };
            read.secrets.record_from(lookup, value.expose());
        }
        Ok(fields)
    }

    /// Looks up one field of a secret. A failed read is a fault and not an error of the template, because it
    /// may be temporary; until it succeeds, the object is unknown.
    pub(crate) async fn secret(
        &self,
        read: &ReadContext,
        lookup: &SecretLookup,
        allow_not_found: bool,
    ) -> LookupResult {
        read.secrets.check(lookup)?;
        let (path, key) = (&lookup.path, lookup.field.as_deref().unwrap_or_default());
        let version = match lookup.version.as_deref().map(str::parse::<u64>) {
            None => None,
            Some(Ok(version)) => Some(version),
            Some(Err(_)) => {
                return Ok(LookupState::Failed(format!("the version of `{path}` is not a number")));
            }
        };
        let absent = |why: String| {
            if allow_not_found { LookupState::Ready(Data::Null) } else { LookupState::Failed(why) }
        };
        match self.secrets.read_all(&read.permit, path, version).await {
            Ok(fields) => Ok(match fields.get(key) {
                Some(value) => {
                    read.secrets.record_from(lookup.clone(), value.expose());
                    LookupState::Ready(Data::text(value.expose()))
                }
                None => absent(format!("`{path}` has no field `{key}`")),
            }),
            Err(error @ SecretsError::NotFound(_)) => Ok(absent(error.to_string())),
            Err(error) => Err(secret_fault(&error)),
        }
    }

    /// Looks up an external address; the result is cached for the round. A failed request is a fault, because
    /// it may be temporary or for the operator to fix. An address that is not allowed, or does not exist, is
    /// an error of the template.
    pub(crate) async fn look_up(
        &self,
        read: &ReadContext,
        address: &TemplateLookup,
        accounts: &BTreeMap<String, AwsAccount>,
    ) -> LookupResult {
        let account = match address {
            TemplateLookup::S3Object { account, .. } | TemplateLookup::S3List { account, .. } => {
                accounts.get(account)
            }
            _ => None,
        };
        let http = self.http()?;
        // The permission is checked for each shard, because the first shard of a round fills the cache for
        // all others.
        if let Some(account) = account.filter(|_| http.is_some()) {
            read.secrets.check(&account.lookup())?;
        }
        let request = async {
            match http {
                Some(outward) => outward.request(read, &*self.secrets, address, account).await,
                None => Ok(LookupState::Failed(not_allowed(setting(address)))),
            }
        };
        // The future is boxed, because the AWS library makes it large.
        let request = request.boxed();
        let key = LookupKey { address: address.clone(), account: account.cloned() };
        LookupResult::clone(&*read.cache.get_or_read(key, request).await)
    }
}

impl ExternalLookups {
    /// The commit of a branch, tag or commit of a repository on GitHub; the result is cached for the round. A commit
    /// is returned without a request. The repository must not come from the data, because it is on no allow-list.
    pub async fn commit(
        &self,
        read: &ReadContext,
        repository: &str,
        reference: &str,
    ) -> Result<String, Fault> {
        if github::is_commit(reference) {
            return Ok(reference.to_owned());
        }
        let Some(repository) = github::github_repository(repository) else {
            let text = format!(
                "the ref `{reference}` cannot be resolved: `{repository}` is not a GitHub repository"
            );
            return Err(Fault::operator(text).hint("specify a commit instead of a ref"));
        };
        let Some(http) = self.http()? else {
            let text = format!("the ref `{reference}` cannot be resolved: GitHub is not configured");
            return Err(Fault::operator(text).hint("set `templates.github_api` in the configuration"));
        };
        let key = CommitKey { repository: repository.to_owned(), reference: reference.to_owned() };
        let request = http.commit(read, &*self.secrets, GithubRef { repository, reference }).boxed();
        Result::clone(&*read.cache.get_or_read(key, request).await)
    }
}

impl fmt::Debug for ExternalLookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalLookups").finish_non_exhaustive()
    }
}

impl HttpLookups {
    async fn request(
        &self,
        read: &ReadContext,
        secrets: &dyn SecretReader,
        address: &TemplateLookup,
        account: Option<&AwsAccount>,
    ) -> LookupResult {
        match address {
            TemplateLookup::Url { url } => self.url(read, url).await,
            TemplateLookup::GithubFile { repo, path, reference } => {
                self.github(read, secrets, GithubFile { repository: repo, path, reference }).await
            }
            TemplateLookup::S3Object { bucket, path, region, account: name }
            | TemplateLookup::S3List { bucket, path, region, account: name } => {
                if !self.allowed.has_bucket(name, bucket) {
                    return Ok(LookupState::Failed(not_allowed(setting(address))));
                }
                let Some(account) = account else {
                    return Ok(LookupState::Failed(format!("the data has no account `{name}`")));
                };
                let bucket = self
                    .bucket(read, secrets, account, BucketName { name: bucket, region: region.as_deref() })
                    .await?;
                match address {
                    TemplateLookup::S3List { .. } => self.list(read, &bucket, path).await,
                    _ => self.object(read, &bucket, path).await,
                }
            }
            TemplateLookup::Secret { .. } | TemplateLookup::Query { .. } | TemplateLookup::Yesterday => {
                Ok(LookupState::Pending)
            }
        }
    }
}

/// Converts an error of the secret store into a fault that names the party that has to act.
fn secret_fault(error: &SecretsError) -> Fault {
    let text = error.to_string();
    match error {
        SecretsError::NotFound(_) => Fault::author(text),
        _ if error.is_transient() => Fault::remote(text),
        _ => Fault::operator(text),
    }
}

/// The name of the setting that allows an address.
fn setting(address: &TemplateLookup) -> &'static str {
    match address {
        TemplateLookup::GithubFile { .. } => "allow_github",
        TemplateLookup::S3Object { .. } | TemplateLookup::S3List { .. } => "allow_s3",
        TemplateLookup::Url { .. }
        | TemplateLookup::Secret { .. }
        | TemplateLookup::Query { .. }
        | TemplateLookup::Yesterday => "allow_urls",
    }
}

/// The reason why an address is not requested.
fn not_allowed(setting: &str) -> String {
    format!("`templates.{setting}` in the configuration does not allow it")
}

/// The fault for a failed request, without response body and URL query. The fault is either temporary or for
/// the operator to fix.
fn request_fault(error: &HttpError) -> Fault {
    let text = error.without_body();
    let may_pass = error.is_transient() || error.status().is_some_and(|status| status.is_server_error());
    if may_pass { Fault::remote(text) } else { Fault::operator(text) }
}
