//! A revision of a Git repository, read through `git` without a checkout.

mod git;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use qontract_diagnostics::Diagnostic;

use super::{
    Content, File, Listing, MOST_BYTES, Names, RepoError, has_hidden_part, link_broken, link_outside,
    unreadable,
};
use crate::model::Stamp;

pub use git::GitError;

/// A commit, and the folder of it that is the data repo.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Where `git` is run.
    folder: PathBuf,
    stamp: Stamp,
    /// The commit, or the folder of it that is the data repo.
    tree: String,
    entries: Arc<OnceLock<Entries>>,
}

/// Every file of the data repo, by its path within it.
#[derive(Debug, Default)]
struct Entries {
    files: BTreeMap<String, git::Entry>,
    /// Names that are no text, as well as they can be shown.
    odd: Vec<String>,
}

/// What an entry leads to.
enum Resolved<'a> {
    File(&'a git::Entry),
    Refused(Diagnostic),
}

/// Longest chain of links that is followed.
const MOST_LINKS: usize = 16;

impl Revision {
    /// The revision `name` of the Git repository that `folder` is in; the data repo is where `folder` is.
    ///
    /// `name` may end in `:PATH`, the path of the data repo from the top of the repository.
    pub fn open(folder: &Path, name: &str) -> Result<Self, GitError> {
        let (revision, path) = match name.split_once(':') {
            Some((revision, path)) => (revision, Some(path.trim_matches('/').to_owned())),
            None => (name, None),
        };
        let commit = git::commit(folder, revision)?;
        let path = match path {
            Some(path) => path,
            None => git::line(folder, &["rev-parse", "--show-prefix"])?.trim_end_matches('/').to_owned(),
        };
        let tree = if path.is_empty() { commit.clone() } else { format!("{commit}:{path}") };
        let kind = git::line(folder, &["cat-file", "-t", &tree]);
        if !matches!(kind.as_deref(), Ok("commit" | "tree")) {
            return Err(GitError::NoFolder { revision: revision.to_owned(), path });
        }
        let stamp = git::stamp(folder, commit)?;
        Ok(Self { folder: folder.to_owned(), stamp, tree, entries: Arc::default() })
    }

    /// The commit and its time.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// The files of the folder `name` of the data repo.
    pub(super) fn list(&self, name: &str, names: Names) -> Result<Listing, RepoError> {
        let entries = self.entries()?;
        let mut listing = Listing::default();
        let real = match self.folder_of(entries, name)? {
            Ok(real) => format!("{real}/"),
            Err(finding) => {
                listing.findings.push(finding);
                return Ok(listing);
            }
        };
        for odd in entries.odd.iter().filter_map(|odd| odd.strip_prefix(&real)) {
            if names.wants(odd) && !has_hidden_part(odd) {
                listing.findings.push(unreadable(&format!("{name}/{odd}"), "its name is not UTF-8"));
            }
        }
        let mut wanted = Vec::new();
        for (full, entry) in
            entries.files.range(real.clone()..).take_while(|(full, _)| full.starts_with(&real))
        {
            let below = &full[real.len()..];
            if has_hidden_part(below) || !names.wants(below) {
                continue;
            }
            let shown = format!("{name}/{below}");
            match self.resolve(entries, full, &shown, entry)? {
                Resolved::File(entry) => wanted.push((below, shown, entry)),
                Resolved::Refused(finding) => listing.findings.push(finding),
            }
        }
        let small = wanted.iter().filter(|(.., entry)| entry.size <= MOST_BYTES);
        let small: Vec<&str> = small.map(|(.., entry)| entry.oid.as_str()).collect();
        let mut blobs = git::blobs(&self.folder, &small)?.into_iter();
        for (below, name, entry) in wanted {
            let content = if entry.size <= MOST_BYTES {
                Content::InMemory(blobs.next().ok_or(GitError::Answer("cat-file"))?)
            } else {
                Content::TooLarge(entry.size)
            };
            listing.files.push(File { path: format!("/{below}"), name, content });
        }
        Ok(listing)
    }

