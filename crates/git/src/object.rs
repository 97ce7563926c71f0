//! Reads commits, trees and blobs with `git cat-file`.

use std::fmt;
use std::io::{BufRead, Read as _};

use crate::command::{Git, OutputError};
use crate::tree::TreeEntry;
use crate::{EntryKind, GitError};

/// The subcommand.
const CAT_FILE: &str = "cat-file";

/// Maximum number of bytes of a line with an object id.
const MAX_ID_BYTES: u64 = 256;
/// Maximum number of bytes of a line before an object: twice the maximum length of a path.
const MAX_HEADER_BYTES: u64 = 16 << 10;

/// The name of an object: a hexadecimal hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId(String);

impl ObjectId {
    /// Parses an id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        (is_hex && [40, 64].contains(&text.len())).then(|| Self(text.to_owned()))
    }

    /// The id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The id.
    pub id: ObjectId,
    /// The commit time, in Unix seconds.
    pub time: String,
}

/// The header that `git cat-file` prints before the bytes of an object.
#[derive(Debug, PartialEq, Eq)]
struct ObjectHeader {
    id: ObjectId,
    kind: String,
    size: u64,
}

/// Whether a name fits on one line of a request.
fn is_one_line(name: &str) -> bool {
    !name.contains(['\n', '\r', '\0'])
}

/// The commit that a revision names.
pub fn commit(git: &Git, revision: &str) -> Result<Commit, GitError> {
    let none = || GitError::NoRevision(revision.to_owned());
    if revision.is_empty() || revision.starts_with('-') || !is_one_line(revision) {
        return Err(none());
    }
    let limit = git.limits().commit_bytes;
    let found = git.run(CAT_FILE, &["--batch"], format!("{revision}^{{commit}}\n"), |output| {
        let Some(header) = header(output)? else { return Ok(None) };
        if header.size > limit {
            return Err(OutputError::TooLarge(format!(
                "the commit `{}` has {} bytes",
                header.id, header.size
            )));
        }
        let text = content(output, header.size)?;
        Ok(Some((header, text)))
    });
    let (header, text) = found?.ok_or_else(none)?;
    let time = committer_time(&text).filter(|_| header.kind == "commit");
    Ok(Commit { id: header.id, time: time.ok_or(GitError::Answer(CAT_FILE))? })
}

/// The best common ancestor of two commits. The history of a shallow clone might not contain it.
pub fn merge_base(git: &Git, one: &ObjectId, other: &ObjectId) -> Result<Option<ObjectId>, GitError> {
    let found = git.run("merge-base", &[one.as_str(), other.as_str()], String::new(), |output| {
        let mut line = String::new();
        output.take(MAX_ID_BYTES).read_line(&mut line)?;
        Ok(ObjectId::parse(line.trim_end()))
    });
    match found {
        // `git` fails without a message if no common ancestor exists, and with a message if a commit is
        // missing.
        Err(GitError::Failed { .. } | GitError::Answer(_)) => Ok(None),
        other => other,
    }
}

/// The number of commits that `base` has and `head` does not. Fails if the local history is incomplete.
pub fn missing_commits(git: &Git, base: &ObjectId, head: &ObjectId) -> Result<u64, GitError> {
    let excluded = format!("^{head}");
    git.run("rev-list", &["--count", base.as_str(), &excluded], String::new(), |output| {
        let mut line = String::new();
        output.take(MAX_ID_BYTES).read_line(&mut line)?;
        line.trim_end().parse().map_err(|_| OutputError::Format)
    })
}

/// The tree at a path of a commit.
pub fn tree(git: &Git, commit: &ObjectId, path: &str) -> Result<Option<ObjectId>, GitError> {
    if !is_one_line(path) {
        return Ok(None);
    }
    let found = git.run(CAT_FILE, &["--batch-check"], format!("{commit}:{path}\n"), header)?;
    Ok(found.filter(|header| header.kind == "tree").map(|header| header.id))
}

/// The contents of blobs, in order.
pub fn blobs(git: &Git, entries: &[&TreeEntry]) -> Result<Vec<Vec<u8>>, GitError> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let limit = git.limits().total_bytes;
    let total = entries.iter().fold(0_u64, |total, entry| total.saturating_add(entry.size));
    if total > limit {
        return Err(GitError::TooLarge(format!("its files have {total} bytes; the maximum is {limit}")));
    }
    let request = entries.iter().flat_map(|entry| [entry.id.as_str(), "\n"]).collect();
    git.run(CAT_FILE, &["--batch"], request, |output| {
        let blob = |entry: &&TreeEntry| {
            let expected = ObjectHeader { id: entry.id.clone(), kind: "blob".to_owned(), size: entry.size };
            let is_expected = entry.kind != EntryKind::Submodule && header(output)? == Some(expected);
            if is_expected { content(output, entry.size) } else { Err(OutputError::Format) }
        };
        entries.iter().map(blob).collect()
    })
}

