//! The parts of a request that identify it in errors and limits. Pure.

use std::fmt;

use reqwest::{Method, Url};

/// A call: its method, and its URL without user, password, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The parts of the URL that may be shown.
    pub url: String,
}

impl Call {
    /// The parts of a request that may be shown.
    pub fn new(method: &Method, url: &Url) -> Self {
        let shown = format!("{}{}", origin(url), url.path());
        Self { method: method.clone(), url: shown }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} {}`", self.method, self.url)
    }
}

/// Scheme, host and port as one string.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
