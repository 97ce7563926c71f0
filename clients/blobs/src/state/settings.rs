//! The location of the state store, read from the environment variables of qontract-reconcile. Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qontract_client_http::Secret;

const BUCKET: &str = "APP_INTERFACE_STATE_BUCKET";
const REGION: &str = "APP_INTERFACE_STATE_BUCKET_REGION";
const PROFILE: &str = "APP_INTERFACE_STATE_AWS_PROFILE";
const VAULT_SECRET: &str = "APP_INTERFACE_STATE_VAULT_SECRET";
const VAULT_VERSION: &str = "APP_INTERFACE_STATE_VAULT_SECRET_VERSION";
const KEY_ID: &str = "APP_INTERFACE_STATE_BUCKET_ACCESS_KEY_ID";
const KEY: &str = "APP_INTERFACE_STATE_BUCKET_SECRET_ACCESS_KEY";
const ACCOUNT: &str = "APP_INTERFACE_STATE_BUCKET_ACCOUNT";

/// The location of the state store.
#[derive(Clone, Debug)]
pub struct StateSettings {
    /// The bucket.
    pub bucket: String,
    /// The region; by default, the region of the account.
    pub region: Option<String>,
    /// The credentials for the bucket.
    pub credentials: StateCredentials,
}

/// The credentials for the state store.
#[derive(Clone, Debug)]
pub enum StateCredentials {
    /// A profile in a configuration file.
    Profile {
        /// The name.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// A secret with the fields `aws_access_key_id` and `aws_secret_access_key`.
    Vault {
        /// The path.
        path: String,
        /// The version, as written in the variable.
        version: Option<String>,
    },
    /// An access key.
    Keys {
        /// The identifier.
        id: String,
        /// The key.
        secret: Secret,
    },
    /// An account described in the data.
    Account {
        /// The name.
        name: String,
    },
}

impl StateSettings {
    /// Reads the variables: the first complete set of credentials, in the order of qontract-reconcile. `None`
    /// means that the settings come from the data. An empty variable counts as unset.
    pub fn from_variables(
        variables: &BTreeMap<String, String>,
        is_file: impl Fn(&Path) -> bool,
    ) -> Option<Self> {
        let get = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
        let (bucket, region) = (get(BUCKET)?, get(REGION));
        let config = get("AWS_CONFIG_FILE").map(PathBuf::from);
        let config = config.or_else(|| Some(PathBuf::from(get("HOME")?).join(".aws/config")));
        let config = config.filter(|config| is_file(config));
        let credentials =
            match (&region, get(PROFILE).zip(config), get(VAULT_SECRET), get(KEY_ID).zip(get(KEY))) {
                (Some(_), Some((name, file)), _, _) => StateCredentials::Profile { name, file },
                (Some(_), None, Some(path), _) => {
                    StateCredentials::Vault { path, version: get(VAULT_VERSION) }
                }
                (Some(_), None, None, Some((id, secret))) => {
                    StateCredentials::Keys { id, secret: Secret::new(secret) }
                }
                _ => StateCredentials::Account { name: get(ACCOUNT)? },
            };
        Some(Self { bucket, region, credentials })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{StateCredentials, StateSettings};

    const ALL: [(&str, &str); 9] = [
        ("APP_INTERFACE_STATE_BUCKET", "b"),
        ("APP_INTERFACE_STATE_BUCKET_REGION", "r"),
        ("AWS_CONFIG_FILE", "/aws"),
        ("APP_INTERFACE_STATE_AWS_PROFILE", "p"),
        ("APP_INTERFACE_STATE_VAULT_SECRET", "a/b"),
        ("APP_INTERFACE_STATE_VAULT_SECRET_VERSION", "3"),
        ("APP_INTERFACE_STATE_BUCKET_ACCESS_KEY_ID", "id"),
        ("APP_INTERFACE_STATE_BUCKET_SECRET_ACCESS_KEY", "s3cret"),
        ("APP_INTERFACE_STATE_BUCKET_ACCOUNT", "acc"),
    ];

    /// Checks the settings from all variables except these.
    fn check(without: &[&str], expect: &str) {
        let left = ALL.into_iter().filter(|(name, _)| !without.iter().any(|suffix| name.ends_with(suffix)));
        let variables = left.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let settings = StateSettings::from_variables(&variables, |file| file == Path::new("/aws"));
        let shown = settings.map_or_else(String::new, |settings| {
            let credentials = match settings.credentials {
                StateCredentials::Profile { name, file } => format!("profile {name} {}", file.display()),
                StateCredentials::Vault { path, version } => format!("vault {path} {version:?}"),
                StateCredentials::Keys { id, secret } => format!("keys {id} {}", secret.expose()),
                StateCredentials::Account { name } => format!("account {name}"),
            };
            format!("{} {:?} {credentials}", settings.bucket, settings.region)
        });
        assert_eq!(shown, expect);
    }

    #[test]
    fn the_first_complete_credentials_win() {
        check(&[], r#"b Some("r") profile p /aws"#);
        check(&["PROFILE"], r#"b Some("r") vault a/b Some("3")"#);
        check(&["AWS_CONFIG_FILE", "SECRET_VERSION"], r#"b Some("r") vault a/b None"#);
        check(&["PROFILE", "VAULT_SECRET"], r#"b Some("r") keys id s3cret"#);
        check(&["PROFILE", "VAULT_SECRET", "KEY_ID"], r#"b Some("r") account acc"#);
    }

    #[test]
    fn without_a_region_only_the_account_is_used() {
        check(&["REGION"], "b None account acc");
        check(&["REGION", "ACCOUNT"], "");
    }

    #[test]
    fn without_a_bucket_the_settings_come_from_the_data() {
        check(&["BUCKET"], "");
    }

    #[test]
    fn an_empty_variable_is_not_set() {
        let variables = ALL.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut variables: std::collections::BTreeMap<String, String> = variables;
        variables.insert("APP_INTERFACE_STATE_BUCKET".to_owned(), String::new());
        assert!(StateSettings::from_variables(&variables, |_| true).is_none());
    }

    #[test]
    fn the_key_is_not_printed() {
        let variables = ALL.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut variables: std::collections::BTreeMap<String, String> = variables;
        variables.retain(|name, _| !name.ends_with("PROFILE") && !name.ends_with("VAULT_SECRET"));
        let shown = format!("{:?}", StateSettings::from_variables(&variables, |_| false));
        assert!(shown.contains("Keys") && !shown.contains("s3cret"), "{shown}");
    }
}
