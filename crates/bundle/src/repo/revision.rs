//! A revision of a Git repository, read through `git` without a checkout.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{
    Content, File, Listing, MOST_BYTES, RepoError, is_hidden, link_broken, link_outside, unreadable,
};
use crate::model::Stamp;

/// What went wrong with `git`.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be started.
    #[error("cannot run `git`")]
    Start(#[source] io::Error),
    /// It refused.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// What was asked.
        command: String,
        /// What it said.
        message: String,
    },
    /// It answered something that is no answer.
    #[error("`git {0}` answered something unexpected")]
    Answer(&'static str),
}

/// A commit, and the folder of it that is the data repo.
#[derive(Clone, Debug)]
pub struct Revision {
    /// Where `git` is run.
    folder: PathBuf,
    stamp: Stamp,
    /// Path of the data repo within the repository, empty or with a slash at its end.
    prefix: String,
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
        if revision.starts_with('-') {
            let message = "a revision does not begin with `-`".to_owned();
            return Err(GitError::Failed { command: format!("rev-parse {revision}"), message });
        }
        let commit =
            git_line(folder, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
                .map_err(|error| match error {
                    GitError::Failed { command, message } if message.is_empty() => {
                        GitError::Failed { command, message: format!("there is no revision `{revision}`") }
                    }
                    other => other,
                })?;
        let prefix = match path {
            Some(path) if path.is_empty() => path,
            Some(path) => format!("{path}/"),
            None => git_line(folder, &["rev-parse", "--show-prefix"])?,
        };
        let timestamp = git_line(folder, &["show", "-s", "--format=%ct", &commit])?;
        Ok(Self { folder: folder.to_owned(), stamp: Stamp { commit, timestamp }, prefix })
    }

    /// The commit and its time.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// The files of the folder `name` of the data repo.
    pub(super) fn list(&self, name: &str) -> Result<Listing, RepoError> {
        let entries = self.entries()?;
        let inside = format!("{name}/");
        let mut listing = Listing::default();
        let mut wanted = Vec::new();
        for (full, entry) in &entries {
            let Some(below) = full.strip_prefix(&inside) else { continue };
            if below.split('/').any(is_hidden) {
                continue;
            }
            match self.resolve(&entries, full, entry)? {
                Ok(entry) => wanted.push((below, full, entry)),
                Err(finding) => listing.findings.push(*finding),
            }
        }
        if wanted.is_empty() && !entries.keys().any(|full| full.starts_with(&inside)) {
            return Err(RepoError::Missing { name: name.to_owned(), source: None });
        }
        let small: Vec<&str> = wanted
            .iter()
            .filter(|(.., entry)| entry.size <= MOST_BYTES)
            .map(|(.., entry)| entry.oid.as_str())
            .collect();
        let mut blobs = self.blobs(&small)?.into_iter();
        for (below, full, entry) in wanted {
            let content = if entry.size <= MOST_BYTES {
                Content::InMemory(blobs.next().ok_or(GitError::Answer("cat-file"))?)
            } else {
                Content::TooLarge(entry.size)
            };
            listing.files.push(File { path: format!("/{below}"), name: full.clone(), content });
        }
        Ok(listing)
    }

