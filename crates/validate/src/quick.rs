//! Fast path of the link rules: decides whether all links are valid, without collecting findings.
//!
//! Nearly all data is valid. This checks the same links as [`references`] and
//! [`unique`](crate::rules::unique), but allocates nothing that only a finding needs, and compares hashes of
//! unique values. **Invariant:** if it reports valid links, those rules find nothing. If it does not, those
//! rules decide: a hash collision is not a finding.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::fast::FixedState;
use qontract_bundle::walk::{At, Step, Visitor};
use qontract_bundle::{Datafile, Sha256, Value};
use rayon::prelude::*;

use crate::Context;
use crate::known::{Linked, Unique};
use crate::links::{self, Leaf, Reader, Said};
use crate::rules::references;

/// The seed of the hashes. It is the same in all processes, since hashes are cached on disk.
const SEED: u64 = 0x6c69_6e6b_735f_6f6b;

/// Datafiles whose links are valid (`None` if that came from the cache), and newly found paths of files on
/// whose content links depend.
type Right = (Vec<(Sha256, Option<Linked>)>, Vec<Box<str>>);

/// A datafile whose links are valid, by the cache or by a check.
enum File<'k> {
    Known(&'k Unique),
    New(Linked, Vec<Box<str>>),
}

/// The results to cache, if the links of all datafiles are valid; `None` otherwise.
pub fn all_right(cx: &Context<'_>) -> Option<Right> {
    let files = cx.bundle.datafiles().par_iter().map(|file| {
        let digest = file.document.digest;
        match cx.known.linked(digest) {
            Some(unique) => Some((digest, File::Known(unique))),
            None => look(cx, file).map(|(linked, wanted)| (digest, File::New(linked, wanted))),
        }
    });
    let files: Vec<(Sha256, File<'_>)> = files.collect::<Option<_>>()?;
    let unique = files.iter().flat_map(|(_, file)| match file {
        File::Known(unique) => unique.iter().copied(),
        File::New(linked, _) => linked.unique.iter().copied(),
    });
    let mut unique: Vec<u64> = unique.collect();
    unique.par_sort_unstable();
    let (files, wanted): (Vec<_>, Vec<_>) = files
        .into_iter()
        .map(|(digest, file)| match file {
            File::Known(_) => ((digest, None), Vec::new()),
            File::New(linked, wanted) => ((digest, Some(linked)), wanted),
        })
        .unzip();
    are_different(&unique).then(|| (files, wanted.into_iter().flatten().collect()))
}

/// Checks the links of one datafile. Returns the result to cache and the paths of files on whose content the
/// links depend; `None` if a link is broken.
fn look<'b>(cx: &Context<'b>, file: &'b Datafile) -> Option<(Linked, Vec<Box<str>>)> {
    let reader = Reader { bundle: cx.bundle, types: cx.types };
    let hasher = FixedState::with_seed(SEED);
    let mut checker =
        Look { cx, reader, hasher, unique: Vec::new(), items: Vec::new(), wrong: false, wanted: Vec::new() };
    links::walk(file, cx.guide, cx.types, &mut checker);
    checker.items.sort_unstable();
    let linked = Linked { unique: checker.unique.into(), lasts: checker.wanted.is_empty() };
    (!checker.wrong && are_different(&checker.items)).then_some((linked, checker.wanted))
}

fn are_different(sorted: &[u64]) -> bool {
    sorted.is_sorted_by(|one, next| one < next)
}

struct Look<'a, 'b> {
    cx: &'a Context<'b>,
    reader: Reader<'b>,
    hasher: FixedState,
    unique: Vec<u64>,
    /// Hashes of list and identifier of each list item.
    items: Vec<u64>,
    wrong: bool,
    /// The paths of files on whose content the links depend.
    wanted: Vec<Box<str>>,
}

