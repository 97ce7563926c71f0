//! The secrets of one shard: the secrets that this run may read, and those that it has read.
//!
//! **Invariant:** in a dry run with a base, only secrets that base names for the shard are read
//! (`a_secret_that_only_head_names_is_not_read_in_a_check`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_redaction::Redactor;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::fingerprint::Fingerprints;

/// The address of a secret in the data. A lookup of a different version or field has a different address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretLookup {
    /// The path of the secret.
    pub path: String,
    /// The field; `None` for all fields.
    pub field: Option<String>,
    /// The version; `None` for the latest.
    pub version: Option<String>,
}

/// A secret that a shard has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSecret {
    /// The path of the secret.
    pub path: String,
    /// The field of the secret.
    pub field: String,
    /// The version of the secret; `None` for the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The fingerprint of the value.
    pub fingerprint: String,
}

impl SecretLookup {
    /// Creates the address of all fields of a secret.
    pub fn all(path: impl Into<String>, version: Option<String>) -> Self {
        Self { path: path.into(), field: None, version }
    }
}

impl fmt::Display for SecretLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, field, version } = self;
        match field {
            Some(field) => write!(f, "the field `{field}` of the secret `{path}`")?,
            None => write!(f, "the secret `{path}`")?,
        }
        version.as_ref().map_or(Ok(()), |version| write!(f, " in version {version}"))
    }
}

/// The secrets of one shard in one run. All clones share the same secrets.
///
/// ```
/// use qontract_runtime::{SecretLookup, ShardSecrets};
///
/// let secrets = ShardSecrets::only([SecretLookup::all("apps/shop", None)].into());
/// let token = SecretLookup { field: Some("token".to_owned()), ..SecretLookup::all("apps/shop", None) };
/// assert!(secrets.check(&token).is_ok());
///
/// let fault = secrets.check(&SecretLookup::all("apps/new", None)).unwrap_err();
/// let expect = "the secret `apps/new` is new in this change and is not read before it is merged";
/// assert_eq!(fault.text, expect);
/// ```
#[derive(Clone, Default)]
pub struct ShardSecrets {
    /// The secrets that may be read; all by default.
    allowed: Option<Arc<BTreeSet<SecretLookup>>>,
    /// The secrets that base names for other shards. They only affect the message of a refusal.
    elsewhere: Arc<BTreeSet<SecretLookup>>,
    /// The values that were read.
    values: Arc<Mutex<SecretValues>>,
}

/// The values that a shard has read.
#[derive(Default)]
struct SecretValues {
    all: BTreeSet<Box<str>>,
    /// Values from the secret store, by address.
    by_address: BTreeMap<SecretLookup, Box<str>>,
}

impl ShardSecrets {
    /// Creates the secrets of a shard that may read only these secrets.
    pub fn only(allowed: BTreeSet<SecretLookup>) -> Self {
        Self { allowed: Some(Arc::new(allowed)), ..Self::default() }
    }

    /// Adds the secrets that base names for any shard, for the message of a refusal. The shard may not read any of
    /// them.
    #[must_use]
    pub fn with_elsewhere(self, elsewhere: Arc<BTreeSet<SecretLookup>>) -> Self {
        Self { elsewhere, ..self }
    }

    /// Fails unless the secret may be read: its address or the address of all of its fields must be allowed.
    pub fn check(&self, lookup: &SecretLookup) -> Result<(), Fault> {
        let Some(allowed) = &self.allowed else { return Ok(()) };
        let whole = SecretLookup::all(&lookup.path, lookup.version.clone());
        if allowed.contains(lookup) || allowed.contains(&whole) {
            return Ok(());
        }
        let what = if self.elsewhere.contains(lookup) || self.elsewhere.contains(&whole) {
            "new for this shard (base names it only for other shards)"
        } else {
            "new in this change"
        };
        Err(Fault::guard(format!("{lookup} is {what} and is not read before it is merged")))
    }

    /// Records a value that was read, so that it is redacted from the reports of the shard.
    pub fn record(&self, value: &str) {
        let values = &mut self.values.lock().all;
        if !values.contains(value) {
            values.insert(value.into());
        }
    }

    /// Records a value that was read from this address, so that it is redacted from the reports of the shard.
    pub fn record_from(&self, lookup: SecretLookup, value: &str) {
        self.record(value);
        self.values.lock().by_address.insert(lookup, value.into());
    }

    /// The secrets that were read, with the fingerprints of their values.
    pub(crate) fn fingerprints(&self, fingerprints: &Fingerprints) -> Vec<RecordedSecret> {
        let values = self.values.lock();
        let recorded =
            values.by_address.iter().map(|(SecretLookup { path, field, version }, value)| RecordedSecret {
                path: path.clone(),
                field: field.clone().unwrap_or_default(),
                version: version.clone(),
                fingerprint: fingerprints.of(value.as_bytes()),
            });
        recorded.collect()
    }

