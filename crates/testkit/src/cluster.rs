//! A Kubernetes API server on the loopback interface, for tests: real `etcd`, `kube-apiserver` and
//! `kube-controller-manager`, without nodes.
//!
//! `cargo xtask test` installs the programs and starts one server for all tests of a run: [`shared`] returns
//! it. A test creates its own namespaces in it, named by [`unique_name`]. A test that stops or restarts a
//! server starts a separate one with [`TestCluster::start`].
//!
//! A test that needs a server is ignored by plain `cargo test`, and has `real_cluster` in its name, or in the
//! name of its module or file; `cargo xtask test --without-kube` skips these tests.

mod api;
mod binaries;
mod control_plane;
mod error;

pub use api::{Api, KubectlOutput, User, shared};
pub use binaries::Binaries;
pub use control_plane::TestCluster;
pub use error::Error;

use std::sync::atomic::{AtomicUsize, Ordering};

/// The environment variable that is set if tests against real servers are skipped.
pub const WITHOUT_KUBE_VARIABLE: &str = "QONTRACT_WITHOUT_KUBE";

/// A name that is unique in this test run: for namespaces and cluster-scoped objects.
pub fn unique_name(prefix: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::unique_name;

    #[test]
    fn names_are_unique_and_have_the_prefix() {
        let (first, second) = (unique_name("quota"), unique_name("quota"));
        assert!(first.starts_with("quota-") && second.starts_with("quota-"));
        assert_ne!(first, second);
    }
}