impl<'b> Visitor<'b, 'b, &'b Value, &'b Value> for Look<'_, 'b> {
    fn leaf(&mut self, leaf: Leaf<'_, 'b>, parent: Option<At<'b, &'b Value>>) {
        let within = leaf.at.schema_path.unwrap_or_default();
        self.reader.leaf(&leaf, parent, &mut |fact| match fact {
            Said::Resource(resource) => self.wrong |= self.cx.bundle.resource(resource).is_none(),
            Said::Reference(reference) => {
                self.wrong |= references::broken(self.cx, reference, within).is_some();
                // An inline `$schemaRef` is checked against the whole content of the target.
                if reference.expects.is_some_and(|expects| expects.as_str().is_none()) {
                    self.wanted.push(reference.to.as_str().unwrap_or_default().into());
                }
            }
            Said::Unique { type_name, field, value } => {
                let mut hash = self.hasher.build_hasher();
                (type_name, field).hash(&mut hash);
                match value {
                    Value::Str(text) => text.hash(&mut hash),
                    other => links::text(other).hash(&mut hash),
                }
                self.unique.push(hash.finish());
            }
            Said::Item { identifier, .. } => {
                let [list @ .., _, _] = leaf.path else { return };
                let mut hash = self.hasher.build_hasher();
                identifier.hash(&mut hash);
                for step in list {
                    match step {
                        Step::Key(key) => key.hash(&mut hash),
                        Step::Index(index) => index.hash(&mut hash),
                    }
                }
                self.items.push(hash.finish());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::unique;
    use crate::schema::{Checker, Formats};
    use qontract_bundle::types::Types;
    use qontract_bundle::{Layout, Pool, Repo, Stamp, build, load};
    use std::collections::BTreeSet;

    /// Whether the fast path accepts all links, and the number of findings of the rules.
    fn fast_path_and_findings(bundle: &serde_json::Value) -> (bool, usize) {
        let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).expect("a bundle");
        let (types, guide) = (Types::read(&bundle.graphql().value), crate::guide(&bundle));
        let (checker, layout, unread) =
            (Checker::new(&bundle, Formats::default()), Layout::default(), BTreeSet::new());
        let (layout, bundle, types) = (&layout, &bundle, &types);
        let (checker, unread, known) = (&checker, &unread, &crate::Known::default());
        let cx = Context { bundle, types, guide: &guide, layout, checker, unread, known };
        let links = cx.links();
        let found = references::check(&cx, &links).len() + unique::check(&cx, &links).len();
        (all_right(&cx).is_some(), found)
    }

    /// The pointers of all texts and lists below a value.
    fn parts(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    parts(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
                }
            }
            serde_json::Value::Array(items) => {
                found.push(at.to_owned());
                for (index, item) in items.iter().enumerate() {
                    parts(item, &format!("{at}/{index}"), found);
                }
            }
            serde_json::Value::String(_) => found.push(at.to_owned()),
            _ => {}
        }
    }

    #[test]
    fn links_that_the_fast_path_accepts_have_no_findings() {
        let repo = Repo::directory(qontract_testkit::example(), Layout::default());
        let bundle =
            build(&repo, Stamp::default(), &Pool::default()).expect("a repo").built.expect("a bundle");
        let bundle: serde_json::Value = serde_json::from_slice(&bundle.to_vec()).expect("JSON");
        assert_eq!(fast_path_and_findings(&bundle), (true, 0));
        let mut all = Vec::new();
        parts(&bundle["data"], "/data", &mut all);
        let texts: Vec<&str> = all.iter().filter_map(|at| bundle.pointer(at)?.as_str()).collect();
        let mut wrong = 0;
        for (number, at) in all.iter().enumerate().step_by(29) {
            let mut changed = bundle.clone();
            match changed.pointer_mut(at).expect("a part") {
                // Repeat an item, or use another text of the data.
                serde_json::Value::Array(items) => items.extend(items.first().cloned()),
                text => *text = texts[(number * 31) % texts.len()].into(),
            }
            let (right, found) = fast_path_and_findings(&changed);
            assert!(!right || found == 0, "{at}: {found} findings");
            wrong += usize::from(!right);
        }
        assert!(wrong > 5, "only {wrong} changes broke a link");
    }
}
