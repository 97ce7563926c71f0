//! The data that integrations run on: opened once per run and pinned to one bundle.

mod remote;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use parking_lot::Mutex;
use qontract_bundle::diff::fields;
use qontract_bundle::{Bundle, Document, Layout, Repo, Sha256};
use qontract_config::Config;
use qontract_diagnostics::Sources;
use qontract_graphql::{Engine, SchemaCache, SchemaError};
use qontract_runtime::{BundleReader, LoadedBundle, SourceLocation};
use tokio::runtime::Handle;

use crate::bundle_analysis::{DifferenceLines, DifferencePlaces};
use crate::input::{Input, InputCheck, InputResolver, invalid_types_message};
use crate::line_cache::LineCache;
use crate::repo_cache;

use remote::RemoteBundle;

pub use remote::ServerConnection;

/// A pinned bundle that can be queried, with its source lines. A comparison uses two pinned bundles.
pub struct PinnedData {
    /// Executes queries against the bundle.
    pub source: Arc<dyn BundleReader>,
    input: Option<Input>,
    /// The sources of the text of files; `None` if the text is read from the input.
    sources: Option<Arc<dyn Sources + Send + Sync>>,
    /// The bundle, if it is on a server.
    remote: Option<Arc<RemoteBundle>>,
    /// Source locations in a bundle on a server, each with its `file:line` if that was requested.
    remote_lines: Mutex<HashMap<SourceLocation, String>>,
    layout: Layout,
    /// Whether the files of the bundle differ from those of its commit; computed on first use.
    modified: OnceLock<bool>,
}

impl PinnedData {
    /// Opens a data specifier. Fails before an engine is built if the data does not pass the check. The engine shares
    /// tables with the engine of `beside`, the data with which the opened data will be compared.
    pub fn open(
        resolver: &InputResolver<'_>,
        spec: &str,
        check: InputCheck,
        beside: Option<&PinnedData>,
    ) -> anyhow::Result<Self> {
        let input = resolver.open(spec, check)?;
        Self::of_input(input, &resolver.layout, beside, &resolver.schemas)
            .with_context(|| invalid_types_message(spec))
    }

    /// Opens a data specifier, which can be the sha of a bundle on this server.
    pub fn open_or_connect(
        resolver: &InputResolver<'_>,
        server: Option<&ServerConnection>,
        spec: &str,
        check: InputCheck,
        beside: Option<&PinnedData>,
    ) -> anyhow::Result<Self> {
        match server.filter(|_| is_served_sha(spec)) {
            Some(server) => Ok(Self::remote(server.base(spec)?)),
            None => Self::open(resolver, spec, check, beside),
        }
    }

    fn of_input(
        input: Input,
        layout: &Layout,
        beside: Option<&PinnedData>,
        schemas: &SchemaCache,
    ) -> Result<Self, SchemaError> {
        let beside = beside.and_then(|other| other.source.engine()).map(|engine| &**engine);
        let engine = input.engine(beside, schemas)?;
        Ok(Self::with_engine(input, Arc::new(engine), layout))
    }

    /// Creates pinned data from an input and its engine.
    pub fn with_engine(input: Input, engine: Arc<Engine>, layout: &Layout) -> Self {
        Self {
            source: Arc::new(LoadedBundle::new(engine)),
            input: Some(input),
            sources: None,
            remote: None,
            remote_lines: Mutex::default(),
            layout: layout.clone(),
            modified: OnceLock::new(),
        }
    }

    /// Uses these sources instead of the input to read the text of files.
    #[must_use]
    pub fn with_sources(self, sources: Arc<dyn Sources + Send + Sync>) -> Self {
        Self { sources: Some(sources), ..self }
    }

    /// Creates pinned data from a bundle of a data repo; `last` is the previous bundle of the data repo, with which
    /// tables are shared, and `schemas` is the cache with which the bundle was checked.
    pub fn of(
        bundle: Bundle,
        repo: Repo,
        layout: &Layout,
        last: Option<&PinnedData>,
        schemas: &SchemaCache,
    ) -> anyhow::Result<Self> {
        let input = Input { bundle, repo: Some(repo) };
        Self::of_input(input, layout, last, schemas).context("its GraphQL types are invalid")
    }

    /// The bundle; `None` if it is on a server.
    pub fn bundle(&self) -> Option<&Bundle> {
        self.input.as_ref().map(|input| &input.bundle)
    }

