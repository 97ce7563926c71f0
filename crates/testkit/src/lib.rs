//! What tests share: recorded vectors, scratch folders, Git repositories, permits, processes, and servers: a Kubernetes API server ([`cluster`]), AWS
//! ([`aws`]) and Vault (`vault`, a feature). Only ever a dev-dependency.

pub mod aws;
mod case;
mod chance;
pub mod cluster;
mod loopback;
mod ports;
mod process;
mod scratch;
#[cfg(feature = "vault")]
pub mod vault;
mod wait;

use std::path::PathBuf;

pub use case::Case;
pub use chance::Chance;
pub use loopback::{Loopback, Reply};
pub use ports::{free_port, free_ports};
pub use process::{Leftover, Process, tool};
use qontract_access::{Mode, Permits};
pub use scratch::Scratch;
pub use wait::eventually;

/// The permits of a run of this mode.
#[expect(clippy::disallowed_methods, reason = "a test plays the runner")]
pub fn permits(mode: Mode) -> Permits {
    qontract_access::mint(mode)
}

/// How many cases a randomised test runs: `sample` in the suite, what `cargo xtask chaos` says there.
pub fn chaos_count(sample: u64) -> u64 {
    std::env::var("QONTRACT_CHAOS_COUNT").map_or(sample, |count| count.parse().expect("a number of cases"))
}

/// The folder of recorded vectors; its README says what they are.
pub fn vectors() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors"))
}

/// The example data repo.
pub fn example() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/app-interface"))
}

/// The public schemas (`schemas/` and `graphql-schemas/`), where they lie beside the checkout.
///
/// They are not part of the project, so a test that wants them says loudly when they are absent.
pub fn public_schemas() -> Option<PathBuf> {
    let folder = std::env::var_os("QONTRACT_PUBLIC_SCHEMAS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/schemas")),
        PathBuf::from,
    );
    folder.join("graphql-schemas/schema.yml").is_file().then_some(folder)
}

/// Says loudly that a test did not test, and why.
#[expect(clippy::print_stderr, reason = "whoever reads the run has to see it")]
pub fn not_tested(why: &str) {
    eprintln!("NOT TESTED: {why}");
}

/// Compares `actual` with the text kept in `file`; with `UPDATE=1` the file is rewritten instead.
#[track_caller]
pub fn snapshot(file: &std::path::Path, actual: &str) {
    if std::env::var_os("UPDATE").is_some() {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).expect("a folder for the snapshot");
        }
        std::fs::write(file, actual).expect("the snapshot can be written");
        return;
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs (UPDATE=1 accepts it)\n--- expected\n{expected}\n--- actual\n{actual}",
        file.display()
    );
}
