//! Files on disk: atomic replacement, files that only their owner may read, and lock files.
//!
//! Every crate that replaces a file uses [`atomic`]; `cargo xtask tidy` refuses a second implementation.

pub mod atomic;
pub mod lock;
pub mod private_files;
