//! What tests share: recorded vectors, scratch folders, Git repositories. Only ever a dev-dependency.

mod scratch;

use std::path::PathBuf;

pub use scratch::Scratch;

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
