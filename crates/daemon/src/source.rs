//! Data sources of loops: a watched data repo, or a server. The last valid bundle is used until a newer bundle is
//! valid.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use qontract_bundle::{BuildOptions, Bundle, Layout, MIN_CACHED_FILES, Pool, Repo, RepoStamp, Sha256};
use qontract_diagnostics::{Report, render};
use qontract_graphql::SchemaCache;
use tokio::sync::watch;

use crate::data_validity::{DataErrors, DataReporter, DataValidity, InvalidData, ValidityChange};
use crate::opened_repo::OpenedRepo;
use crate::pinned_data::{PinnedData, ServerConnection};
use crate::reconciled_data::OpenError;
use crate::repo_cache::{LazyValidationCache, RepoCache};
use crate::validation::{self, CheckedBundle, InputCheck};
use crate::watcher::{self, RepoWatcher, WakeReason};

/// A data source of loops.
pub trait DataSource: Send + Sync {
    /// The data of the next run.
    fn current(&self) -> anyhow::Result<Arc<PinnedData>>;
    /// Subscribes to a counter that grows with each new bundle.
    fn subscribe(&self) -> watch::Receiver<u64>;
    /// The invalid data, if an older bundle is used instead. A bundle file or a server never has invalid data,
    /// because its bundles were validated before.
    fn invalid(&self) -> Option<InvalidData> {
        None
    }
    /// An identity of the data source that is stable across restarts; `None` if its earlier bundles cannot be read
    /// again.
    fn identity(&self) -> Option<String> {
        None
    }
    /// Opens an earlier bundle of the source; `None` if the source has no earlier bundles.
    fn reopen(&self, _sha: &str) -> Option<Result<PinnedData, OpenError>> {
        None
    }
    /// The sha of the bundle in use, if it is available without opening the data.
    fn bundle_in_use(&self) -> Option<String> {
        None
    }
}

/// A watched data repo. Data that cannot be bundled or has errors is not used; the last valid bundle stays in use.
pub struct WatchedRepo {
    repo: PathBuf,
    layout: Layout,
    pool: Pool,
    /// The schema of the last bundle, with which the next one is checked if its types are equal.
    schemas: SchemaCache,
    state: Mutex<RepoState>,
    /// The cache of a build for the next build, so that only changed files are read. The lock is held during a build.
    /// `None` for small data repos.
    cache: Mutex<Option<RepoCache>>,
    generation: watch::Sender<u64>,
    /// Reports whether the data is valid.
    reporter: OnceLock<DataReporter>,
}

#[derive(Default)]
struct RepoState {
    /// Digest of the files' metadata at the last poll; `None` if file events arrived since then.
    polled_digest: Option<Sha256>,
    /// Number of files.
    files: usize,
    /// Duration of the last poll, without the time that it waited for files to settle.
    poll_duration: Duration,
    /// The findings of the last build, if the data was invalid.
    last_findings: Option<String>,
    validity: DataValidity,
    current: Option<Arc<PinnedData>>,
}

/// The result of polling a data repo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollResult {
    /// No file changed.
    Unchanged,
    /// A new bundle is in use.
    New,
    /// Files changed, and the data is invalid, so the last valid bundle stays in use.
    Invalid,
    /// The data is still invalid, with findings that were already shown.
    StillInvalid,
    /// The data is valid again and equals the bundle in use.
    ValidAgain,
    /// Files changed while the bundle was built, so the bundle is not used.
    Unsettled,
}

/// The result of building a bundle.
enum RepoBuild {
    /// The data is valid.
    Valid { bundle: Bundle, repo: Box<Repo> },
    /// The data is invalid, so there is no bundle.
    Invalid(InvalidFindings),
}

/// The findings of invalid data.
struct InvalidFindings {
    /// The text of all findings.
    text: String,
    errors: DataErrors,
}

impl WatchedRepo {
    /// Creates the source for the data repo in a directory, without reading it.
    pub fn new(repo: PathBuf, layout: Layout) -> Self {
        let (generation, _) = watch::channel(0);
        Self {
            repo,
            layout,
            pool: Pool::default(),
            schemas: SchemaCache::default(),
            state: Mutex::default(),
            cache: Mutex::default(),
            generation,
            reporter: OnceLock::new(),
        }
    }

