//! Data repo → bundle: validated bytes with a name, the SHA-256 of themselves.
//!
//! The road: [`repo`] finds the files of a directory or of a Git revision, [`mod@build`] turns them into a [`Bundle`]
//! and its bytes, [`mod@load`] turns bytes into a bundle again, [`store`] keeps them on disk, and [`diff`] tells two
//! bundles apart. The model (value, json, digest, model, types, diff) is pure; only [`repo`], [`store`] and what is remembered of
//! files ([`mod@build`]) touch the disk, and only [`repo`] runs `git`.

pub mod build;
pub mod diff;
mod digest;
pub mod json;
mod keys;
mod later;
pub mod load;
mod model;
pub mod packed;
pub mod repo;
mod shared;
pub mod store;
pub mod types;
mod value;
pub mod walk;

pub use build::{Aids, MIN_CACHED_FILES, Memory, build, build_with, value_of};
pub use digest::{Hasher, Sha256};
pub use keys::{Key, Keys};
pub use later::Later;
pub use load::{LoadError, load, load_from};
pub use model::{Backref, Bundle, Datafile, Document, Pool, Resource, Stamp};
pub use repo::{Layout, Repo, RepoStamp, Sight};
pub use value::{Map, Value};
