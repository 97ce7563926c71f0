//! Shared test support: recorded vectors, scratch directories, Git repositories, permits, processes, and
//! servers: a Kubernetes API server ([`cluster`]), AWS ([`aws`]), Prometheus ([`prometheus`]) and Vault (`vault`, a
//! feature). Only used as a dev-dependency, and by `xtask`.

pub mod aws;
mod case;
pub mod cluster;
mod loopback;
mod ports;
mod process;
pub mod prometheus;
mod scratch;
mod seeded_rng;
#[cfg(feature = "vault")]
pub mod vault;
mod wait;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

pub use case::{Case, CaseFault, CaseStep};
pub use loopback::{BodyFraming, Loopback, LoopbackRequest, Reply};
pub use ports::{free_port, free_ports};
pub use process::{Leftover, Process, tool};
use qontract_access::{Mode, Permits, WriteBounds};
pub use scratch::Scratch;
pub use seeded_rng::SeededRng;
pub use wait::eventually;

/// The permits of a run of this mode.
#[expect(clippy::disallowed_methods, reason = "a test acts as the runner")]
pub fn permits(mode: Mode) -> Permits {
    qontract_access::mint(mode)
}

/// The permits of a real run that may write only within these bounds.
#[expect(clippy::disallowed_methods, reason = "a test acts as the runner")]
pub fn bounded_permits(bounds: WriteBounds) -> Permits {
    qontract_access::mint_within(Mode::Real, Some(Arc::new(bounds)))
}

/// Number of cases of a randomised test: `sample` in the test suite, and more in `cargo xtask chaos`.
pub fn chaos_count(sample: u64) -> u64 {
    std::env::var("QONTRACT_CHAOS_COUNT").map_or(sample, |count| count.parse().expect("a number of cases"))
}

/// The directory of recorded vectors; see its README.
pub fn vectors() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors"))
}

/// A file of recorded vectors: of the directory that `QONTRACT_VECTORS` names, or of the recorded sample. `None`, with
/// a report, if the named directory has no such file.
pub fn vector_file(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("QONTRACT_VECTORS") else { return Some(vectors().join(path)) };
    let file = PathBuf::from(folder).join(path);
    if file.is_file() {
        return Some(file);
    }
    not_tested(&format!("`{}` does not exist: its vectors are not replayed", file.display()));
    None
}

/// The example data repo.
pub fn example() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/app-interface"))
}

/// The directory of the public schemas (`schemas/` and `graphql-schemas/`), if it is next to the checkout.
///
/// They are not part of the project, so a test that needs them is ignored by plain `cargo test`, and calls
/// [`not_tested`] if they are missing.
pub fn public_schemas() -> Option<PathBuf> {
    let folder = std::env::var_os("QONTRACT_PUBLIC_SCHEMAS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/schemas")),
        PathBuf::from,
    );
    folder.join("graphql-schemas/schema.yml").is_file().then_some(folder)
}

/// The environment variable with the file to which [`not_tested`] appends; `cargo xtask test` sets it.
pub const NOT_TESTED_VARIABLE: &str = "QONTRACT_NOT_TESTED";

/// Reports that a test was skipped, with the reason: on stderr, and to `cargo xtask test`, which prints it in
/// its summary, because test runners hide the stderr of a passing test.
///
/// # Panics
///
/// If the file of `cargo xtask test` cannot be written.
#[expect(clippy::print_stderr, reason = "it must be visible in the test output")]
pub fn not_tested(why: &str) {
    eprintln!("NOT TESTED: {why}");
    if let Some(path) = std::env::var_os(NOT_TESTED_VARIABLE) {
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(format!("{why}\n").as_bytes()))
            .expect("the report is written");
    }
}

/// Compares `actual` with the content of `file`; with `UPDATE=1` the file is rewritten instead.
#[track_caller]
pub fn snapshot(file: &std::path::Path, actual: &str) {
    if std::env::var_os("UPDATE").is_some() {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).expect("a directory for the snapshot");
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
