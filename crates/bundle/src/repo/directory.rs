//! Lists directories on disk, through a cache of unchanged directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qontract_diagnostics::Diagnostic;
use rayon::prelude::*;

use super::dir_cache::{CachedDir, DirCache};
use super::disk::{DiskPath, RootDir};
use super::file_stamp::FileStamp;
use super::findings::{link_broken, link_outside, too_deep, unreadable};
use super::names::{has_hidden_part, is_hidden};
use super::{Listing, MAX_DEPTH, NameFilter, PreviousListing, RepoError, RepoFile, RepoFileContent};

/// Lists the files below `folder`, which is called `name` in messages. Links may point anywhere within
/// `root`, or within the directory itself if it is not part of a data repo.
pub fn list(
    folder: &Path,
    root: Option<&Path>,
    name: &str,
    wanted: ListOptions<'_>,
) -> Result<Listing, RepoError> {
    let boundary = boundary(folder, root, name).unwrap_or_else(|| folder.to_owned());
    let boundary = boundary.canonicalize().map_err(|_| RepoError::Missing { name: name.to_owned() })?;
    let refused = |finding| Ok(Listing { findings: vec![finding], ..Listing::default() });
    match resolve(folder, name, &boundary) {
        ResolvedPath::Missing => Err(RepoError::Missing { name: name.to_owned() }),
        ResolvedPath::Refused(finding) => refused(finding),
        ResolvedPath::Real(real) if real.is_dir() => {
            let (root, disk) = below(&boundary, &real, name)?;
            let place = DirLocation { disk, name: name.to_owned(), path: String::new() };
            Ok(DirListing::merge(DirWalk { root: &root, options: wanted }.list_all(place)?))
        }
        ResolvedPath::Real(_) => refused(unreadable(name, "it is not a directory")),
    }
}

/// The single file at `path`.
pub fn file(
    path: &Path,
    root: Option<&Path>,
    name: &str,
) -> Result<Result<RepoFileContent, Box<Diagnostic>>, RepoError> {
    let missing = || RepoError::Missing { name: name.to_owned() };
    let boundary =
        boundary(path, root, name).or_else(|| Some(path.canonicalize().ok()?.parent()?.to_owned()));
    let boundary = boundary.and_then(|boundary| boundary.canonicalize().ok()).ok_or_else(missing)?;
    match resolve(path, name, &boundary) {
        ResolvedPath::Missing => Err(missing()),
        ResolvedPath::Refused(finding) => Ok(Err(Box::new(finding))),
        ResolvedPath::Real(real) if real.is_file() => {
            Ok(Ok(RepoFileContent::OnDisk(below(&boundary, &real, name)?.1)))
        }
        ResolvedPath::Real(_) => Ok(Err(Box::new(unreadable(name, "it is not a regular file")))),
    }
}

/// Opens the boundary, and the path relative to it. `real` has no links.
fn below(boundary: &Path, real: &Path, name: &str) -> Result<(Arc<RootDir>, DiskPath), RepoError> {
    let root = RootDir::open(boundary).map_err(|source| RepoError::List { name: name.to_owned(), source })?;
    let disk = DiskPath::of(&root, real).ok_or_else(|| RepoError::Missing { name: name.to_owned() })?;
    Ok((root, disk))
}

/// The root of the data repo, if the part `name` is within it. A part at another location is its own
/// boundary.
fn boundary(path: &Path, root: Option<&Path>, name: &str) -> Option<PathBuf> {
    let inside = Path::new(name).is_relative() && !name.split('/').any(|part| part == "..");
    root.filter(|root| inside && path.starts_with(root)).map(Path::to_owned)
}

/// The target of a path.
enum ResolvedPath {
    Missing,
    Refused(Diagnostic),
    Real(PathBuf),
}

/// Follows links as long as they stay within `boundary` and out of hidden directories.
fn resolve(path: &Path, name: &str, boundary: &Path) -> ResolvedPath {
    let Ok(kind) = fs::symlink_metadata(path) else { return ResolvedPath::Missing };
    let target = || {
        fs::read_link(path).map_or_else(|_| name.to_owned(), |target| target.to_string_lossy().into_owned())
    };
    match path.canonicalize() {
        Err(_) if kind.is_symlink() => {
            ResolvedPath::Refused(link_broken(name, &target(), "which does not exist"))
        }
        Err(_) => ResolvedPath::Missing,
        Ok(real) => match real.strip_prefix(boundary) {
            Ok(inside) if !has_hidden_part(&inside.to_string_lossy()) => ResolvedPath::Real(real),
            _ => ResolvedPath::Refused(link_outside(name, &target())),
        },
    }
}

/// Options for listing a directory.
#[derive(Clone, Copy)]
pub struct ListOptions<'a> {
    pub names: NameFilter,
    /// The previous listing, if listings are cached.
    pub previous: Option<PreviousListing<'a>>,
}

/// Walks directories in parallel.
#[derive(Clone, Copy)]
struct DirWalk<'a> {
    root: &'a Arc<RootDir>,
    options: ListOptions<'a>,
}

/// The result of listing one directory.
#[derive(Default)]
struct DirListing {
    listing: Listing,
    /// The cache entry, if the directory can be cached.
    folder: Option<(Arc<str>, CachedDir)>,
}

impl DirListing {
    fn merge(all: Vec<Self>) -> Listing {
        let mut whole = Listing::default();
        whole.files.reserve(all.iter().map(|found| found.listing.files.len()).sum());
        let mut folders = Vec::new();
        for DirListing { mut listing, folder } in all {
            whole.files.append(&mut listing.files);
            whole.findings.append(&mut listing.findings);
            whole.has_links |= listing.has_links;
            folders.extend(folder);
        }
        Listing { dirs: DirCache::new(folders), ..whole }
    }
}

