//! The URL of an S3-compatible server.

use std::str::FromStr;

use qontract_client_http::Url;

/// A scheme, a host and an optional port. The SDK appends buckets and keys, so nothing else is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Endpoint(Url);

/// The reason why a string is not a valid S3 endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum S3EndpointError {
    /// The string cannot be parsed.
    #[error("not a URL such as `https://s3.example.com`")]
    Parse,
    /// The scheme is not `http` or `https`.
    #[error("the scheme must be http or https")]
    Scheme,
    /// The URL has a user name or password.
    #[error("a user name or password is not allowed")]
    UserInfo,
    /// The URL has a path.
    #[error("a path is not allowed")]
    Path,
    /// The URL has a query.
    #[error("a query is not allowed")]
    Query,
    /// The URL has a fragment.
    #[error("a fragment is not allowed")]
    Fragment,
}

impl S3Endpoint {
    /// The URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for S3Endpoint {
    type Err = S3EndpointError;

    fn from_str(text: &str) -> Result<Self, S3EndpointError> {
        let url = Url::parse(text).map_err(|_| S3EndpointError::Parse)?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(S3EndpointError::Scheme);
        }
        // The parser drops an empty user or password, so this checks for an `@`.
        let rest = text.split_once(':').map_or("", |(_, rest)| rest).trim_start_matches(['/', '\\']);
        let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(S3EndpointError::UserInfo);
        }
        if url.path() != "/" {
            return Err(S3EndpointError::Path);
        }
        if url.query().is_some() {
            return Err(S3EndpointError::Query);
        }
        if url.fragment().is_some() {
            return Err(S3EndpointError::Fragment);
        }
        Ok(Self(url))
    }
}

#[cfg(test)]
mod tests {
    use super::{S3Endpoint, S3EndpointError};

    #[test]
    fn an_endpoint_is_a_scheme_a_host_and_a_port() {
        let check = |text: &str, expect: Result<&str, S3EndpointError>| {
            let parsed: Result<S3Endpoint, _> = text.parse();
            assert_eq!(parsed.as_ref().map(S3Endpoint::as_str), expect.as_ref().copied(), "{text}");
        };
        check("http://127.0.0.1:9000", Ok("http://127.0.0.1:9000/"));
        check("https://S3.example.com/", Ok("https://s3.example.com/"));
        check("https://[::1]:1", Ok("https://[::1]:1/"));
        check("", Err(S3EndpointError::Parse));
        check("s3.example.com", Err(S3EndpointError::Parse));
        check("http://", Err(S3EndpointError::Parse));
        check("localhost:9000", Err(S3EndpointError::Scheme));
        check("ftp://s3.example.com", Err(S3EndpointError::Scheme));
        check("file:///etc/passwd", Err(S3EndpointError::Scheme));
        check("http://ann@s3.example.com", Err(S3EndpointError::UserInfo));
        check("http://ann:word@s3.example.com/", Err(S3EndpointError::UserInfo));
        check("http://@s3.example.com", Err(S3EndpointError::UserInfo));
        check("http:\\\\ann@s3.example.com", Err(S3EndpointError::UserInfo));
        check("http://s3.example.com/minio", Err(S3EndpointError::Path));
        check("http://s3.example.com//", Err(S3EndpointError::Path));
        check("http://s3.example.com/?", Err(S3EndpointError::Query));
        check("http://s3.example.com?a=b", Err(S3EndpointError::Query));
        check("http://s3.example.com#", Err(S3EndpointError::Fragment));
        check("http://s3.example.com/#a@b", Err(S3EndpointError::Fragment));
    }
}
