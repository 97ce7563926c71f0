//! Detects renamed files: a removed and an added file with the same or similar content.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Change, Diff, fields};
use crate::model::{Document, Resource};
use crate::value::Value;

/// Maximum number of file pairs whose contents are compared to find renames.
const MAX_PAIRS: usize = 10_000;
/// Maximum number of line pairs that are compared to find renames, over all file pairs.
const MAX_LINE_PAIRS: usize = 50_000_000;
/// A removed and an added file are a rename if they have at least this share of their content in common.
const MIN_SIMILARITY: f64 = 0.6;
/// Files with larger strings are a rename only if these strings are equal.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The renamed files of a diff.
#[derive(Debug)]
pub struct Renames {
    /// The renamed datafiles.
    pub datafiles: RenamedFiles<Document>,
    /// The renamed resources.
    pub resources: RenamedFiles<Resource>,
}

/// A file before it was renamed.
#[derive(Debug)]
pub struct OldFile<T> {
    /// The path.
    pub path: String,
    /// The content.
    pub thing: Arc<T>,
    /// The content after the rename.
    pub renamed: Arc<T>,
}

/// Files that were renamed, by their paths.
#[derive(Debug)]
pub struct RenamedFiles<T> {
    new: BTreeMap<String, OldFile<T>>,
    old: BTreeSet<String>,
}

impl<T> RenamedFiles<T> {
    /// Whether no file was renamed.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty()
    }

    /// The file at `new_path` before it was renamed, if it was.
    pub fn before(&self, new_path: &str) -> Option<&OldFile<T>> {
        self.new.get(new_path)
    }

    /// Whether the file at `old_path` was renamed.
    pub fn is_moved(&self, old_path: &str) -> bool {
        self.old.contains(old_path)
    }

    /// `None` if the file was not renamed; `Some(Some(old))` for the new path of a renamed file; `Some(None)`
    /// for its old path, which is shown under the new one.
    pub fn partner(&self, path: &str, change: &Change<Arc<T>>) -> Option<Option<&OldFile<T>>> {
        match change {
            Change::Added(_) => self.new.get(path).map(Some),
            Change::Removed(_) => self.old.contains(path).then_some(None),
            Change::Changed(..) => None,
        }
    }
}

/// Finds the renamed files. `similarity` is the share of lines that two strings have in common, from 0 to 1.
pub fn renames(diff: &Diff, similarity: impl Fn(&str, &str) -> f64) -> Renames {
    let datafiles = diff.datafiles.iter().map(|file| (&*file.path, &file.change));
    let resources = diff.resources.iter().map(|file| (&*file.path, &file.change));
    let left = Cell::new(MAX_LINE_PAIRS);
    Renames {
        datafiles: pair(
            datafiles,
            |old, new| content_digest(old) == content_digest(new) && old.schema() == new.schema(),
            |old, new| {
                if old.schema() == new.schema() { value_similarity(&old.value, &new.value) } else { 0.0 }
            },
        ),
        resources: pair(
            resources,
            |old, new| old.content == new.content,
            |old, new| {
                if old.content.len().max(new.content.len()) > MAX_TEXT_BYTES {
                    return 0.0;
                }
                let cost = old.content.lines().count().saturating_mul(new.content.lines().count());
                let Some(rest) = left.get().checked_sub(cost) else { return 0.0 };
                left.set(rest);
                similarity(&old.content, &new.content)
            },
        ),
    }
}

fn content_digest(document: &Document) -> Option<&str> {
    document.value.get("$file_sha256sum").and_then(Value::as_str)
}

/// A removed and an added file that may be a rename.
struct Candidate<'d, T> {
    score: f64,
    old_path: &'d str,
    new_path: &'d str,
    old: &'d Arc<T>,
    new: &'d Arc<T>,
}

