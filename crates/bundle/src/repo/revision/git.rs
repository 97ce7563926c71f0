//! The few things that are asked of `git`. Nothing that data names is ever passed to it.

use std::io::{self, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

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
    /// There is no such revision.
    #[error("there is no Git revision `{0}`")]
    NoRevision(String),
    /// There is no such folder in the revision.
    #[error("there is no folder `{path}` in the Git revision `{revision}`")]
    NoFolder {
        /// The revision.
        revision: String,
        /// The folder.
        path: String,
    },
    /// It answered something that is no answer.
    #[error("`git {0}` answered something unexpected")]
    Answer(&'static str),
}

/// A line of `git ls-tree -l`.
#[derive(Debug)]
pub struct Entry {
    pub kind: Kind,
    pub oid: String,
    pub size: u64,
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Link,
    /// A submodule.
    Other,
}

/// The commit that `revision` names.
pub fn commit(folder: &Path, revision: &str) -> Result<String, GitError> {
    let none = || GitError::NoRevision(revision.to_owned());
    if revision.starts_with('-') || revision.is_empty() {
        return Err(none());
    }
    line(folder, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]).map_err(|error| {
        match error {
            GitError::Failed { message, .. } if message.is_empty() => none(),
            other => other,
        }
    })
}

/// A commit with its time, whatever the user has configured.
pub fn stamp(folder: &Path, commit: String) -> Result<Stamp, GitError> {
    let timestamp =
        line(folder, &["log", "-1", "--no-show-signature", "--no-color", "--format=%ct", &commit])?;
    if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(GitError::Answer("log"));
    }
    Ok(Stamp { commit, timestamp })
}

/// A path, or as much of it as can be shown if it is no text.
pub type TreePath = Result<String, String>;

/// Every file of a tree.
pub fn list(folder: &Path, tree: &str) -> Result<Vec<(TreePath, Entry)>, GitError> {
    let listed = run(folder, &["ls-tree", "-r", "-z", "-l", "--full-tree", tree])?;
    let lines = listed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines.map(|line| parse(line).ok_or(GitError::Answer("ls-tree"))).collect()
}

fn parse(line: &[u8]) -> Option<(TreePath, Entry)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let path = match str::from_utf8(&line[tab + 1..]) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => Err(String::from_utf8_lossy(&line[tab + 1..]).into_owned()),
    };
    let mut words = str::from_utf8(&line[..tab]).ok()?.split_whitespace();
    let (mode, _, oid, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let kind = match mode {
        "100644" | "100755" | "100664" => Kind::File,
        "120000" => Kind::Link,
        _ => Kind::Other,
    };
    Some((path, Entry { kind, oid: oid.to_owned(), size: size.parse().unwrap_or(0) }))
}

/// The contents of blobs, in order, through one process.
pub fn blobs(folder: &Path, oids: &[&str]) -> Result<Vec<Vec<u8>>, GitError> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let mut child = Command::new("git")
        .arg("-C")
        .arg(folder)
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

/// The one line that a command answers.
pub fn line(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(&run(folder, arguments)?).trim().to_owned())
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
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
