//! A client with its permits, and short methods for tests.

use std::error::Error;
use std::time::Duration;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, Proxies, Settings};
use qontract_client_secrets::{
    CacheSettings, Login, Secret, SecretFields, SecretReader as _, SecretRef, SecretWriter as _,
    SecretsError, Vault, VaultSettings, WriteOutcome,
};
use qontract_testkit::permits;
use qontract_testkit::vault::{LoginRole, ROOT, TestVault};

/// Lifetime of the tokens of roles, and their maximum lifetime.
pub const TOKEN_TTLS: [Duration; 2] = [Duration::from_mins(10), Duration::from_mins(25)];

/// A client with its permits.
pub struct VaultFixture {
    pub vault: Vault,
    pub permits: Permits,
}

impl VaultFixture {
    /// A client in a real run.
    pub fn new(url: &str, login: Login) -> Self {
        Self::with(url, login, Mode::Real, CacheSettings::default())
    }

    /// A client with few retries and the given cache settings.
    pub fn with(url: &str, login: Login, mode: Mode, caching: CacheSettings) -> Self {
        let permits = permits(mode);
        let settings = Settings {
            attempt_timeout: Duration::from_secs(20),
            retries: 1,
            initial_backoff: Duration::from_millis(1),
            proxies: Proxies::Never,
            ..Settings::default()
        };
        let http = Http::new(&permits.read, settings).unwrap();
        let mut settings = VaultSettings::new(url.parse().unwrap(), login);
        settings.caching = caching;
        Self { vault: Vault::new(&http, settings), permits }
    }

    /// A field of the latest version, or the error.
    pub async fn read(&self, path: &str, field: &str) -> Result<String, String> {
        self.read_version(path, field, None).await
    }

    /// A field of a version, or the error.
    pub async fn read_version(
        &self,
        path: &str,
        field: &str,
        version: Option<u64>,
    ) -> Result<String, String> {
        let reference = SecretRef { version, ..SecretRef::new(path, field) };
        let read = self.vault.read(&self.permits.read, &reference).await;
        read.map(|secret| secret.expose().to_owned()).map_err(|error| error_chain(&error))
    }

    /// Writes fields.
    pub async fn write(&self, path: &str, fields: &[(&str, &str)]) -> Result<WriteOutcome, SecretsError> {
        let permit = self.permits.write.as_ref().expect("a real run");
        self.vault.write(permit, path, &self::fields(fields)).await
    }

    /// The error of a read.
    pub async fn failure(&self, path: &str) -> SecretsError {
        let read = self.vault.read(&self.permits.read, &SecretRef::new(path, "x")).await;
        read.expect_err("it fails")
    }
}

pub fn fields(fields: &[(&str, &str)]) -> SecretFields {
    fields.iter().map(|(field, value)| ((*field).to_owned(), Secret::new(*value))).collect()
}

/// An error with all its causes.
pub fn error_chain(error: &SecretsError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}

/// Settings that cache nothing.
pub fn no_caching() -> CacheSettings {
    CacheSettings { latest_ttl: Duration::ZERO, pinned_ttl: Duration::ZERO, max_entries: 10 }
}

pub fn root() -> Login {
    Login::Token(Secret::new(ROOT))
}

/// Adds a role to the emulator; returns its login.
pub fn app_role(server: &TestVault) -> Login {
    server.add(LoginRole::AppRole {
        role_id: "role-7".to_owned(),
        secret_id: "pass-7".to_owned(),
        ttls: TOKEN_TTLS,
    });
    Login::AppRole {
        mount: "approle".to_owned(),
        role_id: Secret::new("role-7"),
        secret_id: Secret::new("pass-7"),
    }
}

/// Advances the clocks of server and client.
pub async fn advance_clocks(server: &TestVault, time: Duration) {
    server.advance(time);
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
