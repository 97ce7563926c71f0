//! The contract of secret stores that can be written: the same tests run on a file and on Vault.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod cases;
mod file;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, Proxies, Settings};
use qontract_client_secrets::{
    CacheSettings, FileSecrets, Login, Secret, SecretFields, SecretRef, Secrets, Vault, VaultSettings,
    WriteOutcome,
};
use qontract_testkit::vault::{ROOT, TestVault};
use qontract_testkit::{Scratch, permits};

/// A store with its permits.
struct StoreFixture {
    secrets: Box<dyn Secrets>,
    permits: Permits,
    /// The path of the secrets of the test.
    prefix: &'static str,
}

impl StoreFixture {
    async fn read(&self, path: &str, field: &str) -> Result<String, String> {
        let reference = SecretRef::new(format!("{}{path}", self.prefix), field);
        let read = self.secrets.read(&self.permits.read, &reference).await;
        read.map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string())
    }

    async fn write(&self, path: &str, values: &[(&str, &str)]) -> Result<WriteOutcome, String> {
        let permit = self.permits.write.as_ref().unwrap();
        let written = self.secrets.write(permit, &format!("{}{path}", self.prefix), &fields(values)).await;
        written.map_err(|error| error.to_string())
    }
}

fn fields(fields: &[(&str, &str)]) -> SecretFields {
    fields.iter().map(|(field, value)| ((*field).to_owned(), Secret::new(*value))).collect()
}

/// A file in a new directory.
fn file(scratch: &Scratch, seed: &str) -> StoreFixture {
    let permits = permits(Mode::Real);
    let file = scratch.path().join("sandbox/secrets.toml");
    let secrets = FileSecrets::new(&permits.read, file, seed.parse().unwrap());
    StoreFixture { secrets: Box::new(secrets), permits, prefix: "" }
}

/// An emulated Vault.
fn vault(server: &TestVault) -> StoreFixture {
    let permits = permits(Mode::Real);
    let http = Http::new(&permits.read, Settings { proxies: Proxies::Never, ..Settings::default() }).unwrap();
    let mut settings = VaultSettings::new(server.url().parse().unwrap(), Login::Token(Secret::new(ROOT)));
    settings.caching = CacheSettings::default();
    StoreFixture { secrets: Box::new(Vault::new(&http, settings)), permits, prefix: "secret/" }
}
