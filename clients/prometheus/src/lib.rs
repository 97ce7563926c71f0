//! Client of the Prometheus query API: instant queries, range queries, and run times by label.
//!
//! **Invariant:** only `GET`s are sent, and a result is complete and finite, or an error.
//!
//! ```no_run
//! use qontract_access::ReadPermit;
//! use qontract_client_http::{Http, Url};
//! use qontract_client_prometheus::{Prometheus, PrometheusError, PrometheusLogin};
//! use std::collections::BTreeMap;
//!
//! async fn slots(permit: &ReadPermit, http: &Http, url: Url) -> Result<BTreeMap<String, f64>, PrometheusError> {
//!     let prometheus = Prometheus::new(http, url, &PrometheusLogin::None);
//!     let query = "sum by (shard_id) (qontract_reconcile_last_run_seconds)";
//!     prometheus.run_seconds(permit, query, "shard_id").await
//! }
//! ```

mod answer;
mod client;
mod error;
mod login;

pub use answer::{Labels, Point, Sample, Series};
pub use client::{Prometheus, QueryRange};
pub use error::PrometheusError;
pub use login::PrometheusLogin;
