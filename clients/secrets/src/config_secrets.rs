//! Secrets in tables of the configuration file, used instead of Vault. The segments of a path name nested
//! tables.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_http::Secret;
use toml::{Table, Value};

use crate::error::SecretsError;
use crate::location::{SecretLocation, segments};
use crate::reference::SecretRef;
use crate::{SecretFields, SecretReader, SecretWriter, WriteOutcome};

/// Secrets in nested tables. They have no versions.
#[derive(Clone)]
pub struct ConfigSecrets {
    root: Table,
}

impl ConfigSecrets {
    /// The secrets in these tables.
    pub fn new(root: Table) -> Self {
        Self { root }
    }

    /// The values of a table; nested tables are other secrets.
    pub(crate) fn fields(&self, path: &str) -> Result<SecretFields, SecretsError> {
        let mut table = &self.root;
        for segment in segments(path)? {
            match table.get(segment) {
                Some(Value::Table(inner)) => table = inner,
                _ => return Err(SecretsError::NotFound(SecretLocation::new(path, None))),
            }
        }
        Ok(table.iter().filter_map(|(field, value)| Some((field.clone(), text(value)?))).collect())
    }
}

impl fmt::Debug for ConfigSecrets {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigSecrets({} top-level tables)", self.root.len())
    }
}

/// A value as a string; `None` for tables and lists.
fn text(value: &Value) -> Option<Secret> {
    match value {
        Value::String(text) => Some(Secret::new(text.as_str())),
        Value::Integer(number) => Some(Secret::new(number.to_string())),
        Value::Float(number) => Some(Secret::new(number.to_string())),
        Value::Boolean(truth) => Some(Secret::new(truth.to_string())),
        Value::Datetime(time) => Some(Secret::new(time.to_string())),
        Value::Array(_) | Value::Table(_) => None,
    }
}

impl SecretReader for ConfigSecrets {
    fn read<'a>(
        &'a self,
        _: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>> {
        async move { secret.select_field(&self.fields(&secret.path)?, || SecretLocation::new(&secret.path, None)) }.boxed()
    }

    fn read_all<'a>(
        &'a self,
        _: &'a ReadPermit,
        path: &'a str,
        _: Option<u64>,
    ) -> BoxFuture<'a, Result<SecretFields, SecretsError>> {
        async move { self.fields(path) }.boxed()
    }
}

impl SecretWriter for ConfigSecrets {
    fn write<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a str,
        _: &'a SecretFields,
    ) -> BoxFuture<'a, Result<WriteOutcome, SecretsError>> {
        let refusal = SecretsError::Unsupported("secrets in the configuration file are read-only");
        async move { Err(refusal) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use qontract_access::Mode;
    use qontract_testkit::permits;

    use super::ConfigSecrets;
    use crate::{SecretFields, SecretReader as _, SecretRef, SecretWriter as _};

    const FILE: &str = "
        [creds.forge]
        token = 's3cret'
        port = 443
        hosts = ['a']
        [creds.forge.other]
        token = 'another'
        ['a.b']
        c = true
    ";

    fn tables() -> ConfigSecrets {
        ConfigSecrets::new(FILE.parse().unwrap())
    }

    fn check(path: &str, field: &str, expect: Result<&str, &str>) {
        let (tables, permits) = (tables(), permits(Mode::DryRun));
        let reference = SecretRef { version: Some(7), ..SecretRef::new(path, field) };
        let found = tables.read(&permits.read, &reference).now_or_never().unwrap();
        let found = found.map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn a_path_names_nested_tables() {
        check("creds/forge", "token", Ok("s3cret"));
        check("creds/forge/other", "token", Ok("another"));
        check("a.b", "c", Ok("true"));
        check("creds/forge", "port", Ok("443"));
    }

    #[test]
    fn missing_secrets_and_fields_are_errors() {
        check("creds/forges", "token", Err("secret `creds/forges` not found"));
        check("creds/forge/token", "token", Err("secret `creds/forge/token` not found"));
        check("creds/forge", "tokens", Err("secret `creds/forge` has no field `tokens`"));
        check("creds/forge", "hosts", Err("secret `creds/forge` has no field `hosts`"));
    }

    #[test]
    fn read_all_ignores_nested_tables() {
        let permits = permits(Mode::DryRun);
        let all = tables().read_all(&permits.read, "creds/forge", None).now_or_never().unwrap().unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["port", "token"]);
        assert_eq!(format!("{all:?}"), r#"{"port": …, "token": …}"#);
    }

    #[test]
    fn nothing_is_written() {
        let (tables, permits) = (tables(), permits(Mode::Real));
        let permit = permits.write.unwrap();
        let error =
            tables.write(&permit, "creds/forge", &SecretFields::new()).now_or_never().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "secrets in the configuration file are read-only");
    }

    #[test]
    fn debug_omits_the_content() {
        assert_eq!(format!("{:?}", tables()), "ConfigSecrets(2 top-level tables)");
    }
}
