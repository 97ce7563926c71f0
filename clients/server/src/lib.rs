//! Client of a data server, which runs GraphQL queries against bundles.
//!
//! A server holds several bundles. The latest bundle may change at any time. For consistent results, call
//! [`ServerClient::latest_sha`] once, and then query that sha ([`BundleSelector::Sha`]). The client only
//! reads, so it has no Write half.
//!
//! **Invariant:** a response with errors is a failure; partial data is never returned.
//!
//! ```no_run
//! use qontract_access::ReadPermit;
//! use qontract_client_http::{Http, Url};
//! use qontract_client_server::{BundleSelector, GraphqlQuery, ServerClient, ServerError};
//!
//! async fn teams(permit: &ReadPermit, http: &Http, url: Url) -> Result<String, ServerError> {
//!     let server = ServerClient::new(http, url, None);
//!     let address = BundleSelector::Sha(server.latest_sha(permit).await?);
//!     let query = GraphqlQuery { text: "{ teams { name } }", ..GraphqlQuery::default() };
//!     Ok(server.query(permit, &address, query).await?.data().to_owned())
//! }
//! ```

mod answer;
mod client;
mod error;
mod extension;
mod sha;

pub use answer::{AnswerExtension, AnswerLocations, ErrorExtensions, GraphqlError, QueryAnswer};
pub use client::{BundleSelector, CommitInfo, GraphqlQuery, ServerClient, ServerLease};
pub use error::ServerError;
pub use extension::{Batch, BatchAnswer, QueryExtension, ServerExtensions};
pub use sha::Sha;