    /// Creates pinned data from a bundle on a server. Source lines are requested from the server.
    pub fn remote(bundle: RemoteBundle) -> Self {
        let bundle = Arc::new(bundle);
        Self {
            source: Arc::clone(&bundle) as _,
            input: None,
            sources: None,
            remote: Some(bundle),
            remote_lines: Mutex::default(),
            layout: Layout::default(),
            modified: OnceLock::new(),
        }
    }

    /// Whether the lines of source locations must be [requested](Self::prefetch_lines) before they are known.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Requests the lines of source locations in a bundle on a server, in one request. If the request fails, or if
    /// the server has no lines, only the files are known.
    pub fn prefetch_lines(&self, places: impl IntoIterator<Item = SourceLocation>) {
        let Some(remote) = &self.remote else { return };
        let is_missing = |place: &SourceLocation| !self.remote_lines.lock().contains_key(place);
        let places: BTreeSet<SourceLocation> = places.into_iter().filter(is_missing).collect();
        let places: Vec<SourceLocation> = places.into_iter().collect();
        let lines = remote.locate(&places);
        self.remote_lines.lock().extend(places.into_iter().zip(lines));
    }

    /// Whether the bundle was built from a directory whose files differed from the commit that was checked out. If
    /// so, the commit does not identify the bundle. Later changes to the directory have no effect.
    pub fn is_modified(&self) -> bool {
        *self.modified.get_or_init(|| {
            let Some(Input { bundle, repo: Some(repo) }) = &self.input else { return false };
            let Some(commit) = self.source.commit().filter(|_| repo.folder().is_some()) else { return false };
            differs_from_commit(repo, commit, bundle.source_digest())
        })
    }

    /// The commit, and whether files differed from it: `f85c9b3f0a12 (modified)`.
    pub fn commit(&self) -> Option<String> {
        let commit = self.source.commit()?;
        let mark = if self.is_modified() { " (modified)" } else { "" };
        Some(format!("{}{mark}", commit.get(..12).unwrap_or(commit)))
    }

    /// Whether the bundle has the file of a source location; always true for a bundle on a server.
    pub fn has_file(&self, place: &SourceLocation) -> bool {
        let Some(input) = &self.input else { return true };
        if place.resource {
            input.bundle.resource(&place.path).is_some()
        } else {
            input.bundle.datafile(&place.path).is_some()
        }
    }

    /// The smallest part of the value at a source location that contains all differences from `base`: in an entry,
    /// for example, the variable that was changed.
    ///
    /// A source location that is a whole file is not narrowed, because most of the file is unrelated to the reported
    /// item.
    fn narrow(&self, base: &Self, place: &SourceLocation) -> SourceLocation {
        let part = || {
            let (old, new) = (base.document(place)?, self.document(place)?);
            let changes = fields(&old.value, &new.value);
            let here = changes.iter().filter(|field| field.change.after().is_some());
            let below = here.filter_map(|field| field.pointer.strip_prefix(&*place.pointer));
            let mut parts = below.filter(|rest| rest.starts_with('/')).map(|rest| rest.split('/').skip(1));
            let first: Vec<&str> = parts.next()?.collect();
            let common = parts.fold(first.len(), |common, part| {
                part.zip(&first[..common]).take_while(|(one, other)| one == *other).count()
            });
            Some(first[..common].iter().flat_map(|step| ["/", step]).collect::<String>())
        };
        let is_part = !place.resource && !place.pointer.is_empty();
        place.below(&is_part.then(part).flatten().unwrap_or_default())
    }

    /// The part of the value at a source location that causes a difference from `base`: the part that differs or, for
    /// a whole file, the only changed line in it that affects the integration. `causes` contains all changes that
    /// affect the integration.
    fn narrow_to_cause(
        &self,
        base: &Self,
        place: &SourceLocation,
        causes: &[SourceLocation],
    ) -> SourceLocation {
        if place.resource || !place.pointer.is_empty() {
            return self.narrow(base, place);
        }
        let mut here = causes.iter().filter(|cause| !cause.resource && cause.path == place.path);
        match (here.next(), here.next()) {
            (Some(one), None) => one.clone(),
            _ => place.clone(),
        }
    }

