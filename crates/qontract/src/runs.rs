//! Where the records of runs are kept: one JSON file each, and what was removed for which bundle.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use qontract_bundle::store;
use qontract_runtime::Record;

use crate::exit::UsageError;

/// So many bundles are remembered per integration.
const BUNDLES: usize = 50;

/// The folder of records.
#[derive(Clone, Debug)]
pub struct Runs {
    folder: PathBuf,
}

/// How much was removed, per shard.
type Removed = BTreeMap<String, usize>;

impl Runs {
    /// The records in `folder`, by default below the user's state folder.
    pub fn new(folder: Option<PathBuf>) -> anyhow::Result<Self> {
        let folder = folder.or_else(usual).context("no folder for records: set `--runs` or `HOME`")?;
        Ok(Self { folder })
    }

    /// Keeps a record, and what it says about removals.
    pub fn keep(&self, record: &Record) -> anyhow::Result<()> {
        write(&self.file(&record.run)?, record)?;
        let removed: Removed = record
            .shards
            .iter()
            .filter(|(_, shard)| shard.removed > 0 && shard.applied > 0)
            .map(|(key, shard)| (key.clone(), shard.removed))
            .collect();
        if removed.is_empty() {
            return Ok(());
        }
        let bundle = self.bundle(&record.integration, &record.head.sha);
        write(&bundle.join(format!("{}.json", record.run)), &removed)?;
        self.forget(&record.integration)
    }

    /// The record of a run.
    pub fn read(&self, run: &str) -> anyhow::Result<Record> {
        let file = self.file(run)?;
        if !file.is_file() {
            let text = format!("there is no run `{run}` in `{}`", self.folder.display());
            return Err(UsageError(text).into());
        }
        read(&file)
    }

    /// What an integration removed before for a bundle, per shard. Each run has a file of its own, so that runs do not
    /// get in each other's way.
    pub fn spent(&self, integration: &str, sha: &str) -> anyhow::Result<Removed> {
        let mut spent = Removed::new();
        for file in entries(&self.bundle(integration, sha))? {
            for (shard, count) in read::<Removed>(&file)? {
                *spent.entry(shard).or_default() += count;
            }
        }
        Ok(spent)
    }

    /// Forgets the removals of bundles that are long gone.
    fn forget(&self, integration: &str) -> anyhow::Result<()> {
        let mut bundles = entries(&self.removals(integration))?;
        bundles.sort_by_key(|folder| fs::metadata(folder).and_then(|about| about.modified()).ok());
        for folder in bundles.iter().rev().skip(BUNDLES) {
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove `{}`", folder.display()))?;
        }
        Ok(())
    }

    fn removals(&self, integration: &str) -> PathBuf {
        self.folder.join("removals").join(integration)
    }

    fn bundle(&self, integration: &str, sha: &str) -> PathBuf {
        self.removals(integration).join(sha)
    }

    fn file(&self, run: &str) -> Result<PathBuf, UsageError> {
        let fine = |one: char| one.is_ascii_alphanumeric() || one == '-';
        if run.is_empty() || !run.chars().all(fine) {
            return Err(UsageError(format!("`{run}` is not the name of a run")));
        }
        Ok(self.folder.join(format!("{run}.json")))
    }
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let doing = || format!("cannot list `{}`", folder.display());
    match fs::read_dir(folder) {
        Ok(entries) => {
            let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
            paths.with_context(doing)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(doing),
    }
}

fn write(file: &Path, value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    store::replace(file, &|out| out.write_all(&text))
        .with_context(|| format!("cannot write `{}`", file.display()))
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let bytes = fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("`{}` is not what it should be", file.display()))
}

fn usual() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("qontract/runs"))
}
