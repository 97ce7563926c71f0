//! Stores the recorded inputs of runs next to the run records, with copies of the bundles that they name:
//!
//! ```text
//! inputs/key                      the key of the fingerprints of secrets, with mode 0600
//! inputs/RUN.zst                  a line with the digest of the rest, then the recording, compressed
//! inputs/bundles/SHA.json.zst
//! ```
//!
//! A recording is removed with the record of its run. If recordings and bundles exceed 512 MiB in total, the oldest
//! recordings are removed, and so are the bundles that no recording names.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use parking_lot::Mutex;
use qontract_bundle::{Bundle, Pool, Sha256};
use qontract_config::variable;
use qontract_files::atomic::{self, Durability};
use qontract_files::private_files;
use qontract_runtime::BundleReader;
use qontract_runtime::replay::{
    Fingerprints, InputRecorder, PlannedRun, RECORDING_VERSION, Recording, RecordingSink,
};
use serde::{Deserialize, Serialize};

/// The variable that turns recording off.
pub const RECORD_VARIABLE: &str = "QONTRACT_RECORD_INPUTS";

/// Maximum size of the inputs of one run before they are compressed, in bytes.
const MAX_RUN_BYTES: usize = 32 << 20;

/// Maximum size of all recordings and bundles, in bytes.
const MAX_TOTAL_BYTES: u64 = 512 << 20;

/// Maximum size of a recording or a bundle when it is decompressed, in bytes.
const MAX_DECOMPRESSED_BYTES: u64 = 2 << 30;

/// The compression level.
const LEVEL: i32 = 1;

/// The recorded inputs of all runs of a directory of run records.
#[derive(Clone, Debug)]
pub struct InputStore {
    folder: PathBuf,
}

/// The first line of a recording file.
#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    run: String,
    /// The version of the binary.
    binary: String,
    head: String,
    base: Option<String>,
    /// The SHA-256 of the rest of the file.
    sha256: String,
}

/// A recording, with the version of the binary that made it.
#[derive(Debug)]
pub struct StoredRecording {
    /// The version of the binary that made the recording.
    pub binary: String,
    /// The recorded inputs of the run.
    pub recording: Recording,
}

/// The inputs of one run. They are stored before the plan is applied or, if the run applies nothing, with the run
/// record.
pub struct RunInputs {
    store: InputStore,
    key: [u8; 32],
    state: Mutex<RecordingState>,
}

/// The state of the recording of a run.
enum RecordingState {
    /// Nothing has been planned yet.
    Unplanned,
    /// The recording is held in memory until the record of the run is stored.
    Held(Box<HeldRecording>),
    /// The recording was stored, or storing it failed.
    Stored(anyhow::Result<()>),
}

struct HeldRecording {
    recording: Recording,
    bundles: Vec<Arc<dyn BundleReader>>,
}

impl RunInputs {
    /// Stores the inputs, unless they were stored before the plan was applied.
    pub fn store(&self) -> anyhow::Result<()> {
        let state = std::mem::replace(&mut *self.state.lock(), RecordingState::Unplanned);
        match state {
            RecordingState::Unplanned => Ok(()),
            RecordingState::Held(held) => self.store.store(&self.key, &held),
            RecordingState::Stored(result) => result,
        }
    }
}

impl RecordingSink for RunInputs {
    fn planned(&self, run: PlannedRun<'_>) {
        let PlannedRun { recording, head, base, applies_steps } = run;
        let bundles = std::iter::once(head).chain(base).map(Arc::clone).collect();
        let held = Box::new(HeldRecording { recording, bundles });
        *self.state.lock() = if applies_steps {
            RecordingState::Stored(self.store.store(&self.key, &held))
        } else {
            RecordingState::Held(held)
        };
    }
}

impl InputStore {
    /// Opens the store in a directory of run records.
    pub fn new(runs: &Path) -> Self {
        Self { folder: runs.join("inputs") }
    }

    /// The recorder of a run, unless recording is turned off. If the store has no key, a new one is stored with the
    /// first recording.
    pub fn recorder(&self) -> Option<(InputRecorder, Arc<RunInputs>)> {
        if variable(RECORD_VARIABLE).is_some_and(|value| value == "off") {
            return None;
        }
        let key = read_key(&self.folder.join("key")).or_else(|_| new_key()).ok()?;
        let fingerprints = Arc::new(Fingerprints::new(&key));
        let state = Mutex::new(RecordingState::Unplanned);
        let inputs = Arc::new(RunInputs { store: self.clone(), key, state });
        Some((InputRecorder::new(fingerprints, MAX_RUN_BYTES, Arc::clone(&inputs) as _), inputs))
    }

    /// The fingerprints with the key of this store, if the store has a key.
    pub fn fingerprints(&self) -> Option<Fingerprints> {
        read_key(&self.folder.join("key")).ok().map(|key| Fingerprints::new(&key))
    }

