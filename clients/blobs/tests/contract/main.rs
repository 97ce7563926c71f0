//! One contract, kept by a folder and by a real server of S3.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod cases;
mod dry_run;
mod folder;
mod hostile;
mod peer;
mod real_s3;
mod stores;