    /// Sets the reporter to which changes in validity are reported. Later calls have no effect.
    pub fn report_to(&self, reporter: DataReporter) {
        let _ = self.reporter.set(reporter);
    }

    /// Updates the validity of the data and reports a change.
    fn update_validity(&self, update: impl FnOnce(&mut DataValidity, Timestamp) -> Option<ValidityChange>) {
        let now = Timestamp::now();
        let (change, invalid, bundle) = {
            let mut state = self.lock();
            let change = update(&mut state.validity, now);
            let bundle = state.current.as_ref().map(|side| side.source.sha().to_owned());
            (change, state.validity.invalid().cloned(), bundle)
        };
        // The lock is not held while reporting, because runs need it and writing a log may be slow.
        if let (Some(change), Some(reporter)) = (change, self.reporter.get()) {
            reporter.report(&change, invalid.as_ref(), bundle.as_deref(), now);
        }
    }

    /// The directory of the data repo.
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    /// Rebuilds the bundle if files changed and uses the new bundle if it is valid. Findings are passed to `show`.
    pub fn poll(&self, show: &(dyn Fn(&str) + Sync)) -> anyhow::Result<PollResult> {
        self.poll_after(Duration::ZERO, show)
    }

    /// Waits until no file has changed for `quiet` and rebuilds the bundle if files changed since the last build.
    fn poll_after(&self, quiet: Duration, show: &(dyn Fn(&str) + Sync)) -> anyhow::Result<PollResult> {
        let begun = Instant::now();
        let RepoStamp { digest: seen, files } = RepoStamp::of(self.folders(), SystemTime::now());
        {
            let mut state = self.lock();
            state.files = files;
            state.poll_duration = begun.elapsed();
            if state.polled_digest == Some(seen) {
                return Ok(PollResult::Unchanged);
            }
        }
        let deadline = Instant::now() + watcher::MAX_SETTLE;
        let result = loop {
            watcher::await_git(&self.repo);
            // The stamp gets a time after all writes, so that equal files have equal stamps.
            let stamp = || RepoStamp::of(self.folders(), SystemTime::now() + Duration::from_hours(24));
            let before = stamp();
            std::thread::sleep(quiet);
            let mut is_settled = || stamp() == before;
            match self.rebuild(&WakeReason::Elapsed, show, &mut is_settled)? {
                PollResult::Unsettled if Instant::now() < deadline => {
                    std::thread::sleep(watcher::DEBOUNCE_REMOVALS);
                }
                // The next poll tries again.
                PollResult::Unsettled => return Ok(PollResult::Unsettled),
                result => break result,
            }
        };
        // The digest is not stored after an error, so that the next poll builds again.
        self.lock().polled_digest = Some(seen);
        Ok(result)
    }

    /// Rebuilds the bundle without checking whether files changed. The new bundle is used if it is valid and no file
    /// changed while it was built.
    fn rebuild(
        &self,
        woken: &WakeReason,
        show: &(dyn Fn(&str) + Sync),
        is_settled: &mut dyn FnMut() -> bool,
    ) -> anyhow::Result<PollResult> {
        let built = self.build_incrementally(match woken {
            WakeReason::Changed(files) => files.as_ref(),
            WakeReason::Elapsed => None,
        });
        // A file may be missing because it is being replaced.
        if !is_settled() {
            return Ok(PollResult::Unsettled);
        }
        let (bundle, repo) = match built? {
            RepoBuild::Valid { bundle, repo } => (bundle, repo),
            RepoBuild::Invalid(invalid) => return Ok(self.show_invalid(invalid, show)),
        };
        let sha = bundle.sha().to_string();
        let was_wrong = {
            let mut state = self.lock();
            state.files = bundle.datafiles().len() + bundle.resources().len();
            state.last_findings.take().is_some()
        };
        let last = self.lock().current.clone();
        if last.as_ref().is_some_and(|last| last.source.sha() == sha) {
            self.update_validity(DataValidity::recover);
            return Ok(if was_wrong { PollResult::ValidAgain } else { PollResult::Unchanged });
        }
        let side = PinnedData::of(bundle, *repo, &self.layout, last.as_deref(), &self.schemas)?;
        self.lock().current = Some(Arc::new(side));
        self.update_validity(DataValidity::recover);
        self.pool.sweep();
        self.generation.send_modify(|generation| *generation += 1);
        Ok(PollResult::New)
    }

