//! A revision of a Git repository, read through `git` without a checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use qontract_diagnostics::{Diagnostic, code};
use qontract_git::{EntryKind, ObjectId, Repository, TreeEntry};

use super::findings::{link_broken, link_outside, too_deep, unreadable};
use super::names::has_hidden_part;
use super::{Listing, MAX_DEPTH, MAX_FILE_BYTES, NameFilter, RepoError, RepoFile, RepoFileContent};
use crate::model::CommitStamp;

pub use qontract_git::GitError;

/// A commit, and the directory in it that is the data repo.
#[derive(Clone, Debug)]
pub struct Revision {
    repository: Repository,
    stamp: CommitStamp,
    /// The directory of the commit that is the data repo.
    tree: ObjectId,
    entries: Arc<OnceLock<TreeIndex>>,
}

/// All files of the data repo, by path.
#[derive(Debug, Default)]
struct TreeIndex {
    files: BTreeMap<String, TreeEntry>,
    /// Names that are not UTF-8, converted lossily.
    non_utf8: Vec<String>,
    /// The targets of links, by the ids of their blobs. Targets that are too long are missing.
    targets: BTreeMap<ObjectId, String>,
}

/// The target of an entry.
enum ResolvedEntry<'a> {
    File(&'a TreeEntry),
    Refused(Diagnostic),
}

/// Maximum length of a chain of links.
const MAX_LINK_HOPS: usize = 16;

/// Maximum length of a link target, in bytes. File systems do not allow longer targets.
const MAX_LINK_BYTES: u64 = 4096;

impl Revision {
    /// Opens the revision `name` of the Git repository that contains `folder`. The data repo is at `folder`.
    ///
    /// `name` may end in `:PATH`, the path of the data repo from the top of the repository.
    pub fn open(folder: &Path, name: &str) -> Result<Self, GitError> {
        let repository = Repository::open(folder)?;
        let (revision, path) = match name.split_once(':') {
            Some((revision, path)) => (revision, path.trim_matches('/')),
            None => (name, repository.prefix()),
        };
        let commit = repository.commit(revision)?;
        let tree = repository.tree(&commit, path, revision)?;
        let stamp = CommitStamp { commit: commit.id.to_string(), timestamp: commit.time };
        Ok(Self { repository, stamp, tree, entries: Arc::default() })
    }

    /// The commit and its timestamp.
    pub fn stamp(&self) -> &CommitStamp {
        &self.stamp
    }

    /// Lists the files of the directory `name` of the data repo.
    pub(super) fn list(&self, name: &str, names: NameFilter) -> Result<Listing, RepoError> {
        let entries = self.entries()?;
        let mut listing = Listing::default();
        let real = match entries.resolve_folder(name)? {
            Ok(real) => format!("{real}/"),
            Err(finding) => {
                listing.findings.push(finding);
                return Ok(listing);
            }
        };
        for odd in entries.non_utf8.iter().filter_map(|odd| odd.strip_prefix(&real)) {
            if names.matches(odd) && !has_hidden_part(odd) {
                listing.findings.push(unreadable(&format!("{name}/{odd}"), "its name is not UTF-8"));
            }
        }
        let (mut wanted, mut deep) = (Vec::new(), BTreeSet::new());
        for (full, entry) in
            entries.files.range(real.clone()..).take_while(|(full, _)| full.starts_with(&real))
        {
            let below = &full[real.len()..];
            if let Some(folder) = folder_at(below, MAX_DEPTH) {
                if !has_hidden_part(folder) {
                    deep.insert(folder);
                }
                continue;
            }
            let is_wanted = names.matches(below) || entry.kind == EntryKind::Submodule;
            if has_hidden_part(below) || !is_wanted {
                continue;
            }
            let shown = format!("{name}/{below}");
            match entries.resolve(full, &shown, entry) {
                ResolvedEntry::File(entry) => wanted.push((below, shown, entry)),
                ResolvedEntry::Refused(finding) => listing.findings.push(finding),
            }
        }
        listing.findings.extend(deep.iter().map(|folder| too_deep(&format!("{name}/{folder}"))));
        let small = wanted.iter().filter(|(.., entry)| entry.size <= MAX_FILE_BYTES);
        let small: Vec<&TreeEntry> = small.map(|(.., entry)| *entry).collect();
        let mut blobs = self.repository.blobs(&small)?.into_iter();
        for (below, name, entry) in wanted {
            let content = if entry.size <= MAX_FILE_BYTES {
                RepoFileContent::InMemory(blobs.next().ok_or(GitError::Answer("cat-file"))?)
            } else {
                RepoFileContent::TooLarge(entry.size)
            };
            listing.files.push(RepoFile { path: format!("/{below}"), name, content });
        }
        Ok(listing)
    }

