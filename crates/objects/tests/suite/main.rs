//! Tests of the adapter for Kubernetes objects, on the sandbox and on a real API server. They are one test
//! program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod adapter;
mod callers;
mod canaries;
mod faults_real_cluster;
mod kinds;
mod ownership;
mod recycle;
mod tokens;
mod unserved;
mod whole_diff;

mod support {
    pub mod fault_proxy;
    pub mod refusing_sandbox;
    pub mod test_integration;
    pub mod test_target;
}
