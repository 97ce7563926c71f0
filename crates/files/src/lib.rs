//! Files on disk: atomic replacement, files that only their owner may read, lock files, and directories with a
//! lock.
//!
//! Every crate that replaces a file uses [`atomic`]; `cargo xtask tidy` refuses a second implementation.

pub mod atomic;
pub mod lock;
pub mod locked_folder;
pub mod private_files;