/// A directory: its location on disk, its name in messages, and its path in the bundle.
struct DirLocation {
    disk: DiskPath,
    name: String,
    path: String,
}

impl DirLocation {
    fn folder(&self, entry: &str) -> Self {
        let Self { disk, name, path } = self;
        Self { disk: disk.join(entry), name: format!("{name}/{entry}"), path: format!("{path}/{entry}") }
    }

    fn file(&self, entry: &str) -> RepoFile {
        let Self { disk, name, path } = self.folder(entry);
        RepoFile { path, name, content: RepoFileContent::OnDisk(disk) }
    }
}

impl DirWalk<'_> {
    /// Lists a directory and everything below it, level by level, so that the stack does not grow with the
    /// depth.
    fn list_all(self, top: DirLocation) -> Result<Vec<DirListing>, RepoError> {
        let (mut all, mut level) = (Vec::new(), vec![top]);
        for depth in 0.. {
            if depth > MAX_DEPTH {
                let findings = level.iter().map(|place| too_deep(&place.name)).collect();
                all.push(DirListing { listing: Listing { findings, ..Listing::default() }, folder: None });
                break;
            }
            let listed = level.par_iter().map(|place| self.list_dir(place));
            let listed: Vec<(DirListing, Vec<DirLocation>)> = listed.collect::<Result<_, _>>()?;
            level = Vec::new();
            for (found, folders) in listed {
                all.push(found);
                level.extend(folders);
            }
            if level.is_empty() {
                break;
            }
        }
        Ok(all)
    }

    /// Lists one directory. Also returns its subdirectories.
    fn list_dir(self, place: &DirLocation) -> Result<(DirListing, Vec<DirLocation>), RepoError> {
        let mut found = DirListing::default();
        // The stamp is taken before the directory is read, so that a later change results in a different stamp.
        let stamp = self.options.previous.and_then(|_| place.disk.file_stamp());
        let cached = stamp.and_then(|stamp| self.options.previous?.dirs.find(&place.path, stamp));
        let folders = if let Some((path, cached)) = cached {
            let mut folders = Vec::new();
            for entry in cached.entries.split_terminator('\0') {
                match entry.strip_suffix('/') {
                    Some(entry) => folders.push(place.folder(entry)),
                    None => found.listing.files.push(place.file(entry)),
                }
            }
            found.folder = Some((path, cached));
            folders
        } else {
            self.read_dir(place, stamp, &mut found)?
        };
        Ok((found, folders))
    }

    /// Reads a directory and returns its subdirectories. `stamp` is the stamp that the directory had before
    /// the read. A directory is cached only if the stamp is trustworthy and it contains only plain files and
    /// directories with UTF-8 names.
    fn read_dir(
        self,
        place: &DirLocation,
        stamp: Option<FileStamp>,
        found: &mut DirListing,
    ) -> Result<Vec<DirLocation>, RepoError> {
        let list = |source| RepoError::List { name: place.name.clone(), source };
        let DirListing { listing, folder } = found;
        let is_settled = |stamp: &FileStamp| {
            self.options.previous.is_some_and(|before| stamp.is_trustworthy(before.started_at))
        };
        let mut entries = stamp.filter(is_settled).map(|stamp| (stamp, String::new()));
        let mut folders = Vec::new();
        for (file_name, kind) in place.disk.entries().map_err(list)? {
            let Some(file_name) = file_name.to_str() else {
                let shown = format!("{}/{}", place.name, file_name.to_string_lossy());
                if kind.is_dir() || self.options.names.matches(&shown) {
                    listing.findings.push(unreadable(&shown, "its name is not UTF-8"));
                    entries = None;
                }
                continue;
            };
            if is_hidden(file_name) || !kind.is_dir() && !self.options.names.matches(file_name) {
                continue;
            }
            if kind.is_dir() {
                folders.push(place.folder(file_name));
            } else if kind.is_file() {
                listing.files.push(place.file(file_name));
            } else {
                let RepoFile { path, name, .. } = place.file(file_name);
                self.list_special(&place.disk.join(file_name).path(), name, path, listing);
                entries = None;
            }
            if let Some((_, entries)) = &mut entries {
                entries.push_str(file_name);
                entries.push_str(if kind.is_dir() { "/\0" } else { "\0" });
            }
        }
        *folder = entries.map(|(file_stamp, entries)| {
            (Arc::from(place.path.as_str()), CachedDir { file_stamp, entries: entries.into() })
        });
        Ok(folders)
    }

    /// Handles a link, or an entry that is neither a file nor a directory.
    fn list_special(self, entry: &Path, name: String, path: String, listing: &mut Listing) {
        let boundary = self.root.path();
        let finding = match resolve(entry, &name, boundary) {
            ResolvedPath::Real(real) if real.is_file() => match DiskPath::of(self.root, &real) {
                Some(disk) => {
                    listing.has_links = true;
                    return listing.files.push(RepoFile {
                        path,
                        name,
                        content: RepoFileContent::OnDisk(disk),
                    });
                }
                None => unreadable(&name, "it no longer exists"),
            },
            ResolvedPath::Real(real) if real.is_dir() => {
                let target = real.strip_prefix(boundary).unwrap_or(&real).to_string_lossy().into_owned();
                link_broken(&name, &target, "which is a directory")
            }
            ResolvedPath::Real(_) => unreadable(&name, "it is not a regular file"),
            ResolvedPath::Refused(finding) => finding,
            ResolvedPath::Missing => unreadable(&name, "it no longer exists"),
        };
        listing.findings.push(finding);
    }
}
