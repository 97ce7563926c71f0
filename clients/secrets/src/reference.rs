//! A reference to one value of a secret, and the format of the value. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_http::Secret;

use crate::Fields;
use crate::error::SecretsError;
use crate::place::Place;

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
    pub format: Format,
}

/// The format of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Plain text.
    #[default]
    Plain,
    /// Base64-encoded text.
    Base64,
}

impl SecretRef {
    /// The latest version of a plain text field.
    pub fn new(path: impl Into<String>, field: impl Into<String>) -> Self {
        Self { path: path.into(), field: field.into(), version: None, format: Format::Plain }
    }

    /// Selects and decodes the value among all fields of the secret at `place`.
    pub(crate) fn pick(
        &self,
        fields: &Fields,
        place: impl FnOnce() -> Place,
    ) -> Result<Secret, SecretsError> {
        let Some(value) = fields.get(&self.field) else {
            return Err(SecretsError::NoField { place: place(), field: self.field.clone() });
        };
        match self.format {
            Format::Plain => Ok(value.clone()),
            Format::Base64 => decode(value).ok_or_else(|| SecretsError::Format {
                place: place(),
                field: self.field.clone(),
                why: "it is not the base64 of a text",
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
    use super::{Format, SecretRef};
    use crate::place::Place;
    use crate::{Fields, Secret};

    fn check(value: &str, field: &str, format: Format, expect: Result<&str, &str>) {
        let fields = Fields::from([("token".to_owned(), Secret::new(value))]);
        let reference = SecretRef { format, ..SecretRef::new("a/b", field) };
        let found = reference.pick(&fields, || Place::new("a/b", None));
        let found = found.map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn a_field_is_selected() {
        check(" s3cret\n", "token", Format::Plain, Ok(" s3cret\n"));
        check("s3cret", "tokens", Format::Plain, Err("secret `a/b` has no field `tokens`"));
    }

    #[test]
    fn base64_is_decoded() {
        check("czNjcmV0\n", "token", Format::Base64, Ok("s3cret"));
        check("czNj\ncmV0", "token", Format::Base64, Ok("s3cret"));
    }

    #[test]
    fn an_undecodable_value_is_not_shown() {
        let expect = Err("field `token` of secret `a/b` cannot be decoded: it is not the base64 of a text");
        check("s3cret!", "token", Format::Base64, expect);
        check("//79", "token", Format::Base64, expect);
    }
}
