//! Where a bucket is, who we are there, and the limits on calls.

use std::path::PathBuf;
use std::time::Duration;

use aws_config::profile::ProfileFileCredentialsProvider;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Builder, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use qontract_client_http::Secret;

use super::endpoint::S3Endpoint;

/// Where a bucket is and how it is spoken to.
#[derive(Clone, Debug)]
pub struct S3Settings {
    /// The bucket.
    pub bucket: String,
    /// Its region.
    pub region: String,
    /// Another server than the vendor's.
    pub endpoint: Option<S3Endpoint>,
    /// Who we are.
    pub credentials: Credentials,
    /// How long a call may take, with all its attempts and pauses, and how long it may wait for its turn.
    pub deadline: Duration,
    /// How long one attempt may take.
    pub attempt: Duration,
    /// How many more attempts a call has after the first.
    pub retries: u32,
    /// How many calls are made at the same time; at least one.
    pub concurrency: usize,
    /// How many bytes a blob may have that is read.
    pub largest: u64,
}

impl S3Settings {
    /// The usual settings.
    pub fn new(bucket: impl Into<String>, region: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            bucket: bucket.into(),
            region: region.into(),
            endpoint: None,
            credentials,
            deadline: Duration::from_mins(1),
            attempt: Duration::from_secs(30),
            retries: 4,
            concurrency: 8,
            largest: 64 << 20,
        }
    }

    /// The vendor's library set up so, but for what it may send.
    pub(super) async fn builder(&self) -> Builder {
        let mut builder = match &self.credentials {
            Credentials::Keys { id, secret } => Builder::new().credentials_provider(
                aws_sdk_s3::config::Credentials::new(id, secret.expose(), None, None, "qontract"),
            ),
            Credentials::Profile { name, file } => {
                // Keys may be in either file, so both are looked at.
                let files = EnvConfigFiles::builder()
                    .with_file(EnvConfigFileKind::Config, file)
                    .include_default_credentials_file(true)
                    .build();
                let provider =
                    ProfileFileCredentialsProvider::builder().profile_files(files).profile_name(name).build();
                Builder::new().credentials_provider(provider)
            }
            Credentials::Environment => {
                let region = Region::new(self.region.clone());
                let config = aws_config::defaults(BehaviorVersion::latest()).region(region).load().await;
                Builder::from(&config)
            }
        };
        let timeouts = TimeoutConfig::builder()
            .operation_timeout(self.deadline)
            .operation_attempt_timeout(self.attempt)
            .connect_timeout(self.attempt)
            .build();
        builder = builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .retry_config(RetryConfig::standard().with_max_attempts(self.retries + 1))
            .timeout_config(timeouts)
            // Not every server knows the checksums that the vendor's does.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.endpoint_url(endpoint.as_str()).force_path_style(true);
        }
        builder
    }
}

/// Who we are to S3.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// By a key.
    Keys {
        /// Its identifier.
        id: String,
        /// The key.
        secret: Secret,
    },
    /// By a profile in a configuration file.
    Profile {
        /// Its name.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// As the environment says: variables, the usual profile, the identity of the pod or of the machine.
    Environment,
}
