//! Pointers and bundles that earlier versions stored as files in the directory of the journal:
//! `reconciled/LOOP.json` and `reconciled/bundles/SHA.json`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_bundle::{Bundle, Pool, Sha256};
use qontract_journal::ReconciledPointer;
use serde::Deserialize;

/// The version of these pointers.
const VERSION: u32 = 1;

/// The pointers in the directory of a journal.
pub(super) struct LegacyPointers {
    folder: PathBuf,
}

#[derive(Deserialize)]
struct LegacyPointer {
    version: u32,
    data: String,
    sha: String,
}

impl LegacyPointers {
    /// Creates access to the pointers in the directory of a journal.
    pub(super) fn new(journal: &Path) -> Self {
        Self { folder: journal.join("reconciled") }
    }

    /// The pointer of a loop, if it has one that was written after `after`.
    pub(super) fn pointer(
        &self,
        name: &str,
        after: Option<Timestamp>,
    ) -> anyhow::Result<Option<ReconciledPointer>> {
        let file = self.folder.join(format!("{name}.json"));
        let text = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read `{}`", file.display()))?,
        };
        let at = Timestamp::try_from(fs::metadata(&file)?.modified()?)?;
        if after.is_some_and(|after| after >= at) {
            return Ok(None);
        }
        let unsupported = || format!("`{}` has unsupported content", file.display());
        let pointer: LegacyPointer = serde_json::from_slice(&text).with_context(unsupported)?;
        let LegacyPointer { version, data, sha } = pointer;
        anyhow::ensure!(version == VERSION && Sha256::parse(&sha).is_some(), unsupported());
        Ok(Some(ReconciledPointer::new(data, sha, at)))
    }

    /// The names of all loops that have a pointer.
    pub(super) fn loops(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
    }

    /// The file of a bundle.
    pub(super) fn bundle_file(&self, sha: &str) -> PathBuf {
        self.folder.join("bundles").join(format!("{sha}.json"))
    }

    /// Reads the bundle with this sha.
    pub(super) fn bundle(&self, sha: &str) -> anyhow::Result<Bundle> {
        let path = self.bundle_file(sha);
        let unreadable = || format!("cannot read `{}`", path.display());
        let mut bytes = io::BufReader::new(File::open(&path).with_context(unreadable)?);
        qontract_bundle::load_from(&mut bytes, &Pool::default()).with_context(unreadable)
    }
}
