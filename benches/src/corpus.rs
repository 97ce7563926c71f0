//! A generated data repo: a realistic mix of documents that refer to each other. The same seed produces the
//! same bytes on every machine.
//!
//! **Invariant:** the order of generation does not matter: a document depends only on the seed, the size of
//! the corpus, its kind and its index. So no generator has state.

mod census;
mod cloud;
mod clusters;
mod document_writer;
mod layout;
mod namespaces;
mod people;
mod products;
mod prose;
mod random;
mod releases;
mod resources;
mod singletons;
mod tree;

pub use census::{Census, MIN_DATAFILES};
pub use tree::CorpusTree;

use layout::CorpusLayout;

/// The seed of the corpus of the published figures.
pub const DEFAULT_SEED: u64 = 20_250;

/// Generates a data repo with exactly `datafiles` documents and about four resources for every ten of them.
///
/// ```
/// let tree = qontract_benches::corpus::generate(200, 1);
/// assert_eq!(tree.under("data/").count(), 200);
/// ```
///
/// # Panics
///
/// If `datafiles` is less than [`MIN_DATAFILES`], which is needed for one document of every kind.
pub fn generate(datafiles: usize, seed: u64) -> CorpusTree {
    let world = CorpusLayout::new(Census::of(datafiles), seed);
    let mut tree = CorpusTree::default();
    singletons::write(&world, &mut tree);
    products::write(&world, &mut tree);
    clusters::write(&world, &mut tree);
    cloud::write(&world, &mut tree);
    people::write(&world, &mut tree);
    namespaces::write(&world, &mut tree);
    releases::write(&world, &mut tree);
    resources::write(&world, &mut tree);
    tree
}

#[cfg(test)]
mod tests;
