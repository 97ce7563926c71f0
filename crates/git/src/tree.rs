//! Lists the files of a tree with `git ls-tree`.

use std::io::{BufRead, Read as _};

use crate::GitError;
use crate::command::{Git, OutputError};
use crate::object::ObjectId;

/// Maximum number of bytes of one line; file systems do not support longer paths.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// An entry of a tree, except subtrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The kind.
    pub kind: EntryKind,
    /// The object that the entry names.
    pub id: ObjectId,
    /// The size of the object in bytes; 0 for a submodule.
    pub size: u64,
}

/// The kind of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link, whose target is the content of its blob.
    Link,
    /// A commit of another repository, or a mode that Git does not write.
    Submodule,
}

/// A path in a tree, or its lossy conversion if it is not UTF-8.
pub type TreePath = Result<String, String>;

/// Every entry of a tree and its subtrees.
pub fn list(git: &Git, tree: &ObjectId) -> Result<Vec<(TreePath, TreeEntry)>, GitError> {
    let (max_entries, max_bytes) = (git.limits().entries, git.limits().listing_bytes);
    git.run("ls-tree", &["-r", "-z", "-l", "--full-tree", tree.as_str()], String::new(), |output| {
        let (mut entries, mut line, mut read) = (Vec::new(), Vec::new(), 0);
        loop {
            line.clear();
            read += output.take(MAX_LINE_BYTES).read_until(0, &mut line)? as u64;
            if line.is_empty() {
                return Ok(entries);
            }
            if line.pop() != Some(0) {
                return Err(OutputError::TooLarge(format!("a path has more than {MAX_LINE_BYTES} bytes")));
            }
            if entries.len() >= max_entries {
                return Err(OutputError::TooLarge(format!("a tree has more than {max_entries} files")));
            }
            if read > max_bytes {
                return Err(OutputError::TooLarge(format!(
                    "the listing of a tree has more than {max_bytes} bytes"
                )));
            }
            entries.push(parse(&line).ok_or(OutputError::Format)?);
        }
    })
}

/// Parses one line of `git ls-tree -l -z`: `MODE TYPE ID SIZE⇥PATH`.
fn parse(line: &[u8]) -> Option<(TreePath, TreeEntry)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let path = match str::from_utf8(&line[tab + 1..]) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => Err(String::from_utf8_lossy(&line[tab + 1..]).into_owned()),
    };
    let mut words = str::from_utf8(&line[..tab]).ok()?.split_whitespace();
    let (mode, _, id, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let kind = match mode {
        "100644" | "100755" | "100664" => EntryKind::File,
        "120000" => EntryKind::Link,
        _ => EntryKind::Submodule,
    };
    let size = if kind == EntryKind::Submodule { 0 } else { size.parse().ok()? };
    Some((path, TreeEntry { kind, id: ObjectId::parse(id)?, size }))
}

#[cfg(test)]
mod tests {
    use super::{EntryKind, parse};

    const ID: &str = "ce916bdaf12a8f1b50b037570ede571e9f7fa09f";

    #[test]
    fn lines_are_read() {
        let check = |line: String, expect: Option<(Result<&str, &str>, EntryKind, u64)>| {
            let found = parse(line.as_bytes());
            let found = found
                .as_ref()
                .map(|(path, entry)| (path.as_deref().map_err(String::as_str), entry.kind, entry.size));
            assert_eq!(found, expect, "{line:?}");
        };
        check(format!("100644 blob {ID}      12\ta/b c"), Some((Ok("a/b c"), EntryKind::File, 12)));
        check(format!("100755 blob {ID} 12\ta\tb"), Some((Ok("a\tb"), EntryKind::File, 12)));
        check(format!("100664 blob {ID} 12\ta"), Some((Ok("a"), EntryKind::File, 12)));
        check(format!("120000 blob {ID} 3\tl"), Some((Ok("l"), EntryKind::Link, 3)));
        check(format!("160000 commit {ID} -\ts"), Some((Ok("s"), EntryKind::Submodule, 0)));
        check(format!("100644 blob {ID} -\ta"), None);
        check(format!("100644 blob {ID}\ta"), None);
        check("100644 blob --x 12\ta".to_owned(), None);
        check(format!("100644 blob {ID} 12"), None);
    }
}
