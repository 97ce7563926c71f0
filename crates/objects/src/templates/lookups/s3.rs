//! `s3(…)` and `s3_ls(…)`: the content of an object, and the keys under a path, read with the access key in
//! the account's secret.

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_blobs::{BlobKey, BlobReader as _, BlobsError, S3, S3Credentials, S3Settings};
use qontract_client_secrets::SecretReader;
use qontract_runtime::{Data as Source, Fault, ReadContext, SecretLookup};
use qontract_template::{Data, LookupState, TemplateLookup};

use super::{HttpLookups, LookupResult, secret_fault};
use crate::templates::variables;

/// The access key and region of an AWS account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AwsAccount {
    /// Path of the secret with the access key of the account.
    secret: String,
    /// The version of the secret.
    version: Option<u64>,
    /// The default region.
    region: String,
}

impl AwsAccount {
    /// The lookup of the secret with the access key of the account.
    pub fn lookup(&self) -> SecretLookup {
        SecretLookup::all(&self.secret, self.version.map(|version| version.to_string()))
    }
}

/// The query that lists all AWS accounts.
const ACCOUNTS_QUERY: &str =
    "{ accounts: awsaccounts_v1 { name resourcesDefaultRegion automationToken { path version } } }";

/// Maximum number of pages of keys that are read.
const MAX_PAGES: usize = 10;

/// The accounts of these addresses. An account that is not in the data is reported when it is used.
pub fn accounts(
    data: &Source,
    addresses: &BTreeSet<TemplateLookup>,
) -> Result<BTreeMap<String, AwsAccount>, Fault> {
    let named: BTreeSet<&str> = addresses
        .iter()
        .filter_map(|address| match address {
            TemplateLookup::S3Object { account, .. } | TemplateLookup::S3List { account, .. } => {
                Some(account.as_str())
            }
            _ => None,
        })
        .collect();
    if named.is_empty() {
        return Ok(BTreeMap::new());
    }
    let answered = data.query_ad_hoc(ACCOUNTS_QUERY, None)?;
    let Data::Map(fields) = variables::node_value(&answered.data) else { return Ok(BTreeMap::new()) };
    let Some((_, Data::List(all))) = fields.into_iter().next() else { return Ok(BTreeMap::new()) };
    let accounts = all.iter().filter_map(|account| {
        let name = text(account, &["name"])?;
        named.contains(name.as_str()).then(|| Some((name, parse_account(account)?))).flatten()
    });
    Ok(accounts.collect())
}

fn parse_account(account: &Data) -> Option<AwsAccount> {
    let version = match field(account, &["automationToken", "version"]) {
        Some(Data::Int(version)) => u64::try_from(*version).ok(),
        _ => None,
    };
    Some(AwsAccount {
        secret: text(account, &["automationToken", "path"])?,
        version,
        region: text(account, &["resourcesDefaultRegion"])?,
    })
}

fn field<'d>(data: &'d Data, path: &[&str]) -> Option<&'d Data> {
    path.iter().try_fold(data, |data, name| match data {
        Data::Map(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
        _ => None,
    })
}

