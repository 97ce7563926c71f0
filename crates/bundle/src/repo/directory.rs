//! A folder on disk.

use std::fs;
use std::path::Path;

use super::{Content, File, Listing, RepoError, is_hidden, link_broken, link_outside, unreadable};

/// The files below `folder`, which people call `name`; links may lead anywhere within `boundary`.
pub fn list(folder: &Path, boundary: &Path, name: &str) -> Result<Listing, RepoError> {
    let missing = |source| RepoError::Missing { name: name.to_owned(), source: Some(source) };
    let boundary = boundary.canonicalize().map_err(missing)?;
    folder.metadata().map_err(missing)?;
    let mut walk = Walk { boundary: &boundary, listing: Listing::default() };
    walk.folder(folder, name, "")?;
    Ok(walk.listing)
}

struct Walk<'a> {
    boundary: &'a Path,
    listing: Listing,
}

impl Walk<'_> {
    /// Lists `folder`; `name` is how people call it, `path` how the bundle does.
    fn folder(&mut self, folder: &Path, name: &str, path: &str) -> Result<(), RepoError> {
        let list = |source| RepoError::List { name: name.to_owned(), source };
        for entry in fs::read_dir(folder).map_err(list)? {
            let entry = entry.map_err(list)?;
            let file_name = entry.file_name();
            let Some(file_name) = file_name.to_str() else {
                let shown = format!("{name}/{}", file_name.to_string_lossy());
                self.listing.findings.push(unreadable(&shown, "its name is not UTF-8"));
                continue;
            };
            if is_hidden(file_name) {
                continue;
            }
            let (name, path) = (format!("{name}/{file_name}"), format!("{path}/{file_name}"));
            let kind = entry.file_type().map_err(list)?;
            if kind.is_dir() {
                self.folder(&entry.path(), &name, &path)?;
            } else if kind.is_file() {
                self.listing.files.push(File { path, name, content: Content::OnDisk(entry.path()) });
            } else if kind.is_symlink() {
                self.link(&entry.path(), name, path);
            } else {
                self.listing.findings.push(unreadable(&name, "it is not a regular file"));
            }
        }
        Ok(())
    }

    fn link(&mut self, link: &Path, name: String, path: String) {
        let target =
            fs::read_link(link).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
        match link.canonicalize() {
            Err(_) => self.listing.findings.push(link_broken(&name, &target, "which does not exist")),
            Ok(real) if !real.starts_with(self.boundary) => {
                self.listing.findings.push(link_outside(&name, &target));
            }
            Ok(real) if real.is_file() => {
                self.listing.files.push(File { path, name, content: Content::OnDisk(real) });
            }
            Ok(_) => self.listing.findings.push(link_broken(&name, &target, "which is not a file")),
        }
    }
}
