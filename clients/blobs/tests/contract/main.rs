//! Contract tests, for a directory and for a real S3 server.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod cases;
mod dry_run;
mod folder;
mod hostile;
mod peer;
mod real_s3;
mod stores;
