//! Contract tests, for a directory and for a real SQS server.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod cases;
mod dry_run;
mod folder;
mod hostile;
mod iam;
mod queues;
mod real_sqs;