    /// Shows the findings and reports that the data is invalid. Findings that were already shown are not repeated.
    fn show_invalid(&self, invalid: InvalidFindings, show: &(dyn Fn(&str) + Sync)) -> PollResult {
        let InvalidFindings { text, errors } = invalid;
        let before = self.lock().last_findings.replace(text.clone());
        if before.as_deref() == Some(&text) {
            return PollResult::StillInvalid;
        }
        show(&text);
        let bundle = self.bundle_in_use();
        self.update_validity(|validity, now| Some(validity.fail(errors, bundle, now)));
        PollResult::Invalid
    }

    /// Rebuilds the bundle whenever a file changes and polls the data repo periodically. Never returns.
    pub fn watch(&self, show: &(dyn Fn(&str) + Sync), on_result: impl Fn(PollResult)) {
        let mut watcher = RepoWatcher::new(&self.folders());
        let mut all_seen = Instant::now();
        // The first poll does not wait for an event, because changes before the watches were set up are not reported.
        let mut woken = WakeReason::Elapsed;
        let mut unsettled_since: Option<Instant> = None;
        loop {
            let begun = Instant::now();
            let mut is_settled = || !watcher.has_changed();
            let mut attempt = || match &woken {
                WakeReason::Changed(_) => {
                    // The digest is cleared, so that the next poll rebuilds the bundle.
                    self.lock().polled_digest = None;
                    self.rebuild(&woken, show, &mut is_settled)
                }
                WakeReason::Elapsed => self.poll_after(watcher::DEBOUNCE_REMOVALS, show),
            };
            // A panic counts as invalid data.
            let result = catch_unwind(AssertUnwindSafe(&mut attempt));
            unsettled_since = match result {
                Ok(Ok(PollResult::Unsettled)) => unsettled_since.or(Some(begun)),
                _ => None,
            };
            if unsettled_since.is_some_and(|since| since.elapsed() >= watcher::MAX_SETTLE) {
                let repo = self.repo.display();
                show(&format!("error: files in `{repo}` keep changing; still using the last bundle\n"));
                unsettled_since = Some(Instant::now());
            }
            match result {
                Ok(Ok(PollResult::Unsettled | PollResult::Unchanged | PollResult::StillInvalid)) => {}
                Ok(Ok(result)) => on_result(result),
                Ok(Err(error)) => {
                    // When the files can be read again, their metadata may be unchanged. The digest is cleared, so
                    // that the next poll rebuilds the bundle.
                    self.lock().polled_digest = None;
                    let message = format!("{error:#}");
                    let text = format!("error: {message}\n");
                    let invalid = InvalidFindings { text, errors: DataErrors::unreadable(message) };
                    on_result(self.show_invalid(invalid, show));
                }
                Err(_) => {
                    let message = "the check of the data panicked: this is a bug in qontract";
                    let text = format!("error: {message}\n");
                    let invalid = InvalidFindings { text, errors: DataErrors::unreadable(message) };
                    on_result(self.show_invalid(invalid, show));
                }
            }
            self.update_validity(DataValidity::due_report);
            if woken == WakeReason::Elapsed {
                all_seen = Instant::now();
            }
            // Frequent events must not delay the periodic poll, which finds missed changes.
            let took = self.lock().poll_duration;
            let is_due = all_seen.elapsed() > RepoWatcher::full_poll_interval(took);
            woken = if is_due { WakeReason::Elapsed } else { watcher.wait(took) };
        }
    }

