//! Credentials of a Prometheus server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_http::Secret;

/// The credentials that are sent with each request.
#[derive(Clone, Debug)]
pub enum PrometheusLogin {
    /// No credentials.
    None,
    /// A bearer token.
    Token(Secret),
    /// Basic authentication.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
}

impl PrometheusLogin {
    /// The value of the `Authorization` header.
    pub(crate) fn authorization(&self) -> Option<Secret> {
        match self {
            Self::None => None,
            Self::Token(token) => Some(Secret::new(format!("Bearer {}", token.expose()))),
            Self::Basic { user, password } => {
                let login = STANDARD.encode(format!("{user}:{}", password.expose()));
                Some(Secret::new(format!("Basic {login}")))
            }
        }
    }
}
