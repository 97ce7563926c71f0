//! A reference to one value of a secret, and the format of the value. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_http::Secret;

use crate::SecretFields;
use crate::error::SecretsError;
use crate::location::SecretLocation;

/// A reference to one value of a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretRef {
    /// The path of the secret, with the mount.
    pub path: String,
    /// The field.
    pub field: String,
    /// The version; the latest if `None`. Ignored by stores without versions.
    pub version: Option<u64>,
    /// The format of the value.
    pub format: ValueFormat,
}

/// The format of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueFormat {
    /// Plain text.
    #[default]
    Plain,
    /// Base64-encoded text.
    Base64,
}

impl SecretRef {
    /// A reference to the latest version of a plain text field.
    pub fn new(path: impl Into<String>, field: impl Into<String>) -> Self {
        Self { path: path.into(), field: field.into(), version: None, format: ValueFormat::Plain }
    }

    /// Selects and decodes the value among all fields of the secret at `place`.
    pub(crate) fn select_field(
        &self,
        fields: &SecretFields,
        place: impl FnOnce() -> SecretLocation,
    ) -> Result<Secret, SecretsError> {
        let Some(value) = fields.get(&self.field) else {
            return Err(SecretsError::NoField { place: place(), field: self.field.clone() });
        };
        match self.format {
            ValueFormat::Plain => Ok(value.clone()),
            ValueFormat::Base64 => decode(value).ok_or_else(|| SecretsError::Format {
                place: place(),
                field: self.field.clone(),
                why: "it is not base64-encoded text",
            }),
        }
    }
}

/// Decodes base64, which may be broken into lines.
fn decode(value: &Secret) -> Option<Secret> {
    let line: String = value.expose().split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(line).ok()?;
    String::from_utf8(bytes).ok().map(Secret::new)
}

#[cfg(test)]
mod tests {
    use super::{SecretRef, ValueFormat};
    use crate::location::SecretLocation;
    use crate::{Secret, SecretFields};

    fn check(value: &str, field: &str, format: ValueFormat, expect: Result<&str, &str>) {
        let fields = SecretFields::from([("token".to_owned(), Secret::new(value))]);
        let reference = SecretRef { format, ..SecretRef::new("a/b", field) };
        let found = reference.select_field(&fields, || SecretLocation::new("a/b", None));
        let found = found.map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn a_field_is_selected() {
        check(" s3cret\n", "token", ValueFormat::Plain, Ok(" s3cret\n"));
        check("s3cret", "tokens", ValueFormat::Plain, Err("secret `a/b` has no field `tokens`"));
    }

    #[test]
    fn base64_is_decoded() {
        check("czNjcmV0\n", "token", ValueFormat::Base64, Ok("s3cret"));
        check("czNj\ncmV0", "token", ValueFormat::Base64, Ok("s3cret"));
    }

    #[test]
    fn an_undecodable_value_is_not_shown() {
        let expect = Err("field `token` of secret `a/b` cannot be decoded: it is not base64-encoded text");
        check("s3cret!", "token", ValueFormat::Base64, expect);
        check("//79", "token", ValueFormat::Base64, expect);
    }
}
