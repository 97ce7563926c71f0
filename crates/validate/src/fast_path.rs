//! Fast path of the link rules: decides whether all links are valid, without collecting findings.
//!
//! Nearly all data is valid. The fast path checks the same links as [`references`] and
//! [`unique`](crate::rules::unique), but does not allocate data that only findings need, and compares hashes
//! of unique values. **Invariant:** if the fast path reports that all links are valid, those rules find
//! nothing. Otherwise those rules decide, because a hash collision is not a finding.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::fast::FixedState;
use qontract_bundle::walk::{PathSegment, Visitor, WalkPosition};
use qontract_bundle::{Datafile, Sha256, Value};
use rayon::prelude::*;

use crate::Context;
use crate::cache::{LinkedFile, UniqueHashes, ValidFile};
use crate::links::{self, Leaf, LeafFact, LeafReader};
use crate::rules::references;

/// The seed of the hashes. All processes use the same seed, because hashes are cached on disk.
const HASH_SEED: u64 = 0x6c69_6e6b_735f_6f6b;

/// The results to cache if all links are valid.
#[derive(Default)]
pub struct ValidLinks {
    /// The datafiles.
    pub files: Vec<ValidFile>,
    /// Newly found paths of files on whose content links depend.
    pub content_targets: Vec<Box<str>>,
}

/// A datafile whose links are valid according to the cache or to a check.
enum LinkState<'k> {
    Cached(&'k UniqueHashes),
    Checked(CheckedFile),
}

/// The check result of a datafile, and the paths of files on whose content its links depend.
struct CheckedFile {
    linked: LinkedFile,
    content_targets: Vec<Box<str>>,
}

/// The results to cache, if the links of all datafiles are valid; `None` otherwise.
pub fn valid_links(cx: &Context<'_>) -> Option<ValidLinks> {
    let files = cx.bundle.datafiles().par_iter().map(|file| {
        let digest = file.document.digest;
        match cx.cache.unique_hashes(digest) {
            Some(unique) => Some((digest, LinkState::Cached(unique))),
            None => check_file(cx, file).map(|checked| (digest, LinkState::Checked(checked))),
        }
    });
    let files: Vec<(Sha256, LinkState<'_>)> = files.collect::<Option<_>>()?;
    let unique = files.iter().flat_map(|(_, file)| match file {
        LinkState::Cached(unique) => unique.iter().copied(),
        LinkState::Checked(checked) => checked.linked.unique.iter().copied(),
    });
    let mut unique: Vec<u64> = unique.collect();
    unique.par_sort_unstable();
    if !are_distinct(&unique) {
        return None;
    }
    let mut valid = ValidLinks::default();
    for (digest, file) in files {
        let linked = match file {
            LinkState::Cached(_) => None,
            LinkState::Checked(checked) => {
                valid.content_targets.extend(checked.content_targets);
                Some(checked.linked)
            }
        };
        valid.files.push(ValidFile { digest, linked });
    }
    Some(valid)
}

/// Checks the links of one datafile. `None` if a link is broken.
fn check_file<'b>(cx: &Context<'b>, file: &'b Datafile) -> Option<CheckedFile> {
    let reader = LeafReader { bundle: cx.bundle, types: cx.types };
    let hasher = FixedState::with_seed(HASH_SEED);
    let mut checker = LinkChecker {
        cx,
        reader,
        hasher,
        unique: Vec::new(),
        items: Vec::new(),
        is_broken: false,
        content_targets: Vec::new(),
    };
    links::walk(file, cx.schema_index, cx.types, &mut checker);
    checker.items.sort_unstable();
    let linked = LinkedFile { unique: checker.unique.into(), is_stable: checker.content_targets.is_empty() };
    let content_targets = checker.content_targets;
    (!checker.is_broken && are_distinct(&checker.items)).then_some(CheckedFile { linked, content_targets })
}

fn are_distinct(sorted: &[u64]) -> bool {
    sorted.is_sorted_by(|one, next| one < next)
}

