//! The files of a data repo: in a directory, or in a Git revision without a checkout.

mod directory;
mod disk;
mod folders;
mod layout;
mod revision;
mod sight;
mod stamp;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use qontract_diagnostics::{Diagnostic, Sources, code};
use rayon::prelude::*;

pub(crate) use disk::{DiskPath, Root};
pub use folders::Folders;
pub use layout::Layout;
pub use revision::{GitError, Revision, head_stamp, merge_base};
pub use sight::Sight;
pub use stamp::RepoStamp;

/// Most bytes of one file of a data repo.
pub const MOST_BYTES: u64 = 8 << 20;

/// Most levels of folders below a part of a data repo.
pub const MAX_DEPTH: usize = 64;

/// A data repo, wherever it is.
#[derive(Clone, Debug)]
pub struct Repo {
    tree: Tree,
    layout: Layout,
    /// Where people read findings.
    seen_from: Option<SeenFrom>,
}

/// Two absolute paths: files are named relative to the first, and are below the second.
#[derive(Clone, Debug)]
struct SeenFrom {
    folder: String,
    root: String,
}

#[derive(Clone, Debug)]
enum Tree {
    /// A directory. Links may lead anywhere within it.
    Directory(PathBuf),
    /// Four places that have nothing in common. Links stay within their own.
    Places,
    /// A revision of a Git repository.
    Revision(Revision),
}

/// A file of a data repo.
#[derive(Debug)]
pub struct File {
    /// Path within its folder, with a leading slash: how the bundle calls it.
    pub path: String,
    /// Path within the data repo: how people call it.
    pub name: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    OnDisk(DiskPath),
    InMemory(Vec<u8>),
    TooLarge(u64),
}

/// What came of reading a file.
pub enum Bytes<'a> {
    /// Its bytes.
    Whole(Cow<'a, [u8]>),
    /// It has more bytes than a file may have.
    TooLarge(u64),
}

/// Which files of a folder are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// YAML and JSON; what is wrong with other files is not reported.
    Documents,
    /// Every file.
    All,
}

impl Names {
    pub(crate) fn wants(self, name: &str) -> bool {
        self == Names::All || document_ending(name).is_some()
    }
}

/// The ending of a YAML or JSON file, in whatever case.
pub(crate) fn document_ending(name: &str) -> Option<&str> {
    let (_, ending) = name.rsplit_once('.')?;
    ["yml", "yaml", "json"].iter().any(|known| known.eq_ignore_ascii_case(ending)).then_some(ending)
}

/// The files of a folder, by path, and what was wrong with the others.
#[derive(Debug, Default)]
pub struct Listing {
    /// Files that can be read.
    pub files: Vec<File>,
    /// Links that lead nowhere, names that are no text, and the like.
    pub findings: Vec<Diagnostic>,
    /// Whether one of the files is a link: it changes with another.
    pub has_links: bool,
    /// Folders that need not be listed again, if that was to be remembered.
    pub folders: Folders,
}

/// What is remembered of folders from listing to listing.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// Those that were listed before.
    pub folders: &'a Folders,
    /// A time before anything was looked at.
    pub begun: SystemTime,
}

/// A part of the data repo that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// A folder or file of the layout is missing.
    #[error("there is no `{name}` in the data repo")]
    Missing {
        /// Which one.
        name: String,
    },
    /// A folder cannot be listed.
    #[error("cannot list `{name}`")]
    List {
        /// Which one.
        name: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Git did not answer.
    #[error("cannot read the Git revision")]
    Git(#[from] GitError),
}

impl Repo {
    /// The data repo in a directory.
    pub fn directory(root: impl Into<PathBuf>, layout: Layout) -> Self {
        Self { tree: Tree::Directory(root.into()), layout: layout.normal(), seen_from: None }
    }

    /// A data repo whose parts are at any four places.
    pub fn places(layout: Layout) -> Self {
        Self { tree: Tree::Places, layout, seen_from: None }
    }

    /// The data repo in a Git revision.
    pub fn revision(revision: Revision, layout: Layout) -> Self {
        Self { tree: Tree::Revision(revision), layout: layout.normal(), seen_from: None }
    }

    /// The data repo in a directory, whose files are named relative to `folder` in text for people.
    #[must_use]
    pub fn seen_from(mut self, folder: &Path) -> Self {
        let text = |path: &Path| path.canonicalize().ok()?.to_str().map(str::to_owned);
        if let (Some(folder), Some(root)) = (text(folder), self.folder().and_then(text)) {
            self.seen_from = Some(SeenFrom { folder, root });
        }
        self
    }

    /// The directory that it is in, if it is in one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.tree {
            Tree::Directory(root) => Some(root),
            Tree::Places | Tree::Revision(_) => None,
        }
    }

    /// Where its parts are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The files of the folder `name`.
    pub fn list(&self, name: &str, names: Names) -> Result<Listing, RepoError> {
        self.list_again(name, names, None)
    }

    /// The same, for who has listed it before.
    pub fn list_again(
        &self,
        name: &str,
        names: Names,
        before: Option<Before<'_>>,
    ) -> Result<Listing, RepoError> {
        let wanted = directory::Wanted { names, before };
        let mut listing = match &self.tree {
            Tree::Directory(root) => directory::list(&root.join(name), Some(root), name, wanted)?,
            Tree::Places => directory::list(Path::new(name), None, name, wanted)?,
            Tree::Revision(revision) => revision.list(name, names)?,
        };
        listing.files.par_sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// Whether the files of two data repos differ, in any part of the layout.
    pub fn differs(&self, other: &Repo) -> Result<bool, RepoError> {
        let Layout { data, resources, schemas, graphql } = &self.layout;
        for part in [data, resources, schemas] {
            let (own, others) = (self.list(part, Names::All), other.list(part, Names::All));
            let (own, others) = match (own, others) {
                (Err(RepoError::Missing { .. }), Err(RepoError::Missing { .. })) => continue,
                (Err(RepoError::Missing { .. }), Ok(_)) | (Ok(_), Err(RepoError::Missing { .. })) => {
                    return Ok(true);
                }
                (own, others) => (own?.files, others?.files),
            };
            if own.len() != others.len()
                || own.par_iter().zip(&others).any(|(own, other)| !own.is_same(other))
            {
                return Ok(true);
            }
        }
        match (self.file(graphql)?, other.file(graphql)?) {
            (Ok(own), Ok(other)) => Ok(!own.is_same(&other)),
            (own, other) => Ok(own.is_ok() != other.is_ok()),
        }
    }

    /// Whether `name` is a link, or below one.
    pub(crate) fn leads_elsewhere(&self, name: &str) -> bool {
        let Some(root) = self.folder() else { return false };
        let real = |path: &Path| path.canonicalize().ok();
        real(&root.join(name)) != real(root).map(|root| root.join(name))
    }

    /// The single file `name`; a link that must not be followed is a finding.
    pub fn file(&self, name: &str) -> Result<Result<File, Box<Diagnostic>>, RepoError> {
        let content = match &self.tree {
            Tree::Directory(root) => directory::file(&root.join(name), Some(root), name)?,
            Tree::Places => directory::file(Path::new(name), None, name)?,
            Tree::Revision(revision) => revision.file(name)?,
        };
        Ok(content.map(|content| File { path: format!("/{name}"), name: name.to_owned(), content }))
    }
}

