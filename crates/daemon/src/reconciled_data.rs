//! The data that the targets were last fully reconciled with, kept across restarts.
//!
//! If the data changes, the next run compares with it: a shard that is no longer declared is cleaned up,
//! subject to the guards. It is kept until a run on newer data succeeds with nothing held, failed or skipped.
//!
//! On disk, in the directory of the journal, there is a pointer per loop (integration, slot and flags) and a
//! copy of each bundle that a pointer names:
//!
//! ```text
//! reconciled/INTEGRATION.DIGEST.json       {"version": 1, "data": "/srv/data", "sha": "…"}
//! reconciled/bundles/SHA.json
//! ```
//!
//! **Invariant:** a pointer of other data is never used: shards of another data repo are not "no longer
//! declared" (`data_of_another_directory_is_not_used`).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;
use qontract_bundle::{Layout, Pool, Sha256, store};
use qontract_files::atomic::{self, Durability};
use qontract_files::private_files;
use qontract_runtime::RunEnd;
use qontract_runtime::slot::Slot;
use serde::{Deserialize, Serialize};

use crate::input::Input;
use crate::pinned_data::PinnedData;
use crate::run_settings::RunSettings;

/// The version of the pointers.
const VERSION: u32 = 1;

/// The directory of the bundles that pointers name.
const BUNDLES: &str = "bundles";

/// The data that the targets were last fully reconciled with, by the runs of one loop.
#[derive(Clone, Default)]
pub struct ReconciledData {
    latest: Arc<Mutex<LatestData>>,
    store: Option<Arc<PointerFile>>,
}

/// The last reconciled data of a loop.
#[derive(Default)]
struct LatestData {
    data: Option<Arc<PinnedData>>,
    /// Whether the data of an earlier process was looked up.
    is_restored: bool,
}

/// Maximum number of slots whose older data is looked up when the number of slots changed.
const MAX_LOOKED_UP_SLOTS: u32 = 64;

/// The name of the pointer of one loop.
struct PointerName {
    integration: String,
    slot: Slot,
    /// The flags of the loop.
    flags: String,
}

impl PointerName {
    fn new(integration: &str, settings: &RunSettings) -> Self {
        let flags = settings.options.iter().flat_map(|(flag, values)| {
            std::iter::once(flag).chain(values.iter().map(String::as_str)).chain(["\0"])
        });
        let flags = flags.collect::<Vec<_>>().join("\0");
        Self { integration: integration.to_owned(), slot: settings.slot, flags }
    }

    /// The file name for the loop in this slot.
    fn of_slot(&self, slot: Slot) -> String {
        let digest = Sha256::of(format!("{slot:?}\0{}", self.flags).as_bytes()).to_string();
        format!("{}.{}.json", self.integration, &digest[..12])
    }

    /// The file names for the slots of all other numbers of slots.
    fn of_other_counts(&self) -> impl Iterator<Item = (Slot, String)> {
        let counts = (1..=MAX_LOOKED_UP_SLOTS).filter(|count| *count != self.slot.count());
        let slots = counts.flat_map(|count| (0..count).filter_map(move |index| Slot::new(index, count).ok()));
        slots.map(|slot| (slot, self.of_slot(slot)))
    }
}

/// The location of the pointer of one loop.
struct PointerFile {
    folder: PathBuf,
    name: PointerName,
    /// The data source of the loop.
    data: String,
}

#[derive(Serialize, Deserialize)]
struct Pointer {
    version: u32,
    data: String,
    sha: String,
}

impl ReconciledData {
    /// The data of a loop whose pointer is in `journal`, the directory of the journal. `data` identifies the
    /// data source.
    pub fn stored(journal: &Path, data: String, integration: &str, settings: &RunSettings) -> Self {
        let name = PointerName::new(integration, settings);
        let folder = journal.join("reconciled");
        Self { latest: Arc::default(), store: Some(Arc::new(PointerFile { folder, name, data })) }
    }