    /// The content of the file `name` of the data repo.
    pub(super) fn file(&self, name: &str) -> Result<Result<RepoFileContent, Box<Diagnostic>>, RepoError> {
        let entries = self.entries()?;
        let entry = entries.files.get(name).ok_or_else(|| RepoError::Missing { name: name.to_owned() })?;
        match entries.resolve(name, name, entry) {
            ResolvedEntry::File(entry) if entry.size > MAX_FILE_BYTES => {
                Ok(Ok(RepoFileContent::TooLarge(entry.size)))
            }
            ResolvedEntry::File(entry) => {
                let blob = self.repository.blobs(&[entry])?.pop().ok_or(GitError::Answer("cat-file"))?;
                Ok(Ok(RepoFileContent::InMemory(blob)))
            }
            ResolvedEntry::Refused(finding) => Ok(Err(Box::new(finding))),
        }
    }

    /// All entries, listed on first use.
    fn entries(&self) -> Result<&TreeIndex, GitError> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries);
        }
        let mut entries = TreeIndex::default();
        for (path, entry) in self.repository.list(&self.tree)? {
            match path {
                Ok(path) => drop(entries.files.insert(path, entry)),
                Err(odd) => entries.non_utf8.push(odd),
            }
        }
        entries.targets = self.link_targets(&entries)?;
        Ok(self.entries.get_or_init(|| entries))
    }

    /// Reads the targets of all links in one call.
    fn link_targets(&self, entries: &TreeIndex) -> Result<BTreeMap<ObjectId, String>, GitError> {
        let is_link = |entry: &&TreeEntry| entry.kind == EntryKind::Link && entry.size <= MAX_LINK_BYTES;
        let links: BTreeMap<&ObjectId, &TreeEntry> =
            entries.files.values().filter(is_link).map(|entry| (&entry.id, entry)).collect();
        let blobs = self.repository.blobs(&links.values().copied().collect::<Vec<_>>())?;
        let text = |blob: Vec<u8>| String::from_utf8_lossy(&blob).into_owned();
        Ok(links.into_keys().cloned().zip(blobs.into_iter().map(text)).collect())
    }
}

impl TreeIndex {
    /// The path of the directory `name`: itself, or the target of a link.
    fn resolve_folder(&self, name: &str) -> Result<Result<String, Diagnostic>, RepoError> {
        let mut at = name.to_owned();
        for _ in 0..MAX_LINK_HOPS {
            if self.has_folder(&at) {
                return Ok(Ok(at));
            }
            let Some(entry) = self.files.get(&at).filter(|entry| entry.kind == EntryKind::Link) else {
                break;
            };
            let Some(target) = self.targets.get(&entry.id) else {
                return Ok(Err(link_too_long(name, entry)));
            };
            match join(&at, target) {
                Some(next) if !has_hidden_part(&next) => at = next,
                _ => return Ok(Err(link_outside(name, target))),
            }
        }
        if at == name {
            return Err(RepoError::Missing { name: name.to_owned() });
        }
        Ok(Err(link_broken(name, &at, "which does not exist")))
    }