impl Sources for Repo {
    fn text(&self, file: &str) -> Option<Cow<'_, str>> {
        match self.file(file).ok()?.ok()?.read().ok()? {
            Bytes::Whole(bytes) => Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())),
            Bytes::TooLarge(_) => None,
        }
    }

    fn display<'f>(&self, file: &'f str) -> Cow<'f, str> {
        match &self.seen_from {
            Some(SeenFrom { folder, root }) => {
                Cow::Owned(layout::relative(folder, &format!("{root}/{file}")))
            }
            None => Cow::Borrowed(file),
        }
    }
}

impl File {
    /// The file at `place` on disk, which has this name in the data repo and this path in its part.
    pub(crate) fn on_disk(name: String, path: &str, place: DiskPath) -> Self {
        Self { path: path.to_owned(), name, content: Content::OnDisk(place) }
    }

    /// A file whose content is not needed.
    pub(crate) fn without_content(name: String, path: &str) -> Self {
        Self { path: path.to_owned(), name, content: Content::InMemory(Vec::new()) }
    }

    /// How it looks, if it is on disk and looks tell anything there.
    pub fn sight(&self) -> Option<Sight> {
        match &self.content {
            Content::OnDisk(place) => place.sight(),
            Content::InMemory(_) | Content::TooLarge(_) => None,
        }
    }

    /// Whether two files have the same path and the same bytes; one that cannot be read is not the same as any other.
    fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
            && match (self.read(), other.read()) {
                (Ok(Bytes::Whole(own)), Ok(Bytes::Whole(other))) => own == other,
                (Ok(Bytes::TooLarge(own)), Ok(Bytes::TooLarge(other))) => own == other,
                _ => false,
            }
    }

    /// Its bytes.
    pub fn read(&self) -> io::Result<Bytes<'_>> {
        self.look().map(|(bytes, _)| bytes)
    }

    /// Its bytes, and how it looked before they were read.
    pub(crate) fn look(&self) -> io::Result<(Bytes<'_>, Option<Sight>)> {
        match &self.content {
            Content::InMemory(bytes) => Ok((Bytes::Whole(Cow::Borrowed(bytes)), None)),
            Content::TooLarge(size) => Ok((Bytes::TooLarge(*size), None)),
            Content::OnDisk(place) => {
                let disk::Opened { sight, bytes } = place.read()?;
                let bytes = match bytes {
                    Ok(bytes) => Bytes::Whole(Cow::Owned(bytes)),
                    Err(size) => Bytes::TooLarge(size),
                };
                Ok((bytes, sight))
            }
        }
    }
}

/// Whether a file or folder of this name is passed over.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Whether a path of the data repo has a part that is passed over.
pub(crate) fn has_hidden_part(path: &str) -> bool {
    path.split('/').any(is_hidden)
}

fn link_outside(name: &str, target: &str) -> Diagnostic {
    let message = format!("the link leads to `{target}`, which is not part of the data repo");
    Diagnostic::new(code::LINK_OUTSIDE, message).in_file(name)
}

fn link_broken(name: &str, target: &str, why: &str) -> Diagnostic {
    Diagnostic::new(code::LINK_BROKEN, format!("the link leads to `{target}`, {why}")).in_file(name)
}

/// A folder that is nested too deeply to be listed.
fn too_deep(name: &str) -> Diagnostic {
    let message = format!("the folder is nested more than {MAX_DEPTH} levels deep, and is not read");
    Diagnostic::new(code::FOLDER_DEPTH, message).in_file(name).hint("move it up, or remove it")
}

/// A file that cannot be read.
pub(crate) fn unreadable(name: &str, why: &str) -> Diagnostic {
    Diagnostic::new(code::UNREADABLE, format!("the file cannot be read: {why}")).in_file(name)
}
