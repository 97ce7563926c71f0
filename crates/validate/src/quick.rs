//! Whether links are all right, without telling what is wrong with them.
//!
//! Nearly all data is: this looks at the same things as [`references`] and [`unique`](crate::rules::unique), and writes down nothing that
//! only a finding needs. **Invariant:** if it says yes, those rules find nothing; if it says no, they may find nothing all the same.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::fast::FixedState;
use qontract_bundle::walk::{At, Step, Visitor};
use qontract_bundle::{Datafile, Sha256, Value};
use rayon::prelude::*;

use crate::Context;
use crate::known::{Linked, Unique};
use crate::links::{self, Leaf, Reader, Said};
use crate::rules::references;

/// The same seed in all processes: what one finds out, the next one knows.
const SEED: u64 = 0x6c69_6e6b_735f_6f6b;

/// Datafiles whose links are right, nothing more of those that were known; and the paths of those that some want more of than that they
/// are there, as far as it was not known.
type Right = (Vec<(Sha256, Option<Linked>)>, Vec<Box<str>>);

/// A datafile whose links are right.
enum File<'k> {
    Known(&'k Unique),
    New(Linked, Vec<Box<str>>),
}

/// What is to be known of datafiles the next time, if no link of any of them is wrong.
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

/// What is known of a datafile whose links are right, and the paths that it wants more of than that they are there; nothing if a
/// link is wrong.
fn look<'b>(cx: &Context<'b>, file: &'b Datafile) -> Option<(Linked, Vec<Box<str>>)> {
    let reader = Reader { bundle: cx.bundle, types: cx.types };
    let hasher = FixedState::with_seed(SEED);
    let mut look =
        Look { cx, reader, hasher, unique: Vec::new(), items: Vec::new(), wrong: false, wanted: Vec::new() };
    links::walk(file, cx.guide, cx.types, &mut look);
    look.items.sort_unstable();
    let linked = Linked { unique: look.unique.into(), lasts: look.wanted.is_empty() };
    (!look.wrong && are_different(&look.items)).then_some((linked, look.wanted))
}

fn are_different(sorted: &[u64]) -> bool {
    sorted.is_sorted_by(|one, next| one < next)
}

struct Look<'a, 'b> {
    cx: &'a Context<'b>,
    reader: Reader<'b>,
    hasher: FixedState,
    unique: Vec<u64>,
    /// What tells the items of lists apart, with the list.
    items: Vec<u64>,
    wrong: bool,
    /// The paths of files that it wants more of than that they are there.
    wanted: Vec<Box<str>>,
}

impl<'b> Visitor<'b, 'b, &'b Value, &'b Value> for Look<'_, 'b> {
    fn leaf(&mut self, leaf: Leaf<'_, 'b>, parent: Option<At<'b, &'b Value>>) {
        let within = leaf.at.schema_path.unwrap_or_default();
        self.reader.leaf(&leaf, parent, &mut |said| match said {
            Said::Resource(resource) => self.wrong |= self.cx.bundle.resource(resource).is_none(),
            Said::Reference(reference) => {
                self.wrong |= references::broken(self.cx, reference, within).is_some();
                // What the target must look like depends on all that it says.
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

    /// Whether links are all right, and how much the rules find.
    fn looked_at(bundle: &serde_json::Value) -> (bool, usize) {
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

    /// Where every text and every list below a value is.
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
    fn what_is_all_right_has_no_findings() {
        let repo = Repo::directory(qontract_testkit::example(), Layout::default());
        let bundle =
            build(&repo, Stamp::default(), &Pool::default()).expect("a repo").built.expect("a bundle");
        let bundle: serde_json::Value = serde_json::from_slice(&bundle.to_vec()).expect("JSON");
        assert_eq!(looked_at(&bundle), (true, 0));
        let mut all = Vec::new();
        parts(&bundle["data"], "/data", &mut all);
        let texts: Vec<&str> = all.iter().filter_map(|at| bundle.pointer(at)?.as_str()).collect();
        let mut wrong = 0;
        for (number, at) in all.iter().enumerate().step_by(29) {
            let mut changed = bundle.clone();
            match changed.pointer_mut(at).expect("a part") {
                // An item again, or another text of the data.
                serde_json::Value::Array(items) => items.extend(items.first().cloned()),
                text => *text = texts[(number * 31) % texts.len()].into(),
            }
            let (right, found) = looked_at(&changed);
            assert!(!right || found == 0, "{at}: {found} findings");
            wrong += usize::from(!right);
        }
        assert!(wrong > 5, "only {wrong} changes did any harm");
    }
}