fn text(data: &Data, path: &[&str]) -> Option<String> {
    match field(data, path) {
        Some(Data::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// A bucket, and its region if it differs from the account's default.
pub(super) struct BucketName<'a> {
    pub name: &'a str,
    pub region: Option<&'a str>,
}

impl HttpLookups {
    /// Connects to a bucket of an account.
    pub(super) async fn bucket(
        &self,
        read: &ReadContext,
        secrets: &dyn SecretReader,
        account: &AwsAccount,
        bucket: BucketName<'_>,
    ) -> Result<S3, Fault> {
        let BucketName { name: bucket, region } = bucket;
        let AwsAccount { secret: path, version, region: usual } = account;
        let fields = secrets.read_all(&read.permit, path, *version).await;
        let fields = fields.map_err(|error| secret_fault(&error))?;
        let field = |name: &str| {
            let missing = || Fault::operator(format!("`{path}` has no field `{name}`"));
            let secret = fields.get(name).ok_or_else(missing)?;
            read.secrets.record(secret.expose());
            Ok::<_, Fault>(secret)
        };
        let credentials = S3Credentials::Keys {
            id: field("aws_access_key_id")?.expose().to_owned(),
            secret: field("aws_secret_access_key")?.clone(),
        };
        let region = region.unwrap_or(usual);
        if !is_region(region) {
            return Err(Fault::author(format!("`{region}` is not the name of a region")));
        }
        let limits = self.allowed.limits;
        let settings = S3Settings {
            endpoint: self.allowed.s3_endpoint.clone(),
            deadline: limits.deadline,
            attempt_timeout: limits.deadline / 2,
            retries: 2,
            max_blob_bytes: limits.max_bytes as u64,
            ..S3Settings::new(bucket, region, credentials)
        };
        Ok(S3::new(&read.permit, settings).await)
    }

    /// Reads the content of an object.
    pub(super) async fn object(&self, read: &ReadContext, bucket: &S3, path: &str) -> LookupResult {
        let key = match BlobKey::new(path) {
            Ok(key) => key,
            Err(error) => return Ok(LookupState::Failed(error.to_string())),
        };
        match bucket.get(&read.permit, &key).await {
            Ok(Some(blob)) => Ok(match String::from_utf8(blob.bytes) {
                Ok(text) => LookupState::Ready(Data::Text(text)),
                Err(_) => LookupState::Failed("it is not text".to_owned()),
            }),
            Ok(None) => Ok(LookupState::Failed("it does not exist".to_owned())),
            Err(error) => blob_error(&error),
        }
    }

    /// Lists the keys under a path. The deadline applies to all pages together.
    pub(super) async fn list(&self, read: &ReadContext, bucket: &S3, path: &str) -> LookupResult {
        let deadline = self.allowed.limits.deadline;
        let listed = tokio::time::timeout(deadline, self.pages(read, bucket, path)).await;
        listed.unwrap_or_else(|_| {
            Err(Fault::remote(format!(
                "listing blobs below `{path}` took more than {} s",
                deadline.as_secs()
            )))
        })
    }

    async fn pages(&self, read: &ReadContext, bucket: &S3, path: &str) -> LookupResult {
        let (mut keys, mut bytes, mut cursor) = (Vec::new(), 0, None);
        for _ in 0..MAX_PAGES {
            let page = match bucket.list(&read.permit, path, cursor.as_ref()).await {
                Ok(page) => page,
                Err(error) => return blob_error(&error),
            };
            bytes += page.entries.iter().map(|entry| entry.key.len()).sum::<usize>();
            if bytes > self.allowed.limits.max_bytes {
                break;
            }
            keys.extend(page.entries.into_iter().map(|entry| Data::Text(entry.key)));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(LookupState::Ready(Data::List(keys)));
            }
        }
        Ok(LookupState::Failed("there are too many keys".to_owned()))
    }
}

/// Converts an S3 error into an error of the template or into a fault.
fn blob_error(error: &BlobsError) -> LookupResult {
    let text = error.to_string();
    match error {
        BlobsError::NoBucket(_) | BlobsError::TooLarge { .. } => Ok(LookupState::Failed(text)),
        _ if error.is_transient() => Err(Fault::remote(text)),
        _ => Err(Fault::operator(text)),
    }
}

/// Whether a string is a valid region name. This is checked because the region becomes part of a host name
/// and of a signature.
fn is_region(text: &str) -> bool {
    let is_fine = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_fine)
}

#[cfg(test)]
mod tests {
    use super::is_region;

    #[test]
    fn a_region_is_a_label() {
        for fine in ["us-east-1", "eu-central-2", "a"] {
            assert!(is_region(fine), "{fine}");
        }
        for wrong in ["", "x\r\nfoo: bar", "127.0.0.1:1/#", "US", "a.b", &"a".repeat(64)] {
            assert!(!is_region(wrong), "{wrong}");
        }
    }
}
