//! Keyed fingerprints. To a reader without the key, they show only whether two secrets are equal.

use std::fmt;

use qontract_bundle::Sha256;
use qontract_redaction::Redactor;
use serde_json::{Map, Value};

/// The beginning of every fingerprint.
pub const FINGERPRINT_PREFIX: &str = "qontract-fingerprint-";

/// The block size of SHA-256, in bytes.
const BLOCK_BYTES: usize = 64;

/// Number of hexadecimal digits of a fingerprint. A fingerprint is at most as long as a DNS label.
const DIGITS: usize = 40;

/// Computes fingerprints with one key (HMAC-SHA256).
///
/// ```
/// use qontract_runtime::replay::Fingerprints;
///
/// let (ours, other) = (Fingerprints::new(&[1; 32]), Fingerprints::new(&[2; 32]));
/// assert_eq!(ours.of(b"hunter22"), ours.of(b"hunter22"));
/// assert_ne!(ours.of(b"hunter22"), ours.of(b"hunter23"));
/// assert_ne!(ours.of(b"hunter22"), other.of(b"hunter22"));
/// ```
pub struct Fingerprints {
    inner: [u8; BLOCK_BYTES],
    outer: [u8; BLOCK_BYTES],
}

impl Fingerprints {
    /// Creates fingerprints with this key.
    pub fn new(key: &[u8; 32]) -> Self {
        let (mut inner, mut outer) = ([0x36; BLOCK_BYTES], [0x5c; BLOCK_BYTES]);
        for (at, byte) in key.iter().enumerate() {
            inner[at] ^= byte;
            outer[at] ^= byte;
        }
        Self { inner, outer }
    }

    /// The fingerprint of a value.
    pub fn of(&self, value: &[u8]) -> String {
        let mac = self.mac(value).to_string();
        format!("{FINGERPRINT_PREFIX}{}", &mac[..DIGITS])
    }

    /// A text that identifies the key without revealing it.
    pub fn key_id(&self) -> String {
        self.mac(b"the key of the fingerprints").to_string()[..16].to_owned()
    }

    fn mac(&self, value: &[u8]) -> Sha256 {
        let digest = Sha256::of(&[&self.inner, value].concat());
        Sha256::of(&[&self.outer[..], digest.as_bytes()].concat())
    }

    /// Replaces every string, key and number in which the redactor finds a secret.
    pub(crate) fn mask_secrets(&self, value: &mut Value, redactor: &Redactor) {
        if redactor.is_empty() {
            return;
        }
        match value {
            Value::String(text) if redactor.finds(text) => *text = self.of(text.as_bytes()),
            Value::Number(number) if redactor.finds(&number.to_string()) => {
                *value = self.of(number.to_string().as_bytes()).into();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_secrets(item, redactor)),
            Value::Object(map) => {
                if map.keys().any(|key| redactor.finds(key)) {
                    let masked = std::mem::take(map).into_iter().map(|(key, value)| {
                        (if redactor.finds(&key) { self.of(key.as_bytes()) } else { key }, value)
                    });
                    *map = masked.collect::<Map<_, _>>();
                }
                map.values_mut().for_each(|value| self.mask_secrets(value, redactor));
            }
            Value::String(_) | Value::Number(_) | Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Prints the identity of the key, never the key.
impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprints(key {})", self.key_id())
    }
}

#[cfg(test)]
mod tests {
    use qontract_redaction::Redactor;
    use serde_json::json;

    use super::{FINGERPRINT_PREFIX, Fingerprints};

    #[test]
    fn a_fingerprint_is_an_hmac_that_fits_into_a_label() {
        // RFC 4231, test case 2, has a shorter key, which is padded with zeros.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let fingerprint = Fingerprints::new(&key).of(b"what do ya want for nothing?");
        let expect = "5bdcc146bf60754e6a042426089575c75a003f08";
        assert_eq!(fingerprint, format!("{FINGERPRINT_PREFIX}{expect}"));
        assert!(fingerprint.len() <= 63);
    }

    #[test]
    fn every_string_key_and_number_with_a_secret_is_replaced() {
        let (fingerprints, redactor) = (Fingerprints::new(&[7; 32]), Redactor::new(["hunter22", "12345678"]));
        let of = |text: &str| fingerprints.of(text.as_bytes());
        let mut value = json!({"a": ["x hunter22", "fine"], "hunter22": {"b": 12_345_678}, "c": null});
        fingerprints.mask_secrets(&mut value, &redactor);
        let expect =
            json!({"a": [of("x hunter22"), "fine"], of("hunter22"): {"b": of("12345678")}, "c": null});
        assert_eq!(value, expect);
    }
}