/// Reads the header of an object; `None` if the object does not exist.
fn header(output: &mut impl BufRead) -> Result<Option<ObjectHeader>, OutputError> {
    let mut line = Vec::new();
    output.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
    let line = str::from_utf8(&line).map_err(|_| OutputError::Format)?;
    let line = line.strip_suffix('\n').ok_or(OutputError::Format)?;
    if line.ends_with(" missing") || line.ends_with(" ambiguous") {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let (Some(id), Some(kind), Some(size), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(OutputError::Format);
    };
    let (id, size) = (ObjectId::parse(id).ok_or(OutputError::Format)?, size.parse());
    Ok(Some(ObjectHeader { id, kind: kind.to_owned(), size: size.map_err(|_| OutputError::Format)? }))
}

/// Reads the bytes of an object and the newline after them. The caller has checked `size` against a limit.
fn content(output: &mut impl BufRead, size: u64) -> Result<Vec<u8>, OutputError> {
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| OutputError::Format)?];
    output.read_exact(&mut bytes)?;
    let mut end = [0];
    output.read_exact(&mut end)?;
    if end == *b"\n" { Ok(bytes) } else { Err(OutputError::Format) }
}

/// The time in the `committer` line of a commit.
fn committer_time(commit: &[u8]) -> Option<String> {
    let mut lines = commit.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let line = lines.find_map(|line| line.strip_prefix(b"committer "))?;
    let (_, after) = line.split_at(line.iter().rposition(|byte| *byte == b'>')? + 1);
    let time = str::from_utf8(after).ok()?.split_whitespace().next()?;
    time.bytes().all(|byte| byte.is_ascii_digit()).then(|| time.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MAX_HEADER_BYTES, ObjectHeader, ObjectId, committer_time, content, header};

    const ID: &str = "ce916bdaf12a8f1b50b037570ede571e9f7fa09f";

    #[test]
    fn an_id_is_a_whole_hash() {
        let check = |text: &str, expect: bool| assert_eq!(ObjectId::parse(text).is_some(), expect, "{text}");
        check(ID, true);
        check(&"0".repeat(64), true);
        check(&ID[1..], false);
        check(&format!("{ID}0"), false);
        check(&ID.to_uppercase(), false);
        check(&format!("-{}", &ID[1..]), false);
        check("", false);
    }

    #[test]
    fn headers_are_read() {
        let check = |line: &str, expect: Option<Option<u64>>| {
            let read = header(&mut line.as_bytes()).ok();
            assert_eq!(read.map(|found| found.map(|ObjectHeader { size, .. }| size)), expect, "{line:?}");
        };
        check(&format!("{ID} blob 12\nrest"), Some(Some(12)));
        check("HEAD^{commit} missing\n", Some(None));
        check("ab ambiguous\n", Some(None));
        check(&format!("{ID} blob 12"), None);
        check(&format!("{ID} blob\n"), None);
        check(&format!("{ID} blob 12 13\n"), None);
        check(&format!("{ID} blob -12\n"), None);
        check("x blob 12\n", None);
        check("", None);
        let longest = usize::try_from(MAX_HEADER_BYTES).unwrap() - " missing\n".len();
        check(&format!("{} missing\n", "x".repeat(longest)), Some(None));
        check(&format!("{} missing\n", "x".repeat(longest + 1)), None);
    }

    #[test]
    fn content_ends_with_a_newline() {
        let check = |text: &str, size, expect: Option<&str>| {
            let read = content(&mut text.as_bytes(), size).ok();
            assert_eq!(read.as_deref(), expect.map(str::as_bytes), "{text:?}");
        };
        check("abc\nrest", 3, Some("abc"));
        check("\n", 0, Some(""));
        check("abcd", 3, None);
        check("abc", 3, None);
        check("ab", 3, None);
    }

    #[test]
    fn the_time_is_that_of_the_committer() {
        let check = |commit: &str, expect: Option<&str>| {
            assert_eq!(committer_time(commit.as_bytes()).as_deref(), expect);
        };
        check("tree x\nauthor a <b> 1 +0000\ncommitter a> <b> 17 +0000\n\ntext", Some("17"));
        check("author a <b> 1 +0000\n\ncommitter a <b> 2 +0000\n", None);
        check("committer a <b> -1 +0000\n", None);
        check("committer a <b>\n", None);
        check("committer a\n", None);
    }
}
