//! Lists and reads the files of a data repo: in a directory, or in a Git revision without a checkout.

mod dir_cache;
mod directory;
mod disk;
mod file_stamp;
mod findings;
mod layout;
mod names;
mod repo_stamp;
mod revision;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use qontract_diagnostics::{Diagnostic, Sources};
use rayon::prelude::*;

pub use dir_cache::DirCache;
pub(crate) use disk::{DiskPath, RootDir};
pub use file_stamp::FileStamp;
pub(crate) use findings::unreadable;
pub use layout::Layout;
pub(crate) use names::has_hidden_part;
pub use repo_stamp::RepoStamp;
pub use revision::{GitError, Revision, head_stamp, merge_base, missing_commits};

/// Maximum size of one file of a data repo, in bytes.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Maximum depth of directories below a part of a data repo.
pub const MAX_DEPTH: usize = 64;

/// A data repo in a directory, in four separate directories, or in a Git revision.
#[derive(Clone, Debug)]
pub struct Repo {
    tree: RepoTree,
    layout: Layout,
    /// The directory to which file names in findings are relative.
    display_base: Option<DisplayBase>,
}

/// Two absolute paths: `root` is the directory of the data repo, and files in findings are named relative to
/// `folder`.
#[derive(Clone, Debug)]
struct DisplayBase {
    folder: String,
    root: String,
}

#[derive(Clone, Debug)]
enum RepoTree {
    /// A directory. Symbolic links may point anywhere within it.
    Directory(PathBuf),
    /// Four separate locations. The target of a symbolic link must be in the same location as the link.
    SeparateParts,
    /// A revision of a Git repository.
    Revision(Revision),
}

/// A file of a data repo.
#[derive(Debug)]
pub struct RepoFile {
    /// Path within the part of the data repo, with a leading slash. It is the name of the file in the bundle.
    pub path: String,
    /// Path within the data repo, which is the name of the file in messages.
    pub name: String,
    content: RepoFileContent,
}

#[derive(Debug)]
enum RepoFileContent {
    OnDisk(DiskPath),
    InMemory(Vec<u8>),
    TooLarge(u64),
}

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileReadError {
    /// The file has this many bytes, more than [`MAX_FILE_BYTES`].
    #[error("it has {0} bytes; the maximum is {MAX_FILE_BYTES}")]
    TooLarge(u64),
    /// Opening or reading the file failed.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// Selects files of a directory by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFilter {
    /// YAML and JSON files; problems with other files are not reported.
    Documents,
    /// Every file.
    All,
}

impl NameFilter {
    pub(crate) fn matches(self, name: &str) -> bool {
        self == NameFilter::All || document_ending(name).is_some()
    }
}

/// The extension of a YAML or JSON file, in upper or lower case.
pub(crate) fn document_ending(name: &str) -> Option<&str> {
    let (_, ending) = name.rsplit_once('.')?;
    ["yml", "yaml", "json"].iter().any(|known| known.eq_ignore_ascii_case(ending)).then_some(ending)
}

/// The files of a directory, sorted by path, and findings about files that cannot be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// Files that can be read.
    pub files: Vec<RepoFile>,
    /// Broken links, names that are not UTF-8, and similar problems.
    pub findings: Vec<Diagnostic>,
    /// Whether one of the files is a symbolic link. The stamp of a link does not show changes to its target.
    pub has_links: bool,
    /// Directories to cache for the next listing; empty without a [`PreviousListing`].
    pub dirs: DirCache,
}

/// The previous listing: lets unchanged directories be taken from the cache.
#[derive(Clone, Copy, Debug)]
pub struct PreviousListing<'a> {
    /// The cached directories.
    pub dirs: &'a DirCache,
    /// A time before anything was read. Stamps that are not older than this are not trusted.
    pub started_at: SystemTime,
}