    /// The data to compare `head` with; none if it is the same bundle. Fails if the data of an earlier process
    /// cannot be read; the next call then returns the data of this process.
    pub fn base_of(&self, head: &PinnedData) -> anyhow::Result<Option<Arc<PinnedData>>> {
        let mut latest = self.latest.lock();
        if !latest.is_restored {
            latest.is_restored = true;
            if let Some(pointer) = &self.store {
                latest.data = pointer.restore(head)?;
            }
        }
        Ok(latest.data.clone().filter(|base| base.source.sha() != head.source.sha()))
    }

    /// Notes the end of a run on `head`, and stores the data if it is now the last reconciled one.
    pub fn ran(&self, head: &Arc<PinnedData>, ended: RunEnd) -> anyhow::Result<()> {
        let mut latest = self.latest.lock();
        let is_reconciled = matches!(ended, RunEnd::Ok | RunEnd::Degraded) || latest.data.is_none();
        let is_new = latest.data.as_ref().is_none_or(|data| data.source.sha() != head.source.sha());
        if !is_reconciled {
            return Ok(());
        }
        latest.data = Some(Arc::clone(head));
        match &self.store {
            Some(pointer) if is_new => pointer.store(head),
            _ => Ok(()),
        }
    }
}

impl PointerFile {
    fn bundles(&self) -> PathBuf {
        self.folder.join(BUNDLES)
    }

