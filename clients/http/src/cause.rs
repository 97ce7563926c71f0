//! Short, plain causes of connection failures and incomplete responses. Pure.
//!
//! Libraries wrap the cause in several layers, some of which contain `Debug` output. An operator needs the
//! innermost cause, which concerns a host name, a port or a certificate.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// The innermost cause of an error chain, such as `connection refused`; `host` is the host of the URL.
///
/// ```
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// assert_eq!(qontract_client_http::cause(&refused, "h"), "connection refused");
/// ```
pub fn cause(error: &(dyn Error + 'static), host: &str) -> String {
    let chain: Vec<&(dyn Error + 'static)> =
        std::iter::successors(Some(error), |error| (*error).source()).collect();
    let is_lookup = |error: &&(dyn Error + 'static)| {
        let text = error.to_string();
        text == "dns error" || text.starts_with("failed to lookup address")
    };
    if chain.iter().any(is_lookup) {
        return format!("host name `{host}` not found");
    }
    let cause = chain.iter().rev().find_map(|error| {
        let tls = error.downcast_ref::<rustls::Error>().map(|error| tls_cause(error, host));
        tls.or_else(|| error.downcast_ref::<io::Error>().and_then(|error| io_cause(error, host)))
    });
    // The innermost message is the most specific one.
    cause.unwrap_or_else(|| chain.last().map(ToString::to_string).unwrap_or_default())
}

/// The cause of an I/O error, or of a TLS error wrapped in one.
fn io_cause(error: &io::Error, host: &str) -> Option<String> {
    if let Some(inner) = error.get_ref() {
        if let Some(error) = inner.downcast_ref::<rustls::Error>() {
            return Some(tls_cause(error, host));
        }
        if let Some(cause) = inner.downcast_ref::<io::Error>().and_then(|error| io_cause(error, host)) {
            return Some(cause);
        }
    }
    let text = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "connection reset by the server",
        io::ErrorKind::ConnectionAborted => "connection aborted",
        io::ErrorKind::UnexpectedEof => "connection closed before the end of the response",
        io::ErrorKind::TimedOut => "connection timed out",
        io::ErrorKind::HostUnreachable => "no route to the host",
        io::ErrorKind::NetworkUnreachable => "network unreachable",
        io::ErrorKind::AddrNotAvailable => "address not available",
        _ => return None,
    };
    Some(text.to_owned())
}

/// The cause of a TLS error.
fn tls_cause(error: &rustls::Error, host: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => certificate_cause(error, host),
        rustls::Error::InvalidMessage(_) => "the server does not use TLS".to_owned(),
        rustls::Error::AlertReceived(alert) => {
            let name = alert.as_str().unwrap_or("unknown");
            format!("the server refused the TLS connection ({name})")
        }
        other => format!("TLS: {other}"),
    }
}

/// The cause for a certificate of version 1 or 2. `openssl x509 -req` creates such a certificate unless
/// extensions are specified.
const OLD_VERSION: &str = "X.509 version 1 and 2 certificates are not supported: create a version 3 certificate, with extensions such as `extendedKeyUsage`";

/// The cause for a server certificate with `CA:TRUE`, as created by `openssl req -x509`. Such a certificate
/// is not accepted, even if it is trusted as a CA.
const CA_AS_SERVER: &str = "the server uses a CA certificate (`CA:TRUE`) as its own: give it a certificate with `CA:FALSE` that the CA signed";

fn certificate_cause(error: &CertificateError, host: &str) -> String {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate not valid yet: check the clock".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("certificate not valid for `{host}`")
        }
        CertificateError::Revoked => "certificate revoked".to_owned(),
        // The library has no variants for these causes, so their `Debug` output is compared.
        CertificateError::Other(other) if format!("{other:?}").contains("UnsupportedCertVersion") => {
            OLD_VERSION.to_owned()
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            CA_AS_SERVER.to_owned()
        }
        CertificateError::Other(other) => format!("invalid certificate: {other}"),
        other => format!("invalid certificate: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;

    use super::*;

    /// A message that wraps another error, as in libraries.
    #[derive(Debug)]
    struct Wrapper(&'static str, Option<Box<dyn Error + Send + Sync>>);

    impl fmt::Display for Wrapper {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Wrapper {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|error| error as _)
        }
    }

    #[track_caller]
    fn check(error: impl Error + Send + Sync + 'static, expect: &str) {
        let wrapped = Wrapper(
            "error sending request",
            Some(Box::new(Wrapper("client error (Connect)", Some(Box::new(error))))),
        );
        assert_eq!(cause(&wrapped, "api.example.com"), expect);
    }

    #[test]
    fn io_errors_are_named() {
        for (kind, expect) in [
            (io::ErrorKind::ConnectionRefused, "connection refused"),
            (io::ErrorKind::ConnectionReset, "connection reset by the server"),
            (io::ErrorKind::BrokenPipe, "connection reset by the server"),
            (io::ErrorKind::ConnectionAborted, "connection aborted"),
            (io::ErrorKind::UnexpectedEof, "connection closed before the end of the response"),
            (io::ErrorKind::TimedOut, "connection timed out"),
            (io::ErrorKind::HostUnreachable, "no route to the host"),
            (io::ErrorKind::NetworkUnreachable, "network unreachable"),
            (io::ErrorKind::AddrNotAvailable, "address not available"),
        ] {
            check(io::Error::from(kind), expect);
        }
        check(io::Error::other("tin can"), "tin can");
    }

    #[test]
    fn a_host_name_that_is_not_found_is_named() {
        let lookup = io::Error::other("failed to lookup address information: Name or service not known");
        check(Wrapper("dns error", Some(Box::new(lookup))), "host name `api.example.com` not found");
    }

    #[test]
    fn certificate_errors_are_named() {
        #[derive(Debug)]
        struct CaUsedAsEndEntity;
        impl fmt::Display for CaUsedAsEndEntity {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a CA")
            }
        }
        impl Error for CaUsedAsEndEntity {}
        #[derive(Debug)]
        struct UnsupportedCertVersion;
        impl fmt::Display for UnsupportedCertVersion {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version")
            }
        }
        impl Error for UnsupportedCertVersion {}
        let other = rustls::OtherError(Arc::new(CaUsedAsEndEntity));
        let version = rustls::OtherError(Arc::new(UnsupportedCertVersion));
        for (error, expect) in [
            (CertificateError::UnknownIssuer, "certificate signed by unknown authority"),
            (CertificateError::BadSignature, "certificate signed by unknown authority"),
            (CertificateError::Expired, "certificate expired"),
            (CertificateError::NotValidYet, "certificate not valid yet: check the clock"),
            (CertificateError::NotValidForName, "certificate not valid for `api.example.com`"),
            (CertificateError::Revoked, "certificate revoked"),
            (CertificateError::Other(other), CA_AS_SERVER),
            (CertificateError::Other(version), OLD_VERSION),
        ] {
            let tls = rustls::Error::InvalidCertificate(error);
            check(io::Error::new(io::ErrorKind::InvalidData, tls.clone()), expect);
            check(io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls)), expect);
        }
    }

    #[test]
    fn other_tls_errors_are_named() {
        let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        check(io::Error::new(io::ErrorKind::InvalidData, plain), "the server does not use TLS");
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRequired);
        check(
            io::Error::new(io::ErrorKind::InvalidData, alert),
            "the server refused the TLS connection (CertificateRequired)",
        );
    }
}