struct LinkChecker<'a, 'b> {
    cx: &'a Context<'b>,
    reader: LeafReader<'b>,
    hasher: FixedState,
    unique: Vec<u64>,
    /// For each list item, a hash of the path of its list and of its identifier.
    items: Vec<u64>,
    is_broken: bool,
    /// The paths of files on whose content the links depend.
    content_targets: Vec<Box<str>>,
}

impl<'b> Visitor<'b, 'b, &'b Value, &'b Value> for LinkChecker<'_, 'b> {
    fn leaf(&mut self, leaf: Leaf<'_, 'b>, parent: Option<WalkPosition<'b, &'b Value>>) {
        let within = leaf.at.schema_path.unwrap_or_default();
        self.reader.facts(&leaf, parent, &mut |fact| match fact {
            LeafFact::Resource(resource) => self.is_broken |= self.cx.bundle.resource(resource).is_none(),
            LeafFact::Reference(reference) => {
                self.is_broken |= references::check_reference(self.cx, reference, within).is_some();
                // An inline `$schemaRef` is checked against the whole content of the target.
                if reference.expects.is_some_and(|expects| expects.as_str().is_none()) {
                    self.content_targets.push(reference.to.as_str().unwrap_or_default().into());
                }
            }
            LeafFact::Unique { type_name, field, value } => {
                let mut hash = self.hasher.build_hasher();
                (type_name, field).hash(&mut hash);
                match value {
                    Value::Str(text) => text.hash(&mut hash),
                    other => links::text(other).hash(&mut hash),
                }
                self.unique.push(hash.finish());
            }
            LeafFact::Item { identifier, .. } => {
                let [list @ .., _, _] = leaf.path else { return };
                let mut hash = self.hasher.build_hasher();
                identifier.hash(&mut hash);
                for step in list {
                    match step {
                        PathSegment::Key(key) => key.hash(&mut hash),
                        PathSegment::Index(index) => index.hash(&mut hash),
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
    use crate::schema::{Formats, SchemaChecker};
    use qontract_bundle::types::Types;
    use qontract_bundle::{CommitStamp, Layout, Pool, Repo, build, load};
    use std::collections::BTreeSet;

    /// Whether the fast path accepts all links, and the number of findings of the rules.
    fn fast_path_and_findings(bundle: &serde_json::Value) -> (bool, usize) {
        let bundle = load(bundle.to_string().as_bytes(), &Pool::default()).expect("a bundle");
        let (types, schema_index) = (Types::read(&bundle.graphql().value), crate::schema_index(&bundle));
        let (checker, layout, unread) =
            (SchemaChecker::new(&bundle, Formats::default()), Layout::default(), BTreeSet::new());
        let (layout, bundle, types) = (&layout, &bundle, &types);
        let (checker, unread, cache) = (&checker, &unread, &crate::ValidationCache::default());
        let cx = Context { bundle, types, schema_index: &schema_index, layout, checker, unread, cache };
        let links = cx.links();
        let found = references::check(&cx, &links).len() + unique::check(&cx, &links).len();
        (valid_links(&cx).is_some(), found)
    }

    /// The pointers of all strings and lists below a value.
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
            build(&repo, CommitStamp::default(), &Pool::default()).expect("a repo").built.expect("a bundle");
        let bundle: serde_json::Value = serde_json::from_slice(&bundle.to_vec()).expect("JSON");
        assert_eq!(fast_path_and_findings(&bundle), (true, 0));
        let mut all = Vec::new();
        parts(&bundle["data"], "/data", &mut all);
        let texts: Vec<&str> = all.iter().filter_map(|at| bundle.pointer(at)?.as_str()).collect();
        let mut wrong = 0;
        for (number, at) in all.iter().enumerate().step_by(29) {
            let mut changed = bundle.clone();
            match changed.pointer_mut(at).expect("a part") {
                // Repeats an item, or uses another string of the data.
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
