//! Authentication by token.

use sha2::{Digest as _, Sha256};

/// The required `Authorization` value. Only digests are stored, and comparing them takes constant time.
#[derive(Clone)]
pub struct Token {
    digests: [[u8; 32]; 2],
}

impl Token {
    /// Creates a token from the complete header value, or from the part after `Bearer`.
    pub fn new(text: &str) -> Self {
        Self { digests: [digest(text.as_bytes()), digest(format!("Bearer {text}").as_bytes())] }
    }

    /// Whether this header value equals the token.
    pub fn matches(&self, header: &[u8]) -> bool {
        let actual = digest(header);
        let differs = |digest: &[u8; 32]| digest.iter().zip(&actual).fold(0, |all, (a, b)| all | (a ^ b));
        self.digests.iter().map(differs).filter(|differs| *differs == 0).count() > 0
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn only_the_exact_token_matches() {
        let token = Token::new("abc");
        for (shown, is) in [
            ("abc", true),
            ("Bearer abc", true),
            ("bearer abc", false),
            ("ab", false),
            ("", false),
            ("abcd", false),
        ] {
            assert_eq!(token.matches(shown.as_bytes()), is, "{shown}");
        }
        assert!(Token::new("Basic eHg6eXk=").matches(b"Basic eHg6eXk="));
    }
}
