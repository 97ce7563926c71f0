//! A client with its permits, and short methods for tests.

use std::error::Error;
use std::time::Duration;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, Proxies, Settings};
use qontract_client_secrets::{
    Caching, Fields, Login, Reader as _, Secret, SecretRef, SecretsError, Vault, VaultSettings, Writer as _,
    Written,
};
use qontract_testkit::permits;
use qontract_testkit::vault::{ROOT, Role, TestVault};

/// Lifetime of the tokens of roles, and their maximum lifetime.
pub const LIVES: [Duration; 2] = [Duration::from_mins(10), Duration::from_mins(25)];

/// A client with its permits.
pub struct Desk {
    pub vault: Vault,
    pub permits: Permits,
}

impl Desk {
    /// A client in a real run.
    pub fn new(url: &str, login: Login) -> Self {
        Self::with(url, login, Mode::Real, Caching::default())
    }

    /// A client with few retries and the given cache settings.
    pub fn with(url: &str, login: Login, mode: Mode, caching: Caching) -> Self {
        let permits = permits(mode);
        let settings = Settings {
            attempt: Duration::from_secs(20),
            retries: 1,
            pause: Duration::from_millis(1),
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
        read.map(|secret| secret.expose().to_owned()).map_err(|error| told(&error))
    }

    /// Writes fields.
    pub async fn write(&self, path: &str, fields: &[(&str, &str)]) -> Result<Written, SecretsError> {
        let permit = self.permits.write.as_ref().expect("a real run");
        self.vault.write(permit, path, &self::fields(fields)).await
    }

    /// The error of a read.
    pub async fn failure(&self, path: &str) -> SecretsError {
        let read = self.vault.read(&self.permits.read, &SecretRef::new(path, "x")).await;
        read.expect_err("it fails")
    }
}

pub fn fields(fields: &[(&str, &str)]) -> Fields {
    fields.iter().map(|(field, value)| ((*field).to_owned(), Secret::new(*value))).collect()
}

/// An error with all its causes.
pub fn told(error: &SecretsError) -> String {
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
pub fn forgetful() -> Caching {
    Caching { latest: Duration::ZERO, pinned: Duration::ZERO, entries: 10 }
}

pub fn root() -> Login {
    Login::Token(Secret::new(ROOT))
}

/// Adds a role to the emulator; returns its login.
pub fn app_role(server: &TestVault) -> Login {
    server.add(Role::AppRole { role_id: "role-7".to_owned(), secret_id: "pass-7".to_owned(), lives: LIVES });
    Login::AppRole {
        mount: "approle".to_owned(),
        role_id: Secret::new("role-7"),
        secret_id: Secret::new("pass-7"),
    }
}

/// Advances the clocks of server and client.
pub async fn pass(server: &TestVault, time: Duration) {
    server.advance(time);
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