    /// The first line of a resource that differs from `base`, if both bundles have the resource and its content
    /// differs.
    fn first_changed_line(&self, base: &Self, place: &SourceLocation) -> Option<usize> {
        let content = |side: &Self| {
            let bundle = &side.input.as_ref()?.bundle;
            place.resource.then(|| bundle.resource(&place.path)).flatten().map(|one| one.content.clone())
        };
        let (old, new) = (content(base)?, content(self)?);
        let is_same = |(old, new): &(&str, &str)| old == new;
        let common = old.lines().zip(new.lines()).take_while(is_same).count();
        (old != new).then_some(common + 1)
    }

    fn document(&self, place: &SourceLocation) -> Option<&Document> {
        self.input.as_ref()?.bundle.datafile(&place.path).map(|document| &**document)
    }

    /// Calls `work` with a function that returns the `file:line` of a source location, or only the file if the line
    /// is not known.
    pub fn with_lines<T>(&self, work: impl FnOnce(&dyn Fn(&SourceLocation) -> String) -> T) -> T {
        let lines = LineCache::default();
        work(&|place| self.line(&lines, place))
    }

    /// The `file:line` of a source location. The caller holds the cache of parsed files.
    pub fn line(&self, lines: &LineCache, place: &SourceLocation) -> String {
        if let Some(line) = self.remote_lines.lock().get(place) {
            return line.clone();
        }
        match (&self.sources, &self.input) {
            (Some(sources), _) if !place.resource => {
                lines.locate(&**sources, &self.file(place), &place.pointer)
            }
            (None, Some(input)) if !place.resource => lines.locate(input, &self.file(place), &place.pointer),
            _ => self.file(place),
        }
    }

    /// Whether lines can be looked up in this process: `false` for a bundle file and for a bundle on a server.
    pub fn has_lines(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.repo.is_some())
    }

    /// The file of a source location, as a path relative to the data repo.
    pub fn file(&self, place: &SourceLocation) -> String {
        let Self { layout, .. } = self;
        if place.resource { layout.resource(&place.path) } else { layout.datafile(&place.path) }
    }

    /// The name of a file in text for people: relative to the working directory if the data repo contains the working
    /// directory.
    pub fn display(&self, file: &str) -> String {
        let repo = self.input.as_ref().and_then(|input| input.repo.as_ref());
        repo.map_or_else(|| file.to_owned(), |repo| repo.display(file).into_owned())
    }

    /// The path in the bundle of a file of the data repo; other words are returned unchanged.
    pub fn path_of<'w>(&self, word: &'w str) -> &'w str {
        self.layout.path_of(word).unwrap_or(word)
    }
}

/// Whether a data specifier is the sha of a bundle and not a path.
fn is_served_sha(spec: &str) -> bool {
    spec.len() == 64 && spec.bytes().all(|digit| digit.is_ascii_hexdigit()) && !Path::new(spec).exists()
}

/// The server of the configuration, if one of these data specifiers is the sha of a bundle on this server.
pub fn server_of_specs(
    config: &Config,
    specs: &[&str],
    runtime: impl FnOnce() -> anyhow::Result<Handle>,
) -> anyhow::Result<Option<ServerConnection>> {
    let Some(graphql) = config.server(None).filter(|_| specs.iter().any(|spec| is_served_sha(spec))) else {
        return Ok(None);
    };
    ServerConnection::new(&graphql, runtime()?).map(Some)
}

/// Whether a data repo is a directory whose files differ from a commit. Used if the data repo could not be bundled.
pub fn is_modified(repo: &Repo, commit: &str) -> bool {
    repo.folder().is_some() && differs_from_commit(repo, commit, repo.source_digest().ok())
}

/// Whether the files of a data repo in a directory differ from those of a commit; `files` is the digest of the files.
/// Files that cannot be compared count as different.
fn differs_from_commit(repo: &Repo, commit: &str, files: Option<Sha256>) -> bool {
    files.is_none() || files != repo_cache::source_digest(repo, commit)
}

/// The base and the head of a comparison, with a cache of lines for each.
pub struct ComparedData<'a> {
    base: &'a PinnedData,
    head: &'a PinnedData,
    base_lines: LineCache,
    head_lines: LineCache,
    /// The `file:line` of the differences between two bundles on a server for which it was requested.
    remote_changes: Mutex<HashMap<SourceLocation, String>>,
    /// The `file:line` of other source locations in these bundles.
    remote_others: Mutex<HashMap<SourceLocation, String>>,
}

/// The source locations whose lines a report needs.
#[derive(Debug, Default)]
pub struct ReportPlaces {
    /// Source locations for which the line of the difference is shown.
    pub changes: Mutex<BTreeSet<SourceLocation>>,
    /// Source locations for which the line of the location itself is shown.
    pub others: Mutex<BTreeSet<SourceLocation>>,
}

