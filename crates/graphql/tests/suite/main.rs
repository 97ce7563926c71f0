//! Tests of execution, validation and impact analysis, through the public API. They are one test
//! program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test unwraps what it expects")]

mod footprint;
mod impact;
mod incremental;
mod mistakes;
mod oracle;
mod reference;
mod rules;
mod typed_answer;

mod support {
    pub mod compare;
    pub mod filter;
    pub mod queries;
    pub mod random_bundle;
    pub mod reference;
    pub mod rng;
    pub mod script;
}