/// A part of the data repo that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// A folder or file of the layout is missing.
    #[error("`{name}` not found in the data repo")]
    Missing {
        /// The name of the part in the layout.
        name: String,
    },
    /// A folder cannot be listed.
    #[error("cannot list `{name}`")]
    List {
        /// The name of the folder in messages.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Git failed.
    #[error("cannot read the Git revision")]
    Git(#[from] GitError),
}

impl Repo {
    /// Creates a data repo from a directory.
    pub fn directory(root: impl Into<PathBuf>, layout: Layout) -> Self {
        Self { tree: RepoTree::Directory(root.into()), layout: layout.normalized(), display_base: None }
    }

    /// Creates a data repo whose four parts are at unrelated locations.
    pub fn with_separate_parts(layout: Layout) -> Self {
        Self { tree: RepoTree::SeparateParts, layout, display_base: None }
    }

    /// Creates a data repo from a Git revision.
    pub fn revision(revision: Revision, layout: Layout) -> Self {
        Self { tree: RepoTree::Revision(revision), layout: layout.normalized(), display_base: None }
    }

    /// Names files relative to `folder` in messages. Only for a data repo in a directory.
    #[must_use]
    pub fn displayed_from(mut self, folder: &Path) -> Self {
        let text = |path: &Path| path.canonicalize().ok()?.to_str().map(str::to_owned);
        if let (Some(folder), Some(root)) = (text(folder), self.folder().and_then(text)) {
            self.display_base = Some(DisplayBase { folder, root });
        }
        self
    }

    /// The directory of the data repo, if it is in one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.tree {
            RepoTree::Directory(root) => Some(root),
            RepoTree::SeparateParts | RepoTree::Revision(_) => None,
        }
    }

    /// The locations of the parts of the data repo.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Lists the files of the part `name`.
    pub fn list(&self, name: &str, names: NameFilter) -> Result<Listing, RepoError> {
        self.list_cached(name, names, None)
    }

    /// Lists the files of the part `name`; directories with an unchanged stamp are taken from the previous
    /// listing.
    pub fn list_cached(
        &self,
        name: &str,
        names: NameFilter,
        before: Option<PreviousListing<'_>>,
    ) -> Result<Listing, RepoError> {
        let wanted = directory::ListOptions { names, previous: before };
        let mut listing = match &self.tree {
            RepoTree::Directory(root) => directory::list(&root.join(name), Some(root), name, wanted)?,
            RepoTree::SeparateParts => directory::list(Path::new(name), None, name, wanted)?,
            RepoTree::Revision(revision) => revision.list(name, names)?,
        };
        listing.files.par_sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// Whether `name` is a symbolic link or is below one.
    pub(crate) fn is_behind_link(&self, name: &str) -> bool {
        let Some(root) = self.folder() else { return false };
        let real = |path: &Path| path.canonicalize().ok();
        real(&root.join(name)) != real(root).map(|root| root.join(name))
    }

    /// The single file `name`. A link that must not be followed is a finding.
    pub fn file(&self, name: &str) -> Result<Result<RepoFile, Box<Diagnostic>>, RepoError> {
        let content = match &self.tree {
            RepoTree::Directory(root) => directory::file(&root.join(name), Some(root), name)?,
            RepoTree::SeparateParts => directory::file(Path::new(name), None, name)?,
            RepoTree::Revision(revision) => revision.file(name)?,
        };
        Ok(content.map(|content| RepoFile { path: format!("/{name}"), name: name.to_owned(), content }))
    }
}

impl Sources for Repo {
    fn text(&self, file: &str) -> Option<Cow<'_, str>> {
        let file = self.file(file).ok()?.ok()?;
        let bytes = file.read().ok()?;
        Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn display<'f>(&self, file: &'f str) -> Cow<'f, str> {
        match &self.display_base {
            Some(DisplayBase { folder, root }) => {
                Cow::Owned(layout::relative(folder, &format!("{root}/{file}")))
            }
            None => Cow::Borrowed(file),
        }
    }
}

impl RepoFile {
    /// A file on disk, with its name in the data repo and its path in its part.
    pub(crate) fn on_disk(name: String, path: &str, place: DiskPath) -> Self {
        Self { path: path.to_owned(), name, content: RepoFileContent::OnDisk(place) }
    }

    /// A file whose content is not needed.
    pub(crate) fn without_content(name: String, path: &str) -> Self {
        Self { path: path.to_owned(), name, content: RepoFileContent::InMemory(Vec::new()) }
    }

    /// The file stamp, if the file is on disk and the platform has stamps.
    pub fn file_stamp(&self) -> Option<FileStamp> {
        match &self.content {
            RepoFileContent::OnDisk(place) => place.file_stamp(),
            RepoFileContent::InMemory(_) | RepoFileContent::TooLarge(_) => None,
        }
    }

    /// Reads the bytes of the file.
    pub fn read(&self) -> Result<Cow<'_, [u8]>, FileReadError> {
        self.read_with_stamp().map(|(bytes, _)| bytes)
    }

    /// Reads the bytes of the file. Also returns the stamp that the file had before the read.
    pub(crate) fn read_with_stamp(&self) -> Result<(Cow<'_, [u8]>, Option<FileStamp>), FileReadError> {
        match &self.content {
            RepoFileContent::InMemory(bytes) => Ok((Cow::Borrowed(bytes), None)),
            RepoFileContent::TooLarge(size) => Err(FileReadError::TooLarge(*size)),
            RepoFileContent::OnDisk(place) => {
                place.read_with_stamp().map(|(bytes, stamp)| (Cow::Owned(bytes), stamp))
            }
        }
    }
}
