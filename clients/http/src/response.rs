//! What a target answered.

use std::fmt;
use std::time::SystemTime;

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap};

/// An answer: a success, or a status that the request takes for an answer, too.
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// The clock of the target when it answered.
    pub fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.headers.get(DATE)?.to_str().ok()?).ok()
    }
}

impl fmt::Debug for Response {
    /// Neither headers nor body: either may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