    /// The data that the pointer names; none if it names `head`, which is not compared with itself.
    fn restore(&self, head: &PinnedData) -> anyhow::Result<Option<Arc<PinnedData>>> {
        let file = self.folder.join(self.name.of_slot(self.name.slot));
        let unreadable = || {
            format!(
                "cannot read `{}`, the data of the last run: shards that were removed from the data since then are \
                 not cleaned up; run once with `--base REV`",
                file.display()
            )
        };
        let text = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.check_other_slots(head).map(|()| None);
            }
            text => text.with_context(unreadable)?,
        };
        let pointer: Pointer = serde_json::from_slice(&text).with_context(unreadable)?;
        let is_supported = pointer.version == VERSION && Sha256::parse(&pointer.sha).is_some();
        anyhow::ensure!(is_supported, "{}: unsupported content", unreadable());
        if pointer.data != self.data || pointer.sha == head.source.sha() {
            return Ok(None);
        }
        let path = self.bundles().join(format!("{}.json", pointer.sha));
        let mut bytes = io::BufReader::new(File::open(&path).with_context(unreadable)?);
        let bundle = qontract_bundle::load_from(&mut bytes, &Pool::default()).with_context(unreadable)?;
        anyhow::ensure!(bundle.sha().to_string() == pointer.sha, "{}: the bundle is damaged", unreadable());
        let input = Input { bundle, repo: None };
        let engine = input.engine(head.source.engine().map(|engine| &**engine)).with_context(unreadable)?;
        Ok(Some(Arc::new(PinnedData::with_engine(input, Arc::new(engine), &Layout::default()))))
    }

    /// Fails if there is older data of another number of slots: shards that were removed from the data since then
    /// belong to no process. Slots of the same number belong to other processes.
    fn check_other_slots(&self, head: &PinnedData) -> anyhow::Result<()> {
        for (slot, name) in self.name.of_other_counts() {
            let Ok(text) = fs::read(self.folder.join(name)) else { continue };
            let Ok(Pointer { version: VERSION, data, sha }) = serde_json::from_slice(&text) else { continue };
            let bundle = self.bundles().join(format!("{sha}.json"));
            if data == self.data && sha != head.source.sha() && bundle.exists() {
                anyhow::bail!(
                    "the number of slots changed, and the older data of slot {slot} is not compared: shards that were \
                     removed from the data since then are not cleaned up; run once without slots, with `--base {}`",
                    bundle.display()
                );
            }
        }
        Ok(())
    }

    /// Stores a copy of the data, and then the pointer to it. A bundle on a server is not copied: its shards
    /// are remembered only by this process.
    fn store(&self, data: &PinnedData) -> anyhow::Result<()> {
        let Some(bundle) = data.bundle() else { return Ok(()) };
        let (bundles, pointer) = (self.bundles(), self.folder.join(self.name.of_slot(self.name.slot)));
        let storing = || format!("cannot store `{}`", pointer.display());
        private_files::create_folder(&self.folder, &bundles).with_context(storing)?;
        // Another process must not remove the bundle before the pointer names it.
        let lock = private_files::options().write(true).truncate(false).open(self.folder.join(".lock"));
        let lock = lock.with_context(storing)?;
        lock.lock().with_context(storing)?;
        let sha = bundle.sha().to_string();
        let path = bundles.join(format!("{sha}.json"));
        if !path.exists() {
            store::write_private(bundle, &path).with_context(storing)?;
        }
        let mut text = serde_json::to_string(&Pointer { version: VERSION, data: self.data.clone(), sha })?;
        text.push('\n');
        atomic::write_private(&pointer, text.as_bytes(), Durability::Content).with_context(storing)?;
        self.prune().with_context(storing)
    }

    /// Removes the bundles that no pointer names.
    fn prune(&self) -> io::Result<()> {
        let mut used = BTreeSet::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                // A pointer that cannot be read may name any bundle.
                let Ok(pointer) = serde_json::from_slice::<Pointer>(&fs::read(&path)?) else { return Ok(()) };
                used.insert(format!("{}.json", pointer.sha));
            }
        }
        for entry in fs::read_dir(self.bundles())? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(|name| used.contains(name)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use qontract_access::Mode;
    use qontract_runtime::guard::{Budgets, MemoryLedger};
    use qontract_testkit::Scratch;

    use super::*;

    /// Data with one team of this name.
    fn data(name: &str) -> Arc<PinnedData> {
        let json = format!(
            r#"{{"git_commit": "", "git_commit_timestamp": "", "schemas": {{}}, "resources": {{}},
            "graphql": [
                {{"name": "Query", "fields": [
                    {{"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}}]}},
                {{"name": "Team", "fields": [{{"name": "name", "type": "string"}}]}}],
            "data": {{"/core.yml": {{"$schema": "/team.yml", "name": "{name}"}}}}}}"#
        );
        let mut bytes = Vec::new();
        let load = |bytes: &[u8]| qontract_bundle::load(bytes, &Pool::default()).unwrap();
        load(json.as_bytes()).write_to(&mut bytes).unwrap();
        let bundle = load(&bytes);
        let input = Input { bundle, repo: None };
        let engine = input.engine(None).unwrap();
        Arc::new(PinnedData::with_engine(input, Arc::new(engine), &Layout::default()))
    }

    /// The reconciled data of a loop with this flag, after a start of its process.
    fn restarted(scratch: &Scratch, source: &str, flag: Option<&str>) -> ReconciledData {
        let mut settings =
            RunSettings::new(Mode::Real, Budgets::default(), Arc::new(MemoryLedger::default()));
        if let Some(value) = flag {
            settings.options.add("cluster-name", value);
        }
        ReconciledData::stored(scratch.path(), source.to_owned(), "x", &settings)
    }

    /// The sha of the data that `head` is compared with.
    fn base(reconciled: &ReconciledData, head: &Arc<PinnedData>) -> Option<String> {
        reconciled.base_of(head).unwrap().map(|base| base.source.sha().to_owned())
    }

    fn bundles(scratch: &Scratch) -> usize {
        fs::read_dir(scratch.path().join("reconciled/bundles")).unwrap().count()
    }

    #[test]
    fn the_last_reconciled_data_survives_a_restart() {
        let scratch = Scratch::new();
        let [one, two, three] = ["one", "two", "three"].map(data);
        let first = restarted(&scratch, "repo", None);
        assert_eq!(base(&first, &one), None);
        first.ran(&one, RunEnd::Ok).unwrap();
        assert_eq!(base(&first, &two).as_deref(), Some(one.source.sha()));
        // A run that failed or held something leaves work for the next one.
        first.ran(&two, RunEnd::Failed).unwrap();
        first.ran(&two, RunEnd::Held).unwrap();
        let second = restarted(&scratch, "repo", None);
        assert_eq!(base(&second, &two).as_deref(), Some(one.source.sha()));
        second.ran(&two, RunEnd::Degraded).unwrap();
        assert_eq!(base(&second, &two), None);
        let third = restarted(&scratch, "repo", None);
        assert_eq!(base(&third, &three).as_deref(), Some(two.source.sha()));
        assert_eq!(bundles(&scratch), 1, "the older bundle is removed");
    }

    #[test]
    fn a_run_compares_with_the_data_of_the_last_run_that_left_nothing_to_do() {
        let [first, second, third] = ["one", "two", "three"].map(data);
        let reconciled = ReconciledData::default();
        let sha = |data: &PinnedData| Some(data.source.sha().to_owned());
        assert_eq!(base(&reconciled, &first), None);
        // The first data is the base even if its run failed: there is no earlier one.
        reconciled.ran(&first, RunEnd::Failed).unwrap();
        assert_eq!((base(&reconciled, &first), base(&reconciled, &second)), (None, sha(&first)));
        for ended in [RunEnd::Failed, RunEnd::Held, RunEnd::Transient, RunEnd::Interrupted] {
            reconciled.ran(&second, ended).unwrap();
            assert_eq!(base(&reconciled, &third), sha(&first), "{ended:?}");
        }
        for ended in [RunEnd::Ok, RunEnd::Degraded] {
            reconciled.ran(&second, ended).unwrap();
            assert_eq!(
                (base(&reconciled, &second), base(&reconciled, &third)),
                (None, sha(&second)),
                "{ended:?}"
            );
        }
    }

    #[test]
    fn data_of_another_directory_is_not_used() {
        let scratch = Scratch::new();
        let [one, two] = ["one", "two"].map(data);
        restarted(&scratch, "repo", None).ran(&one, RunEnd::Ok).unwrap();
        assert_eq!(base(&restarted(&scratch, "other", None), &two), None);
        // Loops with other flags reconcile other shards.
        assert_eq!(base(&restarted(&scratch, "repo", Some("a")), &two), None);
        assert_eq!(base(&restarted(&scratch, "repo", None), &two).as_deref(), Some(one.source.sha()));
    }

    #[test]
    fn lost_or_damaged_data_is_an_error_once() {
        let scratch = Scratch::new();
        let [one, two] = ["one", "two"].map(data);
        restarted(&scratch, "repo", None).ran(&one, RunEnd::Ok).unwrap();
        let bundle = scratch.path().join(format!("reconciled/bundles/{}.json", one.source.sha()));
        for content in [None, Some("{"), Some("{}")] {
            match content {
                None => fs::remove_file(&bundle).unwrap(),
                Some(text) => fs::write(&bundle, text).unwrap(),
            }
            let reconciled = restarted(&scratch, "repo", None);
            let error = format!("{:#}", reconciled.base_of(&two).err().expect("it is reported"));
            assert!(error.contains("are not cleaned up; run once with `--base REV`"), "{error}");
            assert_eq!(base(&reconciled, &two), None);
        }
    }

    #[test]
    fn bundles_that_an_unreadable_pointer_may_name_are_kept() {
        let scratch = Scratch::new();
        let [one, two] = ["one", "two"].map(data);
        let reconciled = restarted(&scratch, "repo", None);
        reconciled.ran(&one, RunEnd::Ok).unwrap();
        scratch.write("reconciled/other.json", "{");
        reconciled.ran(&two, RunEnd::Ok).unwrap();
        assert_eq!(bundles(&scratch), 2);
    }
}
