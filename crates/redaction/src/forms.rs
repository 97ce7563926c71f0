//! The encoded forms of a secret, which are searched for in text without decoding the text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::normalization;

/// Minimum length of a line of a multi-line secret that is a separate form.
const MIN_LINE_BYTES: usize = 32;

/// The forms of a secret that have at least `min_bytes`: the secret trimmed, in lowercase and uppercase,
/// normalized, without white space and in hexadecimal; its long lines; and the base64 of the secret and of
/// its lines. Empty if the secret is shorter than `min_bytes`.
pub fn forms_of(secret: &str, min_bytes: usize) -> Vec<Box<[u8]>> {
    let secret = secret.trim();
    if secret.len() < min_bytes {
        return Vec::new();
    }
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE_BYTES && *line != secret);
    let mut forms: Vec<Box<[u8]>> = Vec::new();
    for text in std::iter::once(secret).chain(lines) {
        forms.push(text.as_bytes().into());
        forms.extend(encoded(text.as_bytes()));
    }
    let hexadecimal = hexadecimal(secret.as_bytes());
    let capitals = hexadecimal.to_ascii_uppercase();
    for text in [secret.to_lowercase(), secret.to_uppercase(), hexadecimal, capitals] {
        forms.push(text.into_bytes().into());
    }
    forms.extend(normalization::to_nfkc(secret.as_bytes()).map(Into::into));
    forms.extend(normalization::without_white_space(secret.as_bytes()).map(Into::into));
    forms.retain(|form| form.len() >= min_bytes);
    forms
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes everything");
        digits
    })
}

/// The base64 digits that depend only on the secret, in both alphabets, for each alignment within a group of
/// three bytes.
fn encoded(secret: &[u8]) -> impl Iterator<Item = Box<[u8]>> {
    (0..3).flat_map(move |offset| {
        let padded = [&[0; 2][..offset], secret].concat();
        // A digit has 6 bits. The range starts at the first digit without bits of earlier bytes, and ends at
        // the last digit without bits of later bytes.
        let (first, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)]
            .map(|text| text.as_bytes()[first..end].into())
    })
}

#[cfg(test)]
mod tests {
    use super::forms_of;

    fn check(secret: &str, expect: &[&str]) {
        let forms = forms_of(secret, 8);
        let mut forms: Vec<&str> = forms.iter().map(|form| std::str::from_utf8(form).unwrap()).collect();
        forms.dedup();
        assert_eq!(forms, expect, "{secret}");
    }

    const HUNTER: [&str; 8] = [
        "hunter22",
        "aHVudGVyMj",
        "h1bnRlcjIy",
        "odW50ZXIyM",
        "hunter22",
        "HUNTER22",
        "68756e7465723232",
        "68756E7465723232",
    ];

    #[test]
    fn a_secret_has_a_form_for_each_alignment_of_base64() {
        check("hunter22", &HUNTER);
        // The alphabets differ in two digits.
        check(
            "~~~???>>",
            &[
                "~~~???>>",
                "fn5+Pz8/Pj",
                "fn5-Pz8_Pj",
                "5+fj8/Pz4+",
                "5-fj8_Pz4-",
                "+fn4/Pz8+P",
                "-fn4_Pz8-P",
                "~~~???>>",
                "7e7e7e3f3f3f3e3e",
                "7E7E7E3F3F3F3E3E",
            ],
        );
    }

    #[test]
    fn a_secret_shorter_than_eight_bytes_has_no_form() {
        check("hunter2", &[]);
        check("  hunter2\n", &[]);
        check(" hunter22\n", &HUNTER);
    }

    #[test]
    fn long_lines_are_forms_of_their_own() {
        let (long, short) = ("a".repeat(32), "b".repeat(31));
        let forms = forms_of(&format!("{short}\n{long}\n{short}"), 8);
        assert!(forms.iter().any(|form| **form == *long.as_bytes()));
        assert!(!forms.iter().any(|form| **form == *short.as_bytes()));
        let whole = format!("{short}{long}{short}");
        assert!(forms.iter().any(|form| **form == *whole.as_bytes()), "without white space");
    }
}
