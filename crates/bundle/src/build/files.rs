//! Lists and reads the datafiles and resources of a data repo, through the build cache.

use std::time::SystemTime;

use qontract_diagnostics::Diagnostic;

use super::cache::{CacheState, ChangeStats};
use super::context::SchemaContext;
use super::datafiles::{self, DatafileContext, Datafiles};
use super::resources::{self, UnencodedResource};
use crate::repo::{DirCache, Listing, NameFilter, PreviousListing, Repo, RepoError};

/// The datafiles and resources of a data repo.
pub struct RepoFiles<'k> {
    pub data: Datafiles,
    pub resources: Vec<UnencodedResource<'k>>,
    /// Directory listings of the datafiles and of the resources, for the cache.
    pub folders: [DirCache; 2],
    /// Whether one of the files is a symbolic link.
    pub has_links: bool,
}

impl<'k> RepoFiles<'k> {
    /// Reads all files, except those that did not change since `known` was stored. `started_at` is when the
    /// build started, if its results are cached.
    pub fn read(
        repo: &Repo,
        context: &SchemaContext,
        known: &'k CacheState,
        started_at: Option<SystemTime>,
        findings: &mut Vec<Diagnostic>,
    ) -> Result<Self, RepoError> {
        let layout = repo.layout();
        let [known_data, known_resources] = &known.folders;
        let before = |folders| started_at.map(|started_at| PreviousListing { dirs: folders, started_at });
        let mut listing = repo.list_cached(&layout.data, NameFilter::Documents, before(known_data))?;
        let has_links = listing.has_links;
        let data_folders = std::mem::take(&mut listing.dirs);
        let schema_index = context.schemas.index();
        let datafile_context = DatafileContext {
            cache: &known.datafiles,
            started_at,
            schema_index: &schema_index,
            types: &context.types,
        };
        let data = datafiles::read_all(listing, &datafile_context, findings);
        // The listing is not created earlier, because the listing of a Git revision holds the content of its
        // files in memory.
        let mut listing = match repo.list_cached(&layout.resources, NameFilter::All, before(known_resources))
        {
            // Resources are the only optional part of a data repo.
            Err(RepoError::Missing { .. }) => Listing::default(),
            other => other?,
        };
        let has_links = has_links || listing.has_links;
        let folders = [data_folders, std::mem::take(&mut listing.dirs)];
        let resources =
            resources::read_all(listing, &known.resources, started_at, &data.backrefs(), findings);
        Ok(Self { data, resources, folders, has_links })
    }

    /// Number of datafiles and number of resources.
    pub fn len(&self) -> (usize, usize) {
        (self.data.len(), self.resources.len())
    }

    /// Counts the files without a valid cache entry.
    pub fn change_stats(&self, known: &CacheState) -> ChangeStats {
        let mut stats = ChangeStats::default();
        self.data.count_changes(&known.datafiles, &mut stats);
        resources::count_changes(&self.resources, &known.resources, &mut stats);
        stats
    }
}
