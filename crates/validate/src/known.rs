//! What was found to be right before, and need not be looked at again.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use qontract_bundle::{Bundle, Sha256};

use crate::Options;
use crate::schema::Formats;

/// What is known of documents and resources, by digest.
///
/// **Invariant:** whoever knows it finds what somebody finds who does not: it is known only together with the schemas, the types and the
/// files that it was found out with.
#[derive(Debug, Default)]
pub struct Known {
    ground: Option<Sha256>,
    /// Those that keep their schemas.
    fit: HashSet<Sha256, RandomState>,
    links: Links,
}

/// Datafiles whose links are right.
#[derive(Debug, Default)]
struct Links {
    /// What tells whether links are right, besides those who have them: the files that they can lead to.
    ground: Option<Sha256>,
    right: HashMap<Sha256, Unique, RandomState>,
}

/// Hashes of the values in a datafile that must be the only ones.
pub(crate) type Unique = Box<[u64]>;

/// What a check found to be right.
#[derive(Default)]
pub(crate) struct Right {
    /// Documents and resources that keep their schemas.
    pub fit: Vec<Sha256>,
    /// Datafiles whose links are right.
    pub linked: Vec<(Sha256, Unique)>,
}

impl Known {
    /// Forgets everything that was found out with other schemas, types or files, or in another way.
    pub(crate) fn stand_on(&mut self, bundle: &Bundle, options: &Options) {
        let formats: &[u8] = match options.formats {
            Formats::Ignored => b"ignored",
            Formats::Enforced => b"enforced",
        };
        let types = bundle.graphql().digest;
        let schemas = bundle.schemas().iter();
        let schemas = schemas.flat_map(|file| [file.path.as_bytes(), b"\0", file.document.digest.as_bytes()]);
        // What refers to files that could not be read is not told, and not right either.
        let unread = options.unread.iter().flat_map(|file| [file.as_bytes(), b"\0"]);
        let ground = [formats, b"\0", types.as_bytes()].into_iter().chain(schemas).chain([b"\0".as_slice()]);
        let ground = Sha256::of_parts(ground.chain(unread));
        if self.ground != Some(ground) {
            *self = Self { ground: Some(ground), ..Self::default() };
        }
        let files = bundle.datafiles().iter().flat_map(|file| {
            let value = &file.document.value;
            let text =
                |key: &str| value.get(key).and_then(|value| value.as_str()).unwrap_or_default().as_bytes();
            [file.path.as_bytes(), b"\0", text("$schema"), b"\0", text("__identifier"), b"\0"]
        });
        let resources = bundle.resources().iter().flat_map(|file| [file.path.as_bytes(), b"\0"]);
        let ground = Sha256::of_parts(files.chain([b"\0".as_slice()]).chain(resources));
        if self.links.ground != Some(ground) {
            self.links = Links { ground: Some(ground), ..Links::default() };
        }
    }

    /// Whether it is known to keep its schema.
    pub(crate) fn fits(&self, digest: Sha256) -> bool {
        self.fit.contains(&digest)
    }

    /// The unique values of a datafile whose links are known to be right.
    pub(crate) fn linked(&self, digest: Sha256) -> Option<&Unique> {
        self.links.right.get(&digest)
    }

    /// Remembers what is right now, and nothing else.
    pub(crate) fn replace(&mut self, right: Right) {
        self.fit.clear();
        self.fit.extend(right.fit);
        self.links.right.clear();
        self.links.right.extend(right.linked);
    }

    /// How much is known.
    pub fn len(&self) -> usize {
        self.fit.len() + self.links.right.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it was found out with: the same knowledge of other schemas or files is another one.
    pub fn grounds(&self) -> [Option<Sha256>; 2] {
        [self.ground, self.links.ground]
    }

    /// All of it, to be kept; `by` names the program, as another one may check otherwise.
    pub fn to_bytes(&self, by: &str) -> Vec<u8> {
        let mut bytes = Sha256::of(by.as_bytes()).as_bytes().to_vec();
        for ground in [self.ground, self.links.ground] {
            bytes.extend_from_slice(ground.unwrap_or_else(|| Sha256::of(b"")).as_bytes());
        }
        bytes.extend_from_slice(&(self.fit.len() as u64).to_le_bytes());
        // In order: the same knowledge has the same bytes.
        let mut fit: Vec<&Sha256> = self.fit.iter().collect();
        fit.sort_unstable();
        for digest in fit {
            bytes.extend_from_slice(digest.as_bytes());
        }
        let mut linked: Vec<(&Sha256, &Unique)> = self.links.right.iter().collect();
        linked.sort_unstable();
        for (digest, unique) in linked {
            bytes.extend_from_slice(digest.as_bytes());
            bytes.extend_from_slice(&(unique.len() as u64).to_le_bytes());
            bytes.extend(unique.iter().flat_map(|hash| hash.to_le_bytes()));
        }
        [Sha256::of(&bytes).as_bytes(), bytes.as_slice()].concat()
    }

    /// What was kept by the same program, if it is whole.
    pub fn from_bytes(bytes: &[u8], by: &str) -> Option<Self> {
        let (sum, mut rest) = bytes.split_first_chunk::<32>()?;
        if Sha256::of(rest).as_bytes() != sum {
            return None;
        }
        if digest(&mut rest)? != Sha256::of(by.as_bytes()) {
            return None;
        }
        let (ground, of_links) = (digest(&mut rest)?, digest(&mut rest)?);
        let fit = (0..number(&mut rest)?).map(|_| digest(&mut rest)).collect::<Option<_>>()?;
        let mut links = Links { ground: Some(of_links), ..Links::default() };
        while !rest.is_empty() {
            let document = digest(&mut rest)?;
            let unique = (0..number(&mut rest)?).map(|_| number(&mut rest)).collect::<Option<_>>()?;
            links.right.insert(document, unique);
        }
        Some(Self { ground: Some(ground), fit, links })
    }
}

fn digest(rest: &mut &[u8]) -> Option<Sha256> {
    let (digest, after) = rest.split_first_chunk::<32>()?;
    *rest = after;
    Some(Sha256::from_bytes(*digest))
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_if_it_is_whole() {
        let digest = |text: &str| Sha256::of(text.as_bytes());
        let links = Links { ground: Some(digest("files")), ..Links::default() };
        let mut known = Known { ground: Some(digest("ground")), links, ..Known::default() };
        let linked = vec![(digest("a"), Box::from([1, u64::MAX])), (digest("c"), Box::from([]))];
        known.replace(Right { fit: vec![digest("a"), digest("b")], linked });
        let bytes = known.to_bytes("one");
        assert!(Known::from_bytes(&bytes, "another").is_none());
        let again = Known::from_bytes(&bytes, "one").expect("whole");
        assert_eq!((again.ground, &again.fit), (known.ground, &known.fit));
        assert_eq!((again.links.ground, &again.links.right), (known.links.ground, &known.links.right));
        for end in [0, 31, 32, 64, bytes.len() - 32, bytes.len() - 1] {
            assert!(Known::from_bytes(&bytes[..end], "one").is_none(), "{end}");
        }
        let mut changed = bytes;
        changed[40] ^= 1;
        assert!(Known::from_bytes(&changed, "one").is_none());
    }
}
