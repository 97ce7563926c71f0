//! Errors while starting a cluster.

use std::io;
use std::path::PathBuf;

/// The reason why no server is available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment names neither a server nor the programs to start one.
    #[error(
        "no Kubernetes API server for tests (`{variable}` is not set): run `cargo xtask test`, or `cargo xtask test --without-kube` to skip this test"
    )]
    Unset {
        /// The variable that is missing.
        variable: &'static str,
    },
    /// Tests against real servers are to be skipped, but this test was run.
    #[error(
        "this test needs a real Kubernetes API server, but such tests are skipped: add `real_cluster` to its name, so that it is skipped, too"
    )]
    Skipped,
    /// A directory or file could not be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No port was free.
    #[error("cannot find a free port")]
    Port(#[source] io::Error),
    /// A program could not be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A program ended unexpectedly.
    #[error("{program} ended; the last lines of its log:\n{log}")]
    Ended {
        /// The program.
        program: String,
        /// The end of its log.
        log: String,
    },
    /// The server did not become ready in time.
    #[error("{program} is not ready after {seconds} s; the last lines of its log:\n{log}")]
    NotReady {
        /// The program.
        program: String,
        /// The timeout in seconds.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
}