/// Pairs removed files with added files: first the equal files, then the most similar files.
fn pair<'d, T: 'd>(
    changes: impl Iterator<Item = (&'d str, &'d Change<Arc<T>>)>,
    is_same: impl Fn(&T, &T) -> bool,
    likeness: impl Fn(&T, &T) -> f64,
) -> RenamedFiles<T> {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for (path, change) in changes {
        match change {
            Change::Removed(old) => removed.push((path, old)),
            Change::Added(new) => added.push((path, new)),
            Change::Changed(..) => {}
        }
    }
    let mut renamed = RenamedFiles { new: BTreeMap::new(), old: BTreeSet::new() };
    if removed.len().saturating_mul(added.len()) > MAX_PAIRS {
        return renamed;
    }
    let mut candidates = Vec::new();
    for (old_path, old) in &removed {
        for (new_path, new) in &added {
            let score = if is_same(old, new) { 2.0 } else { likeness(old, new) };
            if score >= MIN_SIMILARITY {
                candidates.push(Candidate { score, old_path, new_path, old, new });
            }
        }
    }
    candidates.sort_by(|one, other| {
        let paths = (one.old_path, one.new_path).cmp(&(other.old_path, other.new_path));
        other.score.total_cmp(&one.score).then(paths)
    });
    for Candidate { old_path, new_path, old, new, .. } in candidates {
        if !renamed.old.contains(old_path) && !renamed.new.contains_key(new_path) {
            renamed.old.insert(old_path.to_owned());
            let (thing, renamed_to) = (Arc::clone(old), Arc::clone(new));
            let old = OldFile { path: old_path.to_owned(), thing, renamed: renamed_to };
            renamed.new.insert(new_path.to_owned(), old);
        }
    }
    renamed
}

/// The share of values that two documents have in common.
fn value_similarity(old: &Value, new: &Value) -> f64 {
    let total = leaves(old).max(leaves(new));
    let changed: usize = fields(old, new)
        .iter()
        .map(|field| {
            let size = |value: Option<&&Value>| value.map_or(0, |value| leaves(value));
            size(field.change.before()).max(size(field.change.after()))
        })
        .sum();
    share(total.saturating_sub(changed), total)
}

#[expect(clippy::cast_precision_loss, reason = "documents are far smaller than what a float counts exactly")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Number of scalars in a value; an empty list or map counts as one.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Map(map) => map.iter().map(|(_, value)| leaves(value)).sum::<usize>().max(1),
        Value::List(list) => list.iter().map(leaves).sum::<usize>().max(1),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(removed: &[&str], added: &[&str], expect: &[(&str, &str)]) {
        let thing = |text: &&str| ((*text).to_owned(), Arc::new((*text).to_owned()));
        let changes =
            removed.iter().map(thing).map(|(path, one)| (format!("old {path}"), Change::Removed(one))).chain(
                added.iter().map(thing).map(|(path, one)| (format!("new {path}"), Change::Added(one))),
            );
        let changes: Vec<_> = changes.collect();
        let found = pair(
            changes.iter().map(|(path, change)| (path.as_str(), change)),
            |old, new| old == new,
            |old, new| {
                let common = old.chars().zip(new.chars()).filter(|(old, new)| old == new).count();
                share(common, old.len().max(new.len()))
            },
        );
        let pairs: Vec<(String, String)> =
            found.new.iter().map(|(new, old)| (old.path.clone(), new.clone())).collect();
        let expect: Vec<(String, String)> =
            expect.iter().map(|(old, new)| (format!("old {old}"), format!("new {new}"))).collect();
        assert_eq!(pairs, expect);
        assert_eq!(found.old.len(), expect.len());
    }

    #[test]
    fn files_with_equal_or_similar_content_are_renames() {
        check(&["aaaaa"], &["aaaaa"], &[("aaaaa", "aaaaa")]);
        check(&["aaabb"], &["aaacc"], &[("aaabb", "aaacc")]);
        check(&["aabbb"], &["aaccc"], &[]);
        check(&[], &["aaaaa"], &[]);
        // Equal files are paired first, and each file only once.
        check(&["aaaab", "aaaaa"], &["aaaaa"], &[("aaaaa", "aaaaa")]);
        check(&["aaaab", "aaaaa"], &["aaaaa", "aaaac"], &[("aaaaa", "aaaaa"), ("aaaab", "aaaac")]);
    }

    #[test]
    fn too_many_files_are_not_compared() {
        let names: Vec<String> = (0..101).map(|number| format!("x{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        check(&names, &names[..100], &[]);
        let some: Vec<(&str, &str)> = vec![("x0", "x0")];
        check(&names[..1], &names[..1], &some);
    }
}