    /// Creates a redactor for the values that were read. `public` returns strings in the shard's own data, which are
    /// not redacted.
    pub(crate) fn redactor(&self, public: impl FnOnce() -> Vec<String>) -> Redactor {
        let values = self.values.lock();
        let redactor = Redactor::new(values.all.iter().map(|value| &**value));
        drop(values);
        if redactor.is_empty() {
            return redactor;
        }
        // Diffs show strings as JSON, so the escaped form of a public string is public, too.
        let public = public();
        let escaped: Vec<String> = public.iter().filter_map(|text| escaped(text)).collect();
        redactor.except(public.iter().chain(&escaped).map(String::as_str))
    }
}

/// The string with JSON escapes; `None` if it needs no escapes.
fn escaped(text: &str) -> Option<String> {
    let is_plain = |one: char| !one.is_control() && one != '"' && one != '\\';
    if text.chars().all(is_plain) { None } else { serde_json::to_string(text).ok() }
}

/// Prints the number of values, never the values.
impl fmt::Debug for ShardSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.values.lock().all.len();
        f.debug_struct("ShardSecrets")
            .field("allowed", &self.allowed)
            .field("read", &count)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{SecretLookup, ShardSecrets, escaped};
    use crate::fault::Responsible;

    fn lookup(path: &str, field: Option<&str>, version: Option<&str>) -> SecretLookup {
        SecretLookup {
            path: path.to_owned(),
            field: field.map(str::to_owned),
            version: version.map(str::to_owned),
        }
    }

    fn check(allowed: &SecretLookup, requested: &SecretLookup, expect: bool) {
        let secrets = ShardSecrets::only(BTreeSet::from([allowed.clone()]));
        assert_eq!(secrets.check(requested).is_ok(), expect, "{allowed} allows {requested}");
    }

    #[test]
    fn only_what_json_escapes_is_escaped() {
        assert_eq!(escaped("plain ä"), None);
        for (text, expect) in [("a\"b", r#""a\"b""#), ("a\\b", r#""a\\b""#), ("a\nb", r#""a\nb""#)] {
            assert_eq!(escaped(text).as_deref(), Some(expect));
        }
    }

    #[test]
    fn an_address_is_path_field_and_version_as_named() {
        let field = lookup("a/b", Some("x"), Some("1"));
        check(&field, &field, true);
        check(&field, &lookup("a/b", Some("y"), Some("1")), false);
        check(&field, &lookup("a/b", Some("x"), Some("2")), false);
        check(&field, &lookup("a/b", Some("x"), None), false);
        check(&field, &lookup("a/c", Some("x"), Some("1")), false);
        check(&field, &lookup("a/b", None, Some("1")), false);
    }

    #[test]
    fn an_address_of_all_fields_includes_each() {
        let whole = lookup("a/b", None, Some("1"));
        check(&whole, &whole, true);
        check(&whole, &lookup("a/b", Some("x"), Some("1")), true);
        check(&whole, &lookup("a/b", Some("x"), None), false);
        check(&whole, &lookup("a/c", None, Some("1")), false);
    }

    #[test]
    fn by_default_every_secret_may_be_read_else_only_the_named_ones() {
        assert!(ShardSecrets::default().check(&lookup("a/b", None, None)).is_ok());
        let fault =
            ShardSecrets::only(BTreeSet::new()).check(&lookup("a/b", Some("x"), Some("2"))).unwrap_err();
        assert_eq!(fault.whose, Responsible::Guard);
        assert_eq!(
            fault.text,
            "the field `x` of the secret `a/b` in version 2 is new in this change and is not read before it is merged"
        );
    }

    #[test]
    fn an_escape_that_a_diff_makes_of_public_text_is_public() {
        for (secret, public) in [
            ("begin\\nend", "begin\nend"),
            (r#"say \"yes\" now"#, r#"say "yes" now"#),
            (r"back\\slash", r"back\slash"),
        ] {
            let secrets = ShardSecrets::default();
            secrets.record(secret);
            let redactor = secrets.redactor(|| vec![public.to_owned()]);
            assert!(!redactor.finds(&serde_json::to_string(public).unwrap()), "{secret}");
            assert!(secrets.redactor(|| vec!["plain".to_owned()]).finds(secret), "{secret}");
        }
    }

    #[test]
    fn a_read_value_is_redacted_unless_it_is_public() {
        let secrets = ShardSecrets::default();
        assert!(secrets.redactor(|| unreachable!("nothing was read")).is_empty());
        secrets.record("hunter22");
        secrets.clone().record("another one");
        let redactor = secrets.redactor(|| vec!["a: hunter22".to_owned()]);
        assert!(!redactor.finds("hunter22"));
        assert!(redactor.finds("not another one"));
        assert_eq!(format!("{secrets:?}"), "ShardSecrets { allowed: None, read: 2, .. }");
    }
}
