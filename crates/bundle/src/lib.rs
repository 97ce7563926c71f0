//! Data repo → bundle: validated bytes, named by their own SHA-256.
//!
//! [`repo`] lists the files of a directory or a Git revision, [`mod@build`] builds a [`Bundle`] and its bytes
//! from them, [`mod@load`] loads a bundle from bytes, [`store`] writes a bundle to disk, and [`diff`]
//! compares two bundles. The model (value, json, digest, model, types, diff) is pure. Only [`repo`],
//! [`store`] and the build cache in [`mod@build`] access the disk, and only [`repo`] runs `git`.

pub mod build;
pub mod codec;
pub mod diff;
mod digest;
mod intern;
pub mod json;
mod keys;
mod lazy;
pub mod load;
mod model;
pub mod repo;
pub mod store;
pub mod types;
mod value;
pub mod walk;

pub use build::{BuildCache, BuildOptions, MIN_CACHED_FILES, build, build_with, value_of};
pub use digest::{Hasher, Sha256};
pub use keys::{Key, KeySet};
pub use lazy::LazyValue;
pub use load::{LoadError, load, load_from};
pub use model::{Backref, Bundle, CommitStamp, Datafile, Document, Pool, Resource};
pub use repo::{FileStamp, Layout, Repo, RepoStamp};
pub use value::{Map, Value};
