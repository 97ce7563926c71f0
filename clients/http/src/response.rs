//! The response of a target.

use std::fmt;
use std::time::SystemTime;

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap};

/// A response with status 2xx, or with another status that the request accepts.
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// The `Date` of the response: the clock of the target.
    pub fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.headers.get(DATE)?.to_str().ok()?).ok()
    }
}

impl fmt::Debug for Response {
    /// Omits headers and body, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
