//! The source tree that the rules check: paths, file contents and packages, in memory.

use super::Packages;
use crate::command::CommandLine;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;

/// All files of a checkout that Git does not ignore, tracked or not, and the packages of the checkout.
#[derive(Debug, Default)]
pub struct SourceTree {
    /// Path from the root, separated by `/` ↦ text; `None` for binary files.
    files: BTreeMap<String, Option<String>>,
    packages: Packages,
}

impl SourceTree {
    /// Reads the checkout: the files that Git tracks or would track, and `cargo metadata`.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let listing = CommandLine::new("git ls-files -z --cached --others --exclude-standard")
            .folder(&workspace.root)
            .output()
            .context("cannot list the files of the checkout")?;
        let mut files = BTreeMap::new();
        for path in listing.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let path = String::from_utf8_lossy(path).into_owned();
            let full = workspace.root.join(&path);
            // A file that was deleted but is still tracked, and a link to a directory, have no content to
            // read.
            if full.is_file() {
                let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
                files.insert(path, String::from_utf8(bytes).ok());
            }
        }
        let metadata = workspace.cargo("metadata --format-version 1").output()?;
        let root = workspace.root.to_string_lossy();
        Ok(Self { files, packages: Packages::from_metadata(&metadata, &root)? })
    }

    /// A tree for a test.
    #[cfg(test)]
    pub fn of_files(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())));
        Self { files: files.collect(), packages: Packages::default() }
    }

    /// A tree for a test that only needs packages.
    #[cfg(test)]
    pub fn of_packages(packages: Packages) -> Self {
        Self { files: BTreeMap::new(), packages }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The packages.
    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// Every path.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The path and the text of every file whose name ends with `suffix`; the empty suffix means all text
    /// files.
    pub fn texts<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether a file or directory exists at this path.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder))
    }
}