    fn create_folders(&self) -> io::Result<()> {
        private_files::create_folder(&self.folder, &self.bundles())
    }

    fn bundles(&self) -> PathBuf {
        self.folder.join("bundles")
    }

    fn bundle_file(&self, sha: &str) -> PathBuf {
        self.bundles().join(format!("{sha}.json.zst"))
    }

    fn file(&self, run: &str) -> PathBuf {
        self.folder.join(format!("{run}.zst"))
    }

    /// Removes the recording of a run.
    pub fn remove(&self, run: &str) {
        // The error is ignored, because a run might not have a recording.
        drop(fs::remove_file(self.file(run)));
    }

    fn store(&self, key: &[u8; 32], held: &HeldRecording) -> anyhow::Result<()> {
        let HeldRecording { recording, bundles } = held;
        let storing = || format!("cannot store the inputs of the run in `{}`", self.folder.display());
        self.create_folders().with_context(storing)?;
        let lock = private_files::options().write(true).truncate(false).open(self.folder.join(".lock"));
        let lock = lock.with_context(storing)?;
        lock.lock().with_context(storing)?;
        let key_file = self.folder.join("key");
        // If another process has stored its key since this run started, the key of this recording does not exist.
        if !key_file.exists() {
            atomic::write_private(&key_file, key, Durability::Directory).with_context(storing)?;
        }
        let mut is_new = false;
        for reader in bundles {
            // A bundle on a server is not copied.
            let Some(engine) = reader.engine() else { continue };
            let path = self.bundle_file(&engine.bundle().sha().to_string());
            if !path.exists() {
                is_new = true;
                write_bundle(engine.bundle(), &path).with_context(storing)?;
            }
        }
        let content = zstd::encode_all(&serde_json::to_vec(recording)?[..], LEVEL).with_context(storing)?;
        let header = Header {
            version: recording.version,
            run: recording.run.clone(),
            binary: env!("CARGO_PKG_VERSION").to_owned(),
            head: recording.head.clone(),
            base: recording.base.clone(),
            sha256: Sha256::of(&content).to_string(),
        };
        let header = serde_json::to_string(&header)?;
        let stored = [header.as_bytes(), b"\n", &content].concat();
        atomic::write_private(&self.file(&recording.run), &stored, Durability::Content)
            .with_context(storing)?;
        if is_new { self.prune(MAX_TOTAL_BYTES).with_context(storing) } else { Ok(()) }
    }

    /// The recording of a run; `None` if the run has no recording.
    pub fn load(&self, run: &str) -> anyhow::Result<Option<StoredRecording>> {
        let file = self.file(run);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.with_context(|| format!("cannot read `{}`", file.display()))?,
        };
        let damaged = || format!("the recording `{}` is damaged", file.display());
        let end = bytes.iter().position(|byte| *byte == b'\n').with_context(damaged)?;
        let (header, content) = (&bytes[..end], &bytes[end + 1..]);
        let header: Header = serde_json::from_slice(header).with_context(damaged)?;
        anyhow::ensure!(
            header.version == RECORDING_VERSION,
            "the recording has version {}, and this binary reads version {RECORDING_VERSION}",
            header.version
        );
        anyhow::ensure!(Sha256::of(content).to_string() == header.sha256, damaged());
        let recording: Recording =
            serde_json::from_reader(decoder(content).with_context(damaged)?).with_context(damaged)?;
        anyhow::ensure!(recording.run == run, "{}: it is that of the run `{}`", damaged(), recording.run);
        Ok(Some(StoredRecording { binary: header.binary, recording }))
    }

    /// Loads the stored bundle with this sha.
    pub fn bundle(&self, sha: &str) -> anyhow::Result<Bundle> {
        anyhow::ensure!(Sha256::parse(sha).is_some(), "`{sha}` is not the sha of a bundle");
        let path = self.bundle_file(sha);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                anyhow::bail!("the bundle {sha} is not in `{}`", self.bundles().display());
            }
            file => file.with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        let damaged = || format!("the bundle `{}` is damaged", path.display());
        let mut content = BufReader::new(decoder(file).with_context(damaged)?);
        let bundle = qontract_bundle::load_from(&mut content, &Pool::default()).with_context(damaged)?;
        anyhow::ensure!(bundle.sha().to_string() == sha, damaged());
        Ok(bundle)
    }

    /// Removes the oldest recordings until the remaining recordings and their bundles take at most `max_bytes`.
    fn prune(&self, max_bytes: u64) -> io::Result<()> {
        let mut recordings: Vec<(SystemTime, PathBuf, Header, u64)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "zst")
                && let Some(header) = read_header(&path)
            {
                let metadata = fs::metadata(&path)?;
                recordings.push((metadata.modified()?, path, header, metadata.len()));
            }
        }
        recordings.sort_by_key(|recording| Reverse(recording.0));
        let (mut used, mut total) = (BTreeSet::new(), 0);
        for (index, (_, path, header, bytes)) in recordings.into_iter().enumerate() {
            let shas = std::iter::once(header.head).chain(header.base);
            let new: BTreeSet<String> = shas.filter(|sha| !used.contains(sha)).collect();
            let size = |sha: &String| fs::metadata(self.bundle_file(sha)).map_or(0, |file| file.len());
            total += bytes + new.iter().map(size).sum::<u64>();
            if total > max_bytes && index > 0 {
                fs::remove_file(path)?;
            } else {
                used.extend(new);
            }
        }
        for entry in fs::read_dir(self.bundles())? {
            let entry = entry?;
            let name = entry.file_name();
            let sha = name.to_str().and_then(|name| name.strip_suffix(".json.zst"));
            if sha.is_none_or(|sha| !used.contains(sha)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Creates a reader of compressed content that limits the number of decompressed bytes.
fn decoder<'r>(content: impl io::Read + 'r) -> io::Result<impl io::Read + 'r> {
    Ok(zstd::Decoder::new(content)?.take(MAX_DECOMPRESSED_BYTES))
}