    /// The file of an entry: itself, or the target of its link.
    fn resolve<'a>(&'a self, full: &str, shown: &str, entry: &'a TreeEntry) -> ResolvedEntry<'a> {
        let (mut at, mut entry) = (full.to_owned(), entry);
        let mut first_target = None;
        for _ in 0..MAX_LINK_HOPS {
            match entry.kind {
                EntryKind::File => return ResolvedEntry::File(entry),
                EntryKind::Submodule => {
                    return ResolvedEntry::Refused(unreadable(
                        shown,
                        "it is a submodule, and files of submodules are not part of a revision",
                    ));
                }
                EntryKind::Link => {}
            }
            let Some(target) = self.targets.get(&entry.id) else {
                return ResolvedEntry::Refused(link_too_long(shown, entry));
            };
            let first = first_target.get_or_insert_with(|| target.clone()).clone();
            let Some(next) = join(&at, target).filter(|next| !has_hidden_part(next)) else {
                return ResolvedEntry::Refused(link_outside(shown, &first));
            };
            let Some(found) = self.files.get(&next) else {
                let is_dir = self.has_folder(&next);
                let why = if is_dir { "which is a directory" } else { "which does not exist" };
                let target = if is_dir { next } else { first };
                return ResolvedEntry::Refused(link_broken(shown, &target, why));
            };
            (at, entry) = (next, found);
        }
        ResolvedEntry::Refused(link_broken(shown, &first_target.unwrap_or_default(), "which does not exist"))
    }

    fn has_folder(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        self.files.range(inside.clone()..).next().is_some_and(|(full, _)| full.starts_with(&inside))
    }
}

/// Resolves `target` relative to the directory of `link`. `None` if it is outside of the tree.
fn join(link: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Reports a link whose target is too long.
fn link_too_long(name: &str, entry: &TreeEntry) -> Diagnostic {
    let message =
        format!("the target of the link has {} bytes; at most {MAX_LINK_BYTES} are allowed", entry.size);
    Diagnostic::new(code::LINK_BROKEN, message).in_file(name)
}

/// The first directory on `path` that is nested more than `max` levels deep.
fn folder_at(path: &str, max: usize) -> Option<&str> {
    path.match_indices('/').nth(max).map(|(end, _)| &path[..end])
}

/// The best common ancestor of two revisions of the repository around `folder`. `None` if they have no common
/// ancestor, or if the history is too shallow to find it.
pub fn merge_base(folder: &Path, one: &str, other: &str) -> Result<Option<String>, GitError> {
    let repository = Repository::discover(folder)?;
    let base = repository.merge_base(&repository.commit(one)?, &repository.commit(other)?)?;
    Ok(base.map(|id| id.to_string()))
}

/// The number of commits that `base` has and `head` does not, in the repository of `folder`. Fails if the local
/// history is incomplete, as in a shallow clone.
pub fn missing_commits(folder: &Path, base: &str, head: &str) -> Result<u64, GitError> {
    let repository = Repository::open(folder)?;
    repository.missing_commits(&repository.commit(base)?, &repository.commit(head)?)
}

/// The commit of the work tree around `folder`; empty if it is not in a work tree or has no commit yet.
///
/// Fails if the repository must not be used, so that a bundle is never built without its commit silently.
pub fn head_stamp(folder: &Path) -> Result<CommitStamp, GitError> {
    match Repository::discover(folder).and_then(|repository| repository.commit("HEAD")) {
        Ok(commit) => Ok(CommitStamp { commit: commit.id.to_string(), timestamp: commit.time }),
        Err(error @ (GitError::Refused { .. } | GitError::TimedOut { .. })) => Err(error),
        Err(_) => Ok(CommitStamp::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::folder_at;

    #[test]
    fn the_first_folder_that_is_too_deep_is_named() {
        let check = |max, expect| assert_eq!(folder_at("a/b/c/x.yml", max), expect);
        check(0, Some("a"));
        check(1, Some("a/b"));
        check(2, Some("a/b/c"));
        check(3, None);
    }
}
