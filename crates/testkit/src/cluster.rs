//! A Kubernetes API server on the loopback interface, for tests: real `etcd`, `kube-apiserver` and
//! `kube-controller-manager`, without nodes.
//!
//! `cargo xtask test` gets the programs and starts one server for all tests of a run: [`shared`] is that one. A test
//! makes namespaces of its own in it, named by [`unique_name`]. A test that stops or restarts a server takes one of its
//! own, [`TestCluster::start`].
//!
//! A test that needs a server has `real_cluster` in its name, or in that of its module or file: by that word it is left
//! out of `cargo xtask test --without-kube`.

mod api;
mod binaries;
mod control_plane;
mod error;

pub use api::{Answer, Api, User, shared};
pub use binaries::Binaries;
pub use control_plane::TestCluster;
pub use error::Error;

use std::sync::atomic::{AtomicUsize, Ordering};

/// The variable that is set where tests of real servers are left out by choice.
pub const WITHOUT: &str = "QONTRACT_WITHOUT_KUBE";

/// A name that no other test of this run has: for namespaces, and for what is not in a namespace.
pub fn unique_name(prefix: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::unique_name;

    #[test]
    fn names_begin_as_asked_and_differ() {
        let (first, second) = (unique_name("quota"), unique_name("quota"));
        assert!(first.starts_with("quota-") && second.starts_with("quota-"));
        assert_ne!(first, second);
    }
}
