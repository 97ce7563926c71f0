//! The HTTP stack of all clients.
//!
//! A client builds a [`Request`] and passes it to [`Http::read`] or [`Http::write`]. The stack enforces the
//! rules for every call: the requests that a run may send ([`RequestPolicy`]), a deadline, a retry policy
//! with back-off, a rate limit per origin that all callers share, and a maximum response size. The stack does
//! not depend on any particular target system.
//!
//! **Invariant:** in a dry run no unsafe method leaves the process, except for the allow-list of
//! [`SafePost`]s and requests that a [`SafeRehearsal`] covers.
//!
//! **Invariant:** errors and `Debug` output contain no header values and no URL queries.
//!
//! ```no_run
//! use qontract_access::ReadPermit;
//! use qontract_client_http::{Http, HttpError, Request, Secret, Settings, StatusCode, Url};
//!
//! async fn team(permit: &ReadPermit, url: Url, token: &Secret) -> Result<Option<Vec<u8>>, HttpError> {
//!     let http = Http::new(permit, Settings::default())?;
//!     let request = Request::get(url).secret_header("authorization", token).accept_status(StatusCode::NOT_FOUND);
//!     let response = http.read(permit, request).await?;
//!     Ok(response.status.is_success().then_some(response.body))
//! }
//! ```

mod actions;
mod attempt;
mod call;
mod cause;
mod error;
mod guard;
mod http;
mod rate_limit;
mod rehearsal;
mod request;
mod response;
mod retry;
mod secret;
mod settings;

pub use actions::{EC2_READS, ReadActions, SQS_READS, STS_READS};
pub use call::Call;
pub use cause::cause;
pub use error::{GuardRefusal, HttpError};
pub use guard::{RequestPolicy, SafePost};
pub use http::Http;
pub use rate_limit::OriginLimiters;
pub use rehearsal::SafeRehearsal;
pub use request::Request;
pub use reqwest::header::HeaderMap;
pub use reqwest::{Method, StatusCode, Url};
pub use response::Response;
pub use secret::Secret;
pub use settings::{Proxies, Settings};
