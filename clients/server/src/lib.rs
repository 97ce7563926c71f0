//! Client of a data server, which answers GraphQL queries against bundles.
//!
//! A server holds several bundles. For consistent answers, call [`Server::latest_sha`] once and then query
//! that sha ([`Address::Sha`]): the latest bundle may change at any time. The client only reads: there is no
//! Write half.
//!
//! **Invariant:** an answer with errors is a failure; partial data is not returned.
//!
//! ```no_run
//! use qontract_access::ReadPermit;
//! use qontract_client_http::{Http, Url};
//! use qontract_client_server::{Address, Query, Server, ServerError};
//!
//! async fn teams(permit: &ReadPermit, http: &Http, url: Url) -> Result<String, ServerError> {
//!     let server = Server::new(http, url, None);
//!     let address = Address::Sha(server.latest_sha(permit).await?);
//!     let query = Query { text: "{ teams { name } }", ..Query::default() };
//!     Ok(server.answer(permit, &address, query).await?.data().to_owned())
//! }
//! ```

mod answer;
mod error;
mod server;
mod sha;

pub use answer::{Answer, Complaint};
pub use error::ServerError;
pub use server::{Address, CommitInfo, Lease, Query, Server};
pub use sha::Sha;