/// Stores a compressed copy of a bundle.
fn write_bundle(bundle: &Bundle, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    bundle.write_to(&mut bytes)?;
    atomic::write_private(path, &zstd::encode_all(&bytes[..], LEVEL)?, Durability::Content)
}

fn new_key() -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}

fn read_key(file: &Path) -> io::Result<[u8; 32]> {
    let bytes = fs::read(file)?;
    bytes.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

fn read_header(path: &Path) -> Option<Header> {
    let mut line = Vec::new();
    io::BufRead::read_until(&mut BufReader::new(File::open(path).ok()?).take(4096), b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use qontract_testkit::Scratch;

    use super::*;

    /// Creates a recording without shards.
    fn recording(run: &str, head: &str) -> Recording {
        let digest = "0".repeat(64);
        serde_json::from_value(serde_json::json!({
            "version": RECORDING_VERSION, "run": run, "integration": "a", "head": head, "base": null,
            "options": {}, "key": "k", "plan_digest": digest, "shards": [],
        }))
        .unwrap()
    }

    /// Stores a recording that was made some hours ago, with a bundle of 1000 bytes.
    fn store(store: &InputStore, run: &str, head: &str, hours: u64) {
        let held = HeldRecording { recording: recording(run, head), bundles: Vec::new() };
        store.store(&[1; 32], &held).unwrap();
        fs::write(store.bundle_file(head), [0; 1000]).unwrap();
        let file = File::options().append(true).open(store.file(run)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
    }

    fn files(folder: &Path) -> BTreeSet<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.strip_suffix(".zst").is_some()).collect()
    }

    #[test]
    fn the_oldest_recordings_and_unused_bundles_are_removed() {
        let scratch = Scratch::new();
        let inputs = InputStore::new(scratch.path());
        for (run, head, hours) in [("new", "b2", 1), ("old", "b1", 2), ("oldest", "b1", 3)] {
            store(&inputs, run, head, hours);
        }
        inputs.prune(10_000).unwrap();
        assert_eq!(files(&inputs.folder).len(), 3);
        inputs.prune(1_800).unwrap();
        assert_eq!(files(&inputs.folder), BTreeSet::from(["new.zst".to_owned()]));
        assert_eq!(files(&inputs.bundles()), BTreeSet::from(["b2.json.zst".to_owned()]));
        inputs.prune(1).unwrap();
        assert_eq!(files(&inputs.folder).len(), 1, "the newest one stays");
        inputs.remove("new");
        assert!(inputs.load("new").unwrap().is_none());
    }

    #[test]
    fn a_recording_of_another_run_or_format_is_not_read() {
        let scratch = Scratch::new();
        let inputs = InputStore::new(scratch.path());
        store(&inputs, "one", "b", 0);
        assert_eq!(inputs.load("one").unwrap().unwrap().recording.run, "one");
        fs::copy(inputs.file("one"), inputs.file("other")).unwrap();
        let error = inputs.load("other").unwrap_err().to_string();
        assert!(error.contains("it is that of the run `one`"), "{error}");
        let bytes = fs::read(inputs.file("one")).unwrap();
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let header = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let newer = header.replace("\"version\":1", "\"version\":2");
        fs::write(inputs.file("one"), [newer.as_bytes(), &bytes[end..]].concat()).unwrap();
        let error = inputs.load("one").unwrap_err().to_string();
        assert_eq!(error, "the recording has version 2, and this binary reads version 1");
    }

    #[test]
    fn the_key_is_stored_once_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = Scratch::new();
        let inputs = InputStore::new(scratch.path());
        assert!(inputs.fingerprints().is_none());
        store(&inputs, "one", "b", 0);
        let key = inputs.folder.join("key");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        let held = HeldRecording { recording: recording("two", "b"), bundles: Vec::new() };
        inputs.store(&[2; 32], &held).unwrap();
        assert_eq!(fs::read(&key).unwrap(), [1; 32], "the key of another process stays");
    }
}