impl<'a> ComparedData<'a> {
    /// Creates a comparison of `head` with `base`.
    pub fn new(base: &'a PinnedData, head: &'a PinnedData) -> Self {
        Self {
            base,
            head,
            base_lines: LineCache::default(),
            head_lines: LineCache::default(),
            remote_changes: Mutex::default(),
            remote_others: Mutex::default(),
        }
    }

    /// Requests the lines of a report about two bundles on a server, in one request. `collect` builds the report once
    /// to collect the source locations whose lines it needs. Does nothing if a bundle is in this process.
    pub fn prefetch(&self, causes: &[SourceLocation], collect: impl FnOnce(&ReportPlaces)) {
        let (Some(base), Some(head)) = (&self.base.remote, &self.head.remote) else { return };
        let places = ReportPlaces::default();
        collect(&places);
        let ReportPlaces { changes, others } = places;
        let changes: Vec<_> = changes.into_inner().into_iter().collect();
        let others: Vec<_> = others.into_inner().into_iter().collect();
        let request = DifferencePlaces { changes, others, causes: causes.to_vec() };
        let DifferenceLines { changes, others } = head.locate_differences(base, &request);
        *self.remote_changes.lock() = request.changes.into_iter().zip(changes).collect();
        *self.remote_others.lock() = request.others.into_iter().zip(others).collect();
    }

    /// The file of a source location, as a path relative to the data repo.
    pub fn file(&self, place: &SourceLocation) -> String {
        self.head.file(place)
    }

    /// The `file:line` of a source location, even if its value did not change. If only the base has the location, the
    /// line is that in the base.
    pub fn own_line(&self, place: &SourceLocation) -> String {
        let Self { base, head, base_lines, head_lines, .. } = self;
        if let Some(line) = self.remote_others.lock().get(place) {
            return line.clone();
        }
        if head.has_file(place) { head.line(head_lines, place) } else { base.line(base_lines, place) }
    }

    /// The `file:line` of the difference at a source location. If only the base has the location, the line is that in
    /// the base. `causes` contains all changes that affect the integration.
    pub fn line(&self, place: &SourceLocation, causes: &[SourceLocation]) -> String {
        let Self { base, head, base_lines, head_lines, .. } = self;
        if let Some(line) = self.remote_changes.lock().get(place) {
            return line.clone();
        }
        if !head.has_file(place) {
            return base.line(base_lines, place);
        }
        if let Some(line) = head.first_changed_line(base, place) {
            return format!("{}:{line}", head.file(place));
        }
        let place = head.narrow_to_cause(base, place, causes);
        let has = |side: &PinnedData| {
            side.document(&place).is_some_and(|one| one.value.pointer(&place.pointer).is_some())
        };
        // For a removed field, the line is the one in base.
        if !has(head) && has(base) { base.line(base_lines, &place) } else { head.line(head_lines, &place) }
    }
}

#[cfg(test)]
mod tests {
    use qontract_bundle::Pool;
    use qontract_testkit::{Scratch, example};

    use super::*;
    use crate::opened_repo::OpenedRepo;

    fn open(scratch: &Scratch) -> PinnedData {
        let opened = OpenedRepo::in_folder(scratch.path(), Layout::default()).expect("a data repo");
        let outcome = opened.bundle(&Pool::default(), qontract_bundle::BuildOptions::default());
        let bundle = outcome.expect("readable files").built.expect("no errors");
        PinnedData::of(bundle, opened.repo, &Layout::default(), None, &SchemaCache::default())
            .expect("valid types")
    }

    #[test]
    fn a_bundle_is_modified_if_its_own_files_differ_from_its_commit() {
        let scratch = Scratch::copy_of(&example());
        scratch.commit_all("all");
        let file = "data/services/billing/app.yml";
        let committed = scratch.read(file);
        let clean = open(&scratch);
        scratch.write(file, format!("# edited\n{committed}"));
        assert!(!clean.is_modified(), "the file was edited after bundling");
        let edited = open(&scratch);
        scratch.write(file, &committed);
        assert!(edited.is_modified(), "the edit was reverted after bundling");
        let clean = open(&scratch);
        scratch.write(file, format!("# edited\n{committed}"));
        scratch.commit_all("another");
        assert!(!clean.is_modified(), "the commit of the bundle is no longer checked out");
    }
}
