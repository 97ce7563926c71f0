//! What can go wrong while a server is started.

use std::io;
use std::path::PathBuf;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment tells of no server, or of no programs to start one.
    #[error(
        "no Kubernetes API server for tests (`{variable}` is not set): run `cargo xtask test`, or `cargo xtask test --without-kube` to skip this test"
    )]
    Unset {
        /// The variable that is missing.
        variable: &'static str,
    },
    /// Tests of real servers were left out, and yet one runs.
    #[error(
        "tests of a real Kubernetes API server are left out by choice, but this one is not: give it `real_cluster` in its name"
    )]
    LeftOut,
    /// A folder or file could not be made.
    #[error("cannot make {}", path.display())]
    Make {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No port was free.
    #[error("cannot find a free port")]
    Port(#[source] io::Error),
    /// A program could not be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// Which.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A program ended when it should not.
    #[error("{program} ended; its last words:\n{log}")]
    Ended {
        /// Which.
        program: String,
        /// The end of what it said.
        log: String,
    },
    /// The server did not become ready in time.
    #[error("{program} is not ready after {seconds} s; its last words:\n{log}")]
    Late {
        /// Which.
        program: String,
        /// How long it was waited for.
        seconds: u64,
        /// The end of what it said.
        log: String,
    },
}