    /// The file `name` of the data repo, if there is one.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RepoError> {
        let entries = self.entries()?;
        let Some(entry) = entries.get(name) else { return Ok(None) };
        match self.resolve(&entries, name, entry)? {
            Ok(entry) if entry.size <= MOST_BYTES => Ok(self.blobs(&[&entry.oid])?.pop()),
            _ => Ok(None),
        }
    }

    /// Every file of the data repo, by its path within it.
    fn entries(&self) -> Result<BTreeMap<String, Entry>, GitError> {
        let tree = if self.prefix.is_empty() {
            self.stamp.commit.clone()
        } else {
            format!("{}:{}", self.stamp.commit, self.prefix.trim_end_matches('/'))
        };
        let listed = git(&self.folder, &["ls-tree", "-r", "-z", "-l", "--full-tree", &tree])?;
        let mut entries = BTreeMap::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (path, entry) = Entry::parse(line).ok_or(GitError::Answer("ls-tree"))?;
            entries.insert(path, entry);
        }
        Ok(entries)
    }

    /// The file that `entry` stands for: itself, or what its link leads to.
    fn resolve<'a>(
        &self,
        entries: &'a BTreeMap<String, Entry>,
        name: &str,
        entry: &'a Entry,
    ) -> Result<Result<&'a Entry, Box<qontract_diagnostics::Diagnostic>>, GitError> {
        let (mut at, mut entry) = (name.to_owned(), entry);
        let mut shown = String::new();
        for _ in 0..MOST_LINKS {
            match entry.kind {
                Kind::File => return Ok(Ok(entry)),
                Kind::Other => return Ok(Err(Box::new(unreadable(name, "it is not a regular file")))),
                Kind::Link => {}
            }
            let target = self.blobs(&[&entry.oid])?.pop().unwrap_or_default();
            let target = String::from_utf8_lossy(&target).into_owned();
            if shown.is_empty() {
                shown.clone_from(&target);
            }
            let Some(next) = join(&at, &target) else {
                return Ok(Err(Box::new(link_outside(name, &shown))));
            };
            let Some(found) = entries.get(&next) else {
                let is_folder = entries.keys().any(|path| path.starts_with(&format!("{next}/")));
                let why = if is_folder { "which is not a file" } else { "which does not exist" };
                return Ok(Err(Box::new(link_broken(name, &shown, why))));
            };
            (at, entry) = (next, found);
        }
        Ok(Err(Box::new(link_broken(name, &shown, "in a circle"))))
    }

    /// The contents of blobs, in order, through one process.
    fn blobs(&self, oids: &[&str]) -> Result<Vec<Vec<u8>>, GitError> {
        if oids.is_empty() {
            return Ok(Vec::new());
        }
        let mut child = Command::new("git")
            .arg("-C")
            .arg(&self.folder)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(GitError::Start)?;
        let mut input = child.stdin.take().ok_or(GitError::Answer("cat-file"))?;
        let mut output = BufReader::new(child.stdout.take().ok_or(GitError::Answer("cat-file"))?);
        let request: String = oids.iter().flat_map(|oid| [*oid, "\n"]).collect();
        let writer = std::thread::spawn(move || input.write_all(request.as_bytes()));
        let blobs = oids.iter().map(|_| read_blob(&mut output).ok_or(GitError::Answer("cat-file"))).collect();
        drop(output);
        let _ = writer.join();
        child.wait().map_err(GitError::Start)?;
        blobs
    }
}

/// One answer of `git cat-file --batch`: a line with the size, the bytes, a newline.
fn read_blob(output: &mut impl io::BufRead) -> Option<Vec<u8>> {
    let mut header = String::new();
    output.read_line(&mut header).ok()?;
    let mut words = header.split_whitespace().skip(1);
    if words.next() != Some("blob") {
        return None;
    }
    let mut blob = vec![0; words.next()?.parse().ok()?];
    output.read_exact(&mut blob).ok()?;
    output.read_exact(&mut [0]).ok()?;
    Some(blob)
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

/// A line of `git ls-tree -l`.
struct Entry {
    kind: Kind,
    oid: String,
    size: u64,
}

enum Kind {
    File,
    Link,
    /// A submodule.
    Other,
}

impl Entry {
    fn parse(line: &[u8]) -> Option<(String, Self)> {
        let line = String::from_utf8_lossy(line);
        let (meta, path) = line.split_once('\t')?;
        let mut words = meta.split_whitespace();
        let (mode, _, oid, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let kind = match mode {
            "100644" | "100755" | "100664" => Kind::File,
            "120000" => Kind::Link,
            _ => Kind::Other,
        };
        Some((path.to_owned(), Self { kind, oid: oid.to_owned(), size: size.parse().unwrap_or(0) }))
    }
}

/// The commit that the work tree around `folder` is at; nothing if it is no work tree.
pub fn head_stamp(folder: &Path) -> Option<Stamp> {
    let commit = git_line(folder, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).ok()?;
    let timestamp = git_line(folder, &["show", "-s", "--format=%ct", &commit]).ok()?;
    Some(Stamp { commit, timestamp })
}

fn git(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(GitError::Start)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GitError::Failed { command: arguments.join(" "), message })
}

fn git_line(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(&git(folder, arguments)?).trim().to_owned())
}
