//! The HTTP data server: serves every bundle by its sha. The README of this crate describes the limits and
//! endpoints.
//!
//! **Invariant:** a request that names a bundle is answered from that bundle or refused, even if other bundles are
//! loaded, fail to load or are dropped while the request is processed.

mod admission;
mod analysis;
mod batch;
mod body;
mod bundle_source;
mod bundles;
mod compression;
mod connection;
mod diff;
mod etag;
mod graphql;
mod graphql_request;
mod http;
mod lease;
mod listener;
mod page;
mod persisted_queries;
mod query_extension;
mod registry;
mod reply;
mod response_cache;
mod route;
mod server;
mod settings;
mod token;

pub use admission::HostPolicy;
pub use analysis::{AnalysisError, BundleAnalysis};
pub use bundle_source::{BlobSource, BundleSource, BundleStore, Content, FileSource, SourceError};
pub use bundles::{BundleEvent, BundleObserver, Bundles, LoadFailure};
pub use listener::{Page, Pages, serve_pages};
pub use registry::BundleRegistry;
pub use server::Server;
pub use settings::{AccessLog, AccessLogEntry, DegradationProbe, ReleaseHook, Settings};
pub use token::Token;