    /// Runs parallel work on one thread. The thread ends with the work, so that its memory is returned to the system.
    fn on_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().context("cannot start a thread")?;
        Ok(one.install(work))
    }

    /// The directories of a data repo.
    fn folders(&self) -> Vec<PathBuf> {
        let Layout { data, resources, schemas, graphql } = &self.layout;
        let types = Path::new(graphql).parent().unwrap_or(Path::new(""));
        let parts = [Path::new(data), Path::new(resources), Path::new(schemas), types];
        let repo = std::path::absolute(&self.repo).unwrap_or_else(|_| self.repo.clone());
        parts.iter().map(|part| repo.join(part)).collect()
    }

    /// Builds the bundle (incrementally if the data repo is large) or returns the findings. The lock of the cache is
    /// held during the build.
    fn build_incrementally(&self, changed: Option<&BTreeSet<PathBuf>>) -> anyhow::Result<RepoBuild> {
        let mut remembered = self.cache.lock();
        if self.lock().files < MIN_CACHED_FILES {
            // The cache of a small repo is dropped: reading a small repo is as fast as using the cache, and an idle
            // process should hold little memory.
            *remembered = None;
            return Self::on_one_thread(|| {
                self.build(BuildOptions::default(), &mut LazyValidationCache::default())
            })?;
        }
        let is_first = remembered.is_none();
        let repo = || Repo::directory(&self.repo, self.layout.clone());
        let known = remembered.get_or_insert_with(|| RepoCache::with_validation(&repo(), &self.pool));
        let RepoCache { files, validation } = known;
        let options = BuildOptions { cache: Some(files), changed_paths: changed, output: None };
        let built = self.build(options, validation)?;
        if is_first && matches!(built, RepoBuild::Valid { .. }) {
            known.save(None);
        }
        Ok(built)
    }

    fn build(&self, options: BuildOptions<'_>, known: &mut LazyValidationCache) -> anyhow::Result<RepoBuild> {
        let opened = OpenedRepo::in_folder(&self.repo, self.layout.clone())?;
        let outcome = opened.bundle(&self.pool, options)?;
        let repo = opened.repo;
        let checked = validation::checked_bundle(&repo, outcome, InputCheck::Valid, known, &self.schemas)?;
        let report = match checked {
            CheckedBundle::Passed(bundle) => return Ok(RepoBuild::Valid { bundle, repo: Box::new(repo) }),
            CheckedBundle::Failed(invalid) => Report::new(invalid.findings),
        };
        let text = render::render_all(&report, &repo, render::Colour::Plain);
        let errors =
            DataErrors::of(&report, &repo).unwrap_or_else(|| DataErrors::unreadable(report.summary()));
        Ok(RepoBuild::Invalid(InvalidFindings { text: format!("{text}{}\n", report.summary()), errors }))
    }

    fn lock(&self) -> MutexGuard<'_, RepoState> {
        self.state.lock()
    }
}

impl DataSource for WatchedRepo {
    fn current(&self) -> anyhow::Result<Arc<PinnedData>> {
        self.lock().current.clone().context("no valid bundle yet")
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    fn invalid(&self) -> Option<InvalidData> {
        self.lock().validity.invalid().cloned()
    }

    fn identity(&self) -> Option<String> {
        Some(std::path::absolute(&self.repo).unwrap_or_else(|_| self.repo.clone()).display().to_string())
    }

    fn bundle_in_use(&self) -> Option<String> {
        self.lock().current.as_ref().map(|side| side.source.sha().to_owned())
    }
}

/// A data server, which is polled for its latest bundle.
pub struct ServerSource {
    connection: ServerConnection,
    pinned: bool,
    last: Mutex<Option<String>>,
    generation: watch::Sender<u64>,
}

impl ServerSource {
    /// Creates a source that polls this server.
    pub fn new(connection: ServerConnection, pinned: bool) -> Self {
        let (generation, _) = watch::channel(0);
        Self { connection, pinned, last: Mutex::default(), generation }
    }

    /// Requests the sha of the latest bundle and notifies subscribers if the sha is new.
    pub fn poll(&self) -> anyhow::Result<()> {
        let sha = self.connection.latest()?;
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|last| *last != sha) {
            self.generation.send_modify(|generation| *generation += 1);
        }
        *last = Some(sha);
        Ok(())
    }
}

impl DataSource for ServerSource {
    fn bundle_in_use(&self) -> Option<String> {
        self.last.lock().clone()
    }

    fn current(&self) -> anyhow::Result<Arc<PinnedData>> {
        Ok(Arc::new(PinnedData::remote(self.connection.head(self.pinned)?)))
    }

    fn identity(&self) -> Option<String> {
        Some(self.connection.identity())
    }

    fn reopen(&self, sha: &str) -> Option<Result<PinnedData, OpenError>> {
        Some(self.connection.reopen(sha))
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

#[cfg(test)]
mod tests;
