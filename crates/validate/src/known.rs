//! What was found to be right before, and need not be looked at again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use qontract_bundle::{Bundle, Datafile, Sha256};

use crate::Options;
use crate::schema::Formats;

/// What is known of documents and resources, by digest.
///
/// **Invariant:** whoever knows it finds what somebody finds who does not: it is known only together with the schemas, the types and the
/// files that it was found out with.
#[derive(Debug, Default)]
pub struct Known {
    /// What it was found out with.
    last: Option<(Bundle, Options)>,
    /// A digest of that.
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
    /// Those that are right as long as none of the files changes that they want more of than that it is there.
    fleeting: HashMap<Sha256, Unique, RandomState>,
    /// The paths of those files.
    wanted: HashSet<Box<str>, RandomState>,
}

/// Hashes of the values in a datafile that must be the only ones.
pub(crate) type Unique = Box<[u64]>;

/// What a check found to be right.
#[derive(Default)]
pub(crate) struct Right {
    /// Documents and resources that keep their schemas.
    pub fit: Vec<Sha256>,
    /// Datafiles whose links are right.
    pub linked: Vec<(Sha256, Linked)>,
    /// Paths that were newly found to be wanted more of than that they are there.
    pub wanted: Vec<Box<str>>,
}

/// A datafile whose links are right.
#[derive(Clone)]
pub(crate) struct Linked {
    pub unique: Unique,
    /// Whether they stay right for as long as there are the same files of the same kinds.
    pub lasts: bool,
}

impl Links {
    fn forget_fleeting(&mut self) {
        self.fleeting.clear();
        self.wanted.clear();
    }
}

impl Known {
    /// Forgets everything that was found out with other schemas, types or files, or in another way.
    pub(crate) fn stand_on(&mut self, bundle: &Bundle, options: &Options) {
        match self.changed(bundle, options) {
            Some(changed) if !changed.iter().any(|path| self.links.wanted.contains(*path)) => {}
            stays => {
                self.links.forget_fleeting();
                if stays.is_none() {
                    self.move_to(bundle, options);
                }
            }
        }
        self.last = Some((bundle.clone(), options.clone()));
    }

    /// The datafiles that say something else, if it surely was found out with the same schemas, types and files.
    fn changed<'b>(&self, bundle: &'b Bundle, options: &Options) -> Option<Vec<&'b str>> {
        let (last, before) = self.last.as_ref()?;
        let is_same = |(a, b): &(&Datafile, &Datafile)| Arc::ptr_eq(&a.document, &b.document);
        let stands = (options.formats, &options.unread) == (before.formats, &before.unread)
            && bundle.has_paths_of(last)
            && Arc::ptr_eq(bundle.graphql(), last.graphql())
            && bundle.schemas().iter().zip(last.schemas()).all(|files| is_same(&files));
        let files = bundle.datafiles().iter().zip(last.datafiles());
        let changed = files.filter(|files| stands && !is_same(files)).map(|(a, b)| {
            let same = |key: &str| a.document.value.get(key) == b.document.value.get(key);
            (same("$schema") && same("__identifier")).then_some(&*a.path)
        });
        stands.then(|| changed.collect()).flatten()
    }

    fn move_to(&mut self, bundle: &Bundle, options: &Options) {
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
    pub(crate) fn linked(&self, digest: Sha256) -> Option<Linked> {
        let known =
            |all: &HashMap<_, Unique, _>, lasts| Some(Linked { unique: all.get(&digest)?.clone(), lasts });
        known(&self.links.right, true).or_else(|| known(&self.links.fleeting, false))
    }

    /// Remembers what is right now, and nothing else.
    pub(crate) fn replace(&mut self, right: Right) {
        self.fit.clear();
        self.fit.extend(right.fit);
        self.links.right.clear();
        self.links.fleeting.clear();
        for (digest, Linked { unique, lasts }) in right.linked {
            let known = if lasts { &mut self.links.right } else { &mut self.links.fleeting };
            known.insert(digest, unique);
        }
        self.links.wanted.extend(right.wanted);
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
        Some(Self { last: None, ground: Some(ground), fit, links })
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
        let linked = |unique: &[u64], lasts| Linked { unique: unique.into(), lasts };
        let linked = vec![
            (digest("a"), linked(&[1, u64::MAX], true)),
            (digest("c"), linked(&[], true)),
            (digest("d"), linked(&[7], false)),
        ];
        known.replace(Right { fit: vec![digest("a"), digest("b")], linked, wanted: Vec::new() });
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
