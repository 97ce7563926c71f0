//! Tests of builds, bundles and their files, through the public API. They are one test
//! program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod build_cache;
mod compat;
mod diff;
mod json;
mod repo;
mod store;
