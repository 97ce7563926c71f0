//! Credentials for SQS.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::meta::region::RegionProviderChain;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_credential_types::provider::error::CredentialsError;
use qontract_client_http::Secret;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The time before their expiry at which credentials are read again.
const EXPIRATION_MARGIN: Duration = Duration::from_mins(5);
/// Time limit for reading credentials from the environment.
const DEADLINE: Duration = Duration::from_secs(30);

/// Credentials for SQS.
#[derive(Clone, Debug)]
pub enum SqsCredentials {
    /// An access key.
    Keys {
        /// The identifier.
        id: String,
        /// The key.
        secret: Secret,
    },
    /// From the environment: variables, default profile, web identity of the pod, instance metadata.
    Environment,
}

/// The error of reading credentials.
pub(super) struct NoCredentials {
    pub reason: String,
    pub is_transient: bool,
}

/// The credentials of a queue. Credentials from the environment are cached until they expire.
pub(super) struct CachedCredentials {
    source: SqsCredentials,
    region: String,
    cached: Mutex<Option<Credentials>>,
}

impl CachedCredentials {
    pub fn new(source: SqsCredentials, region: &str) -> Self {
        Self { source, region: region.to_owned(), cached: Mutex::default() }
    }

    /// The credentials that are valid at this time.
    pub async fn get(&self, now: SystemTime) -> Result<Credentials, NoCredentials> {
        let chain = match &self.source {
            SqsCredentials::Keys { id, secret } => {
                return Ok(Credentials::new(id, secret.expose(), None, None, "qontract"));
            }
            SqsCredentials::Environment => {
                let region = RegionProviderChain::first_try(aws_config::Region::new(self.region.clone()));
                DefaultCredentialsChain::builder().region(region)
            }
        };
        let mut cached = self.cached.lock().await;
        if let Some(credentials) = cached.as_ref().filter(|it| is_valid(it.expiry(), now)) {
            return Ok(credentials.clone());
        }
        let read = async { chain.build().await.provide_credentials().await };
        let credentials = match timeout(DEADLINE, read).await {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(error)) => return Err(NoCredentials::of(&error)),
            Err(_) => {
                return Err(NoCredentials {
                    reason: "timed out reading credentials".to_owned(),
                    is_transient: true,
                });
            }
        };
        *cached = Some(credentials.clone());
        Ok(credentials)
    }
}

impl fmt::Debug for CachedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedCredentials").field("source", &self.source).finish_non_exhaustive()
    }
}

impl NoCredentials {
    /// Only the kind of the library's error is shown, because its message may contain values of the
    /// environment.
    fn of(error: &CredentialsError) -> Self {
        let (reason, is_transient) = match error {
            CredentialsError::CredentialsNotLoaded(_) => {
                ("no credentials were found in the environment", false)
            }
            CredentialsError::InvalidConfiguration(_) => {
                ("the credentials in the environment are not valid", false)
            }
            CredentialsError::ProviderTimedOut(_) => ("timed out reading credentials", true),
            CredentialsError::ProviderError(_) => ("the credentials could not be read", true),
            _ => ("the credentials could not be read", false),
        };
        Self { reason: reason.to_owned(), is_transient }
    }
}

/// Whether credentials with this expiry can be used now.
fn is_valid(expiry: Option<SystemTime>, now: SystemTime) -> bool {
    expiry.is_none_or(|expiry| expiry > now + EXPIRATION_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_again_before_they_expire() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        assert!(is_valid(None, now));
        assert!(is_valid(Some(now + Duration::from_mins(6)), now));
        assert!(!is_valid(Some(now + Duration::from_mins(5)), now));
        assert!(!is_valid(Some(now - Duration::from_mins(1)), now));
    }
}
