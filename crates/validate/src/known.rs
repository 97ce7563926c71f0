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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.right.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.right.is_empty()
    }

    /// All of it, to be kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let digests = self.ground.iter().chain(&self.right).flat_map(|digest| *digest.as_bytes());
        let digests: Vec<u8> = digests.collect();
        [Sha256::of(&digests).as_bytes(), digests.as_slice()].concat()
    }

    /// What was kept, if it is whole.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sum, digests) = bytes.split_first_chunk::<32>()?;
        let (digests, rest) = digests.as_chunks::<32>();
        let is_whole = rest.is_empty() && Sha256::of(digests.as_flattened()).as_bytes() == sum;
        let (ground, right) = digests.split_first().filter(|_| is_whole)?;
        let right = right.iter().map(|digest| Sha256::from_bytes(*digest)).collect();
        Some(Self { ground: Some(Sha256::from_bytes(*ground)), right })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_if_it_is_whole() {
        let digest = |text: &str| Sha256::of(text.as_bytes());
        let mut known = Known { ground: Some(digest("ground")), right: HashSet::default() };
        known.replace([digest("a"), digest("b")]);
        let bytes = known.to_bytes();
        let again = Known::from_bytes(&bytes).expect("whole");
        assert_eq!((again.ground, &again.right), (known.ground, &known.right));
        for end in [0, 31, 32, 64, bytes.len() - 32, bytes.len() - 1] {
            assert!(Known::from_bytes(&bytes[..end]).is_none(), "{end}");
        }
        let mut changed = bytes;
        changed[40] ^= 1;
        assert!(Known::from_bytes(&changed).is_none());
        assert!(Known::from_bytes(&Known::default().to_bytes()).is_none(), "nothing is nothing");
    }
}
