//! What was found to be right before, and need not be looked at again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use qontract_bundle::packed::{Packer, Unpacker};
use qontract_bundle::{Bundle, Datafile, Hasher, Sha256};
use rayon::prelude::*;

use crate::Options;
use crate::schema::Formats;

/// How many datafiles one task looks at.
const CHUNK: usize = 1024;

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
    /// What those files said, if another process found it out.
    told: Option<Sha256>,
}

/// Hashes of the values in a datafile that must be the only ones.
pub(crate) type Unique = Box<[u64]>;

/// What a check found to be right.
#[derive(Default)]
pub(crate) struct Right {
    /// Documents and resources that keep their schemas.
    pub fit: Vec<Sha256>,
    /// Datafiles whose links are right; nothing more of those that were known.
    pub linked: Vec<(Sha256, Option<Linked>)>,
    /// Paths that were newly found to be wanted more of than that they are there.
    pub wanted: Vec<Box<str>>,
}

/// A datafile whose links are right.
pub(crate) struct Linked {
    pub unique: Unique,
    /// Whether they stay right for as long as there are the same files of the same kinds.
    pub lasts: bool,
}

/// In order: the same knowledge has the same bytes.
fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// What others may ask of a datafile besides that it is there: its schema and its identifier.
fn kind(file: &Datafile) -> [Option<String>; 2] {
    file.document.value.texts(["$schema", "__identifier"])
}

impl Links {
    fn forget_fleeting(&mut self) {
        self.fleeting.clear();
        self.wanted.clear();
    }

    /// What the files say that others want more of than that they are there.
    fn wanted_in(&self, bundle: &Bundle) -> Sha256 {
        let mut said = Hasher::default();
        for path in sorted(&self.wanted) {
            let digest = bundle.datafile(path).map(|document| document.digest);
            said.update(path.as_bytes());
            said.update(b"\0");
            said.update(digest.as_ref().map_or(&[], |digest| digest.as_bytes().as_slice()));
        }
        said.finish()
    }
}

impl Known {
    /// Forgets everything that was found out with other schemas, types or files, or in another way.
    pub(crate) fn stand_on(&mut self, bundle: &Bundle, options: &Options) {
        match self.changed(bundle, options) {
            Some(changed) if !changed.iter().any(|path| self.links.wanted.contains(*path)) => {}
            stays => {
                if self.links.told.take() != Some(self.links.wanted_in(bundle)) {
                    self.links.forget_fleeting();
                }
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
            && bundle.schemas().len() == last.schemas().len()
            && bundle.schemas().iter().zip(last.schemas()).all(|files| is_same(&files));
        let files = bundle.datafiles().iter().zip(last.datafiles());
        let changed = files
            .filter(|files| stands && !is_same(files))
            .map(|(a, b)| (kind(a) == kind(b)).then_some(&*a.path));
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
        let files = bundle.datafiles().par_chunks(CHUNK).map(|files| {
            let mut sum = Hasher::default();
            for file in files {
                let [schema, identifier] = kind(file).map(Option::unwrap_or_default);
                for text in [&*file.path, &*schema, &*identifier] {
                    sum.update(text.as_bytes());
                    sum.update(b"\0");
                }
            }
            sum.finish()
        });
        let files: Vec<Sha256> = files.collect();
        let resources = bundle.resources().iter().flat_map(|file| [file.path.as_bytes(), b"\0"]);
        let files = files.iter().map(|sum| sum.as_bytes().as_slice());
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
        self.links.right.get(&digest).or_else(|| self.links.fleeting.get(&digest))
    }

    /// Remembers what is right now, and nothing else.
    pub(crate) fn replace(&mut self, right: Right) {
        // Mostly it is what it was.
        if right.fit.len() != self.fit.len() || !right.fit.iter().all(|digest| self.fit.contains(digest)) {
            self.fit = right.fit.into_iter().collect();
        }
        let Links { right: lasting, fleeting, wanted, .. } = &mut self.links;
        wanted.extend(right.wanted);
        let is_known = right.linked.iter().all(|(_, linked)| linked.is_none());
        if is_known && right.linked.len() == lasting.len() + fleeting.len() {
            return;
        }
        let (mut was_lasting, mut was_fleeting) = (std::mem::take(lasting), std::mem::take(fleeting));
        for (digest, linked) in right.linked {
            let (unique, lasts) = match linked {
                Some(Linked { unique, lasts }) => (Some(unique), lasts),
                None => match was_lasting.remove(&digest) {
                    Some(unique) => (Some(unique), true),
                    None => (was_fleeting.remove(&digest), false),
                },
            };
            // What is there twice was moved before.
            let known = if lasts { &mut *lasting } else { &mut *fleeting };
            unique.and_then(|unique| known.insert(digest, unique));
        }
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
        let mut packer = Packer::default();
        for ground in [self.ground, self.links.ground] {
            packer.digest(ground.unwrap_or_else(|| Sha256::of(b"")));
        }
        packer.list(sorted(&self.fit).into_iter(), |packer, digest| packer.digest(*digest));
        for linked in [&self.links.right, &self.links.fleeting] {
            packer.list(sorted(linked).into_iter(), |packer, (digest, unique)| {
                packer.digest(*digest);
                packer.list(unique.iter(), |packer, hash| packer.number(*hash));
            });
        }
        packer.list(sorted(&self.links.wanted).into_iter(), |packer, path| packer.text(path));
        let told = self.last.as_ref().map(|(bundle, _)| self.links.wanted_in(bundle));
        packer.option(told, Packer::digest);
        packer.sealed(by)
    }

    /// What was kept by the same program, if it is whole.
    pub fn from_bytes(bytes: &[u8], by: &str) -> Option<Self> {
        let mut kept = Unpacker::open(bytes, by)?;
        let (ground, of_links) = (kept.digest()?, kept.digest()?);
        let fit = kept.list(Unpacker::digest)?;
        let mut linked = || kept.list(|kept| Some((kept.digest()?, kept.list(Unpacker::number)?)));
        let (right, fleeting) = (linked()?, linked()?);
        let wanted = kept.list(|kept| kept.text().map(Into::into))?;
        let told = kept.option(Unpacker::digest)?;
        let links = Links { ground: Some(of_links), right, fleeting, wanted, told };
        Some(Self { last: None, ground: Some(ground), fit, links })
    }
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
            (digest("a"), Some(linked(&[1, u64::MAX], true))),
            (digest("c"), Some(linked(&[], true))),
            (digest("d"), Some(linked(&[7], false))),
        ];
        known.replace(Right { fit: vec![digest("a"), digest("b")], linked, wanted: Vec::new() });
        let bytes = known.to_bytes("one");
        assert!(Known::from_bytes(&bytes, "another").is_none());
        let again = Known::from_bytes(&bytes, "one").expect("whole");
        assert_eq!((again.ground, &again.fit), (known.ground, &known.fit));
        assert_eq!((again.links.ground, &again.links.right), (known.links.ground, &known.links.right));
        assert_eq!(again.links.fleeting, known.links.fleeting);
        for end in [0, 31, 32, 64, bytes.len() - 32, bytes.len() - 1] {
            assert!(Known::from_bytes(&bytes[..end], "one").is_none(), "{end}");
        }
        let mut changed = bytes;
        changed[40] ^= 1;
        assert!(Known::from_bytes(&changed, "one").is_none());
    }
}
