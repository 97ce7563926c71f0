//! The HTTP data server: serves every bundle by its sha. See the README of this crate for the rules.
//!
//! **Invariant:** whatever is loaded, fails or is dropped, a request that names a bundle is answered from
//! that bundle or not at all.

mod admission;
mod answers;
mod body;
mod bundles;
mod cancellation;
mod compress;
mod connection;
mod diff;
mod graphql;
mod http;
mod lease;
mod listener;
mod origin;
mod page;
mod persisted;
mod reply;
mod route;
mod serve;
mod settings;
mod shelf;
mod tag;
mod token;
mod wire;

pub use admission::HostPolicy;
pub use bundles::{Bundles, Listener, LoadFailure, Told, chain};
pub use listener::{Page, Pages, serve_pages};
pub use origin::{Content, File, Origin, OriginError, Store, Stored};
pub use serve::Server;
pub use settings::{Heard, Hearer, ReleaseHook, Settings};
pub use shelf::Shelf;
pub use token::Token;
