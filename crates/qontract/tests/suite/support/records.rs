//! The stored records of runs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::Path;

use serde_json::Value;

use super::secrets_repo::files;

/// The ids of the runs that have a record in a directory of run records, oldest first.
pub fn run_ids(runs: &Path) -> Vec<String> {
    records(runs).into_iter().map(|(id, _)| id).collect()
}

/// The records in a directory of run records, with the ids of their runs, oldest first.
pub fn records(runs: &Path) -> Vec<(String, Value)> {
    let parse = |(path, bytes): (String, Vec<u8>)| {
        let (id, _) = path.strip_suffix(".blob")?.rsplit_once('/')?.1.split_once('~')?;
        Some((id.to_owned(), serde_json::from_slice(&bytes).unwrap()))
    };
    files(&runs.join("journal/runs")).into_iter().filter_map(parse).collect()
}

/// The content of every file below a directory, as text.
pub fn all_text(folder: &Path) -> String {
    files(folder).iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
}
