//! Tests of the decisions about objects: a table of ownership rules, and random objects. They are one test
//! program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod ownership;
mod properties;