    /// The content of the file `name` of the data repo.
    pub(super) fn file(&self, name: &str) -> Result<Result<Content, Box<Diagnostic>>, RepoError> {
        let entries = self.entries()?;
        let entry = entries.files.get(name).ok_or_else(|| RepoError::Missing { name: name.to_owned() })?;
        match self.resolve(entries, name, name, entry)? {
            Resolved::File(entry) if entry.size > MOST_BYTES => Ok(Ok(Content::TooLarge(entry.size))),
            Resolved::File(entry) => {
                let blob =
                    git::blobs(&self.folder, &[&entry.oid])?.pop().ok_or(GitError::Answer("cat-file"))?;
                Ok(Ok(Content::InMemory(blob)))
            }
            Resolved::Refused(finding) => Ok(Err(Box::new(finding))),
        }
    }

    /// Listed once, however often it is asked for.
    fn entries(&self) -> Result<&Entries, GitError> {
        if let Some(entries) = self.entries.get() {
            return Ok(entries);
        }
        let mut entries = Entries::default();
        for (path, entry) in git::list(&self.folder, &self.tree)? {
            match path {
                Ok(path) => drop(entries.files.insert(path, entry)),
                Err(odd) => entries.odd.push(odd),
            }
        }
        Ok(self.entries.get_or_init(|| entries))
    }

    /// The path of the folder that `name` leads to: itself, or the target of a link.
    fn folder_of(&self, entries: &Entries, name: &str) -> Result<Result<String, Diagnostic>, RepoError> {
        let mut at = name.to_owned();
        for _ in 0..MOST_LINKS {
            if entries.has_folder(&at) {
                return Ok(Ok(at));
            }
            let Some(entry) = entries.files.get(&at).filter(|entry| entry.kind == git::Kind::Link) else {
                break;
            };
            let target = self.link_target(entry)?;
            match join(&at, &target) {
                Some(next) if !has_hidden_part(&next) => at = next,
                _ => return Ok(Err(link_outside(name, &target))),
            }
        }
        if at == name {
            return Err(RepoError::Missing { name: name.to_owned() });
        }
        Ok(Err(link_broken(name, &at, "which does not exist")))
    }

    /// The file that `entry` stands for: itself, or what its link leads to.
    fn resolve<'a>(
        &self,
        entries: &'a Entries,
        full: &str,
        shown: &str,
        entry: &'a git::Entry,
    ) -> Result<Resolved<'a>, GitError> {
        let (mut at, mut entry) = (full.to_owned(), entry);
        let mut first_target = None;
        for _ in 0..MOST_LINKS {
            match entry.kind {
                git::Kind::File => return Ok(Resolved::File(entry)),
                git::Kind::Other => {
                    return Ok(Resolved::Refused(unreadable(shown, "it is not a regular file")));
                }
                git::Kind::Link => {}
            }
            let target = self.link_target(entry)?;
            let first = first_target.get_or_insert_with(|| target.clone()).clone();
            let Some(next) = join(&at, &target).filter(|next| !has_hidden_part(next)) else {
                return Ok(Resolved::Refused(link_outside(shown, &first)));
            };
            let Some(found) = entries.files.get(&next) else {
                let why =
                    if entries.has_folder(&next) { "which is a folder" } else { "which does not exist" };
                let target = if entries.has_folder(&next) { next } else { first };
                return Ok(Resolved::Refused(link_broken(shown, &target, why)));
            };
            (at, entry) = (next, found);
        }
        Ok(Resolved::Refused(link_broken(shown, &first_target.unwrap_or_default(), "which does not exist")))
    }

    fn link_target(&self, entry: &git::Entry) -> Result<String, GitError> {
        let target = git::blobs(&self.folder, &[&entry.oid])?.pop().unwrap_or_default();
        Ok(String::from_utf8_lossy(&target).into_owned())
    }
}

impl Entries {
    fn has_folder(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        self.files.range(inside.clone()..).next().is_some_and(|(full, _)| full.starts_with(&inside))
    }
}

/// `target` seen from the folder of `link`, if that is within the tree.
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

/// The commit that the work tree around `folder` is at; nothing if it is no work tree.
pub fn head_stamp(folder: &Path) -> Option<Stamp> {
    git::stamp(folder, git::commit(folder, "HEAD").ok()?).ok()
}
