//! Checks that the S3 buckets that templates may read exist, and that the credentials of their accounts are
//! accepted.

use std::time::Duration;

use anyhow::Context as _;
use qontract_access::{Mode, ReadPermit};
use qontract_client_blobs::{BlobReader as _, S3, S3Credentials, S3Endpoint, S3Settings};
use qontract_client_secrets::SecretReader;
use tokio::time::timeout;

use crate::clusters::DataAccount;

use super::report::CheckReport;

/// Time limit for listing a bucket.
const DEADLINE: Duration = Duration::from_secs(15);

/// Checks buckets.
pub struct BucketCheck<'a> {
    /// The secret store with the access keys of the accounts.
    pub secrets: &'a dyn SecretReader,
    /// The accounts of the data.
    pub accounts: &'a [DataAccount],
    /// The S3 server to use in place of AWS, if any.
    pub endpoint: Option<S3Endpoint>,
}

impl BucketCheck<'_> {
    /// Checks one bucket, named as `account/bucket`.
    pub async fn run(&self, name: &str, report: &mut CheckReport) {
        let title = format!("bucket {name}");
        let hint = "check `templates.allow_s3`, `automationToken` of the account in the data, and the permission `s3:ListBucket`";
        match timeout(DEADLINE, self.list(name)).await {
            Ok(Ok(())) => report.ok(&title, "can be listed".to_owned()),
            Ok(Err(error)) => report.failed(&title, format!("{error:#}"), hint),
            Err(_) => report.failed(&title, format!("timed out after {} s", DEADLINE.as_secs()), hint),
        }
    }

    async fn list(&self, name: &str) -> anyhow::Result<()> {
        let permit = ReadPermit::for_targets(Mode::DryRun);
        let (account, bucket) = name.split_once('/').context("not `account/bucket`")?;
        let account = self.accounts.iter().find(|candidate| candidate.name == account);
        let account = account.with_context(|| format!("the data has no AWS account for `{name}`"))?;
        let fields = self.secrets.read_all(&permit, &account.secret, account.version).await?;
        let field = |field: &str| {
            fields.get(field).with_context(|| format!("`{}` has no field `{field}`", account.secret))
        };
        let credentials = S3Credentials::Keys {
            id: field("aws_access_key_id")?.expose().to_owned(),
            secret: field("aws_secret_access_key")?.clone(),
        };
        let settings = S3Settings {
            endpoint: self.endpoint.clone(),
            ..S3Settings::new(bucket, account.region.as_str(), credentials)
        };
        S3::new(&permit, settings).await.list(&permit, "", None).await?;
        Ok(())
    }
}
