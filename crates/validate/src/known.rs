//! What was found to be right before, and need not be looked at again.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use qontract_bundle::{Bundle, Sha256};

use crate::Options;
use crate::schema::Formats;

/// Documents and resources that keep their schemas, by digest.
///
/// **Invariant:** whoever knows them finds what somebody finds who does not: a document is known only together with the schemas and
/// types that it was checked against.
#[derive(Debug, Default)]
pub struct Known {
    ground: Option<Sha256>,
    right: HashSet<Sha256, RandomState>,
}

impl Known {
    /// Forgets everything that was checked against other schemas, or in another way.
    pub(crate) fn stand_on(&mut self, bundle: &Bundle, options: &Options) {
        let formats: &[u8] = match options.formats {
            Formats::Ignored => b"ignored",
            Formats::Enforced => b"enforced",
        };
        let types = bundle.graphql().digest;
        let schemas = bundle.schemas().iter();
        let schemas = schemas.flat_map(|file| [file.path.as_bytes(), b"\0", file.document.digest.as_bytes()]);
        let ground = Sha256::of_parts([formats, types.as_bytes()].into_iter().chain(schemas));
        if self.ground != Some(ground) {
            *self = Self { ground: Some(ground), right: HashSet::default() };
        }
    }

    /// Whether it is known to be right.
    pub(crate) fn has(&self, digest: Sha256) -> bool {
        self.right.contains(&digest)
    }

    /// Remembers what is right now, and nothing else.
    pub(crate) fn replace(&mut self, right: impl IntoIterator<Item = Sha256>) {
        self.right.clear();
        self.right.extend(right);
    }
}
