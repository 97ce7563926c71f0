//! What a target answered.

use std::fmt;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// An answer: a success, or a status that the request takes for an answer, too.
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    /// Neither headers nor body: either may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
