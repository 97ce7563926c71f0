//! A folder on disk.

use std::fs;
use std::path::{Path, PathBuf};

use qontract_diagnostics::Diagnostic;
use rayon::prelude::*;

use super::{
    Content, File, Listing, Names, RepoError, has_hidden_part, is_hidden, link_broken, link_outside,
    unreadable,
};

/// The files below `folder`, which people call `name`. Links may lead anywhere within `root`, or within the folder
/// itself if it belongs to no data repo.
pub fn list(folder: &Path, root: Option<&Path>, name: &str, names: Names) -> Result<Listing, RepoError> {
    let boundary = boundary(folder, root, name).unwrap_or_else(|| folder.to_owned());
    let boundary = boundary.canonicalize().map_err(|_| RepoError::Missing { name: name.to_owned() })?;
    let refused = |finding| Ok(Listing { findings: vec![finding], ..Listing::default() });
    match resolve(folder, name, &boundary) {
        Resolved::Missing => Err(RepoError::Missing { name: name.to_owned() }),
        Resolved::Refused(finding) => refused(finding),
        Resolved::Real(real) if real.is_dir() => Walk { boundary: &boundary, names }.folder(&real, name, ""),
        Resolved::Real(_) => refused(unreadable(name, "it is not a folder")),
    }
}

/// The single file at `path`.
pub fn file(
    path: &Path,
    root: Option<&Path>,
    name: &str,
) -> Result<Result<Content, Box<Diagnostic>>, RepoError> {
    let missing = || RepoError::Missing { name: name.to_owned() };
    let boundary =
        boundary(path, root, name).or_else(|| Some(path.canonicalize().ok()?.parent()?.to_owned()));
    let boundary = boundary.and_then(|boundary| boundary.canonicalize().ok()).ok_or_else(missing)?;
    match resolve(path, name, &boundary) {
        Resolved::Missing => Err(missing()),
        Resolved::Refused(finding) => Ok(Err(Box::new(finding))),
        Resolved::Real(real) if real.is_file() => Ok(Ok(Content::OnDisk(real))),
        Resolved::Real(_) => Ok(Err(Box::new(unreadable(name, "it is not a regular file")))),
    }
}

/// The data repo's root, if the part called `name` is within it; a part that was asked for elsewhere is its own.
fn boundary(path: &Path, root: Option<&Path>, name: &str) -> Option<PathBuf> {
    let inside = Path::new(name).is_relative() && !name.split('/').any(|part| part == "..");
    root.filter(|root| inside && path.starts_with(root)).map(Path::to_owned)
}

/// What a path leads to.
enum Resolved {
    Missing,
    Refused(Diagnostic),
    Real(PathBuf),
}

/// Follows links, as long as they stay within `boundary` and out of hidden folders.
fn resolve(path: &Path, name: &str, boundary: &Path) -> Resolved {
    let Ok(kind) = fs::symlink_metadata(path) else { return Resolved::Missing };
    let target = || {
        fs::read_link(path).map_or_else(|_| name.to_owned(), |target| target.to_string_lossy().into_owned())
    };
    match path.canonicalize() {
        Err(_) if kind.is_symlink() => {
            Resolved::Refused(link_broken(name, &target(), "which does not exist"))
        }
        Err(_) => Resolved::Missing,
        Ok(real) => match real.strip_prefix(boundary) {
            Ok(inside) if !has_hidden_part(&inside.to_string_lossy()) => Resolved::Real(real),
            _ => Resolved::Refused(link_outside(name, &target())),
        },
    }
}

/// Looks through folders, many at a time.
#[derive(Clone, Copy)]
struct Walk<'a> {
    boundary: &'a Path,
    names: Names,
}

impl Walk<'_> {
    /// Lists `folder`; `name` is how people call it, `path` how the bundle does.
    fn folder(self, folder: &Path, name: &str, path: &str) -> Result<Listing, RepoError> {
        let list = |source| RepoError::List { name: name.to_owned(), source };
        let mut listing = Listing::default();
        let mut folders = Vec::new();
        for entry in fs::read_dir(folder).map_err(list)? {
            let entry = entry.map_err(list)?;
            let file_name = entry.file_name();
            let kind = entry.file_type().map_err(list)?;
            let Some(file_name) = file_name.to_str() else {
                let shown = format!("{name}/{}", file_name.to_string_lossy());
                if kind.is_dir() || self.names.wants(&shown) {
                    listing.findings.push(unreadable(&shown, "its name is not UTF-8"));
                }
                continue;
            };
            if is_hidden(file_name) {
                continue;
            }
            let below = |folder: &str| format!("{folder}/{file_name}");
            if kind.is_dir() {
                folders.push((entry.path(), below(name), below(path)));
            } else if !self.names.wants(file_name) {
            } else if kind.is_file() {
                let (path, name) = (below(path), below(name));
                listing.files.push(File { path, name, content: Content::OnDisk(entry.path()) });
            } else {
                self.odd(&entry.path(), below(name), below(path), &mut listing);
            }
        }
        let folders = folders.par_iter().map(|(folder, name, path)| self.folder(folder, name, path));
        for mut inner in folders.collect::<Result<Vec<_>, _>>()? {
            listing.files.append(&mut inner.files);
            listing.findings.append(&mut inner.findings);
            listing.has_links |= inner.has_links;
        }
        Ok(listing)
    }

    /// A link, or something that is neither file nor folder.
    fn odd(self, entry: &Path, name: String, path: String, listing: &mut Listing) {
        let finding = match resolve(entry, &name, self.boundary) {
            Resolved::Real(real) if real.is_file() => {
                listing.has_links = true;
                return listing.files.push(File { path, name, content: Content::OnDisk(real) });
            }
            Resolved::Real(real) if real.is_dir() => {
                let target = real.strip_prefix(self.boundary).unwrap_or(&real).to_string_lossy().into_owned();
                link_broken(&name, &target, "which is a folder")
            }
            Resolved::Real(_) => unreadable(&name, "it is not a regular file"),
            Resolved::Refused(finding) => finding,
            Resolved::Missing => unreadable(&name, "it is gone"),
        };
        listing.findings.push(finding);
    }
}
