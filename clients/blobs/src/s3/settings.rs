//! The location of a bucket, its credentials, and the limits of calls.

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

/// The settings of a bucket client.
#[derive(Clone, Debug)]
pub struct S3Settings {
    /// The bucket.
    pub bucket: String,
    /// The region.
    pub region: String,
    /// The server, if it is not AWS.
    pub endpoint: Option<S3Endpoint>,
    /// The credentials.
    pub credentials: S3Credentials,
    /// Timeout of a call with all its attempts and back-off, and of waiting for the concurrency limit.
    pub deadline: Duration,
    /// Timeout of one attempt.
    pub attempt_timeout: Duration,
    /// Number of attempts after the first one.
    pub retries: u32,
    /// Maximum number of concurrent calls; at least one.
    pub concurrency: usize,
    /// Maximum size of a blob that is read, in bytes.
    pub max_blob_bytes: u64,
}

impl S3Settings {
    /// The default settings.
    pub fn new(bucket: impl Into<String>, region: impl Into<String>, credentials: S3Credentials) -> Self {
        Self {
            bucket: bucket.into(),
            region: region.into(),
            endpoint: None,
            credentials,
            deadline: Duration::from_mins(1),
            attempt_timeout: Duration::from_secs(30),
            retries: 4,
            concurrency: 8,
            max_blob_bytes: 64 << 20,
        }
    }

    /// The SDK configuration of these settings, without interceptors.
    pub(super) async fn builder(&self) -> Builder {
        let mut builder = match &self.credentials {
            S3Credentials::Keys { id, secret } => Builder::new().credentials_provider(
                aws_sdk_s3::config::Credentials::new(id, secret.expose(), None, None, "qontract"),
            ),
            S3Credentials::Profile { name, file } => {
                // The keys may be in either of the two files, so both are read.
                let files = EnvConfigFiles::builder()
                    .with_file(EnvConfigFileKind::Config, file)
                    .include_default_credentials_file(true)
                    .build();
                let provider =
                    ProfileFileCredentialsProvider::builder().profile_files(files).profile_name(name).build();
                Builder::new().credentials_provider(provider)
            }
            S3Credentials::Environment => {
                let region = Region::new(self.region.clone());
                let config = aws_config::defaults(BehaviorVersion::latest()).region(region).load().await;
                Builder::from(&config)
            }
        };
        let timeouts = TimeoutConfig::builder()
            .operation_timeout(self.deadline)
            .operation_attempt_timeout(self.attempt_timeout)
            .connect_timeout(self.attempt_timeout)
            .build();
        builder = builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .retry_config(RetryConfig::standard().with_max_attempts(self.retries + 1))
            .timeout_config(timeouts)
            // Checksums are used only where they are required, because not every server supports those of
            // AWS.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.endpoint_url(endpoint.as_str()).force_path_style(true);
        }
        builder
    }
}

/// Credentials for S3.
#[derive(Clone, Debug)]
pub enum S3Credentials {
    /// An access key.
    Keys {
        /// The identifier.
        id: String,
        /// The key.
        secret: Secret,
    },
    /// A profile in a configuration file.
    Profile {
        /// The name.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// From the environment: variables, default profile, web identity of the pod, instance metadata.
    Environment,
}
