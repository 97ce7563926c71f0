//! Tests of the server over HTTP. They are one test program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test unwraps what it expects")]

mod bundles;
mod clients;
mod extensions;
mod recorded;

#[path = "../support"]
mod support {
    pub mod running;
}
