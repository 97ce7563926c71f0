//! A directory that replaces a queue, for the sandbox. Each message is a file, whose name is the position of
//! the message.
//!
//! **Invariant:** a message is written completely or not at all, and it is removed only when it is deleted.
//! Positions are never used again, so an old receipt handle never deletes another message. A file lock
//! serializes the changes of all processes that use the directory.

mod stored;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_concurrency::run_blocking;
use qontract_files::atomic::Durability;
use qontract_files::locked_folder::{self, FileError, LockedFolder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use crate::error::QueueError;
use crate::message::{
    MAX_MESSAGE_BYTES, MessageCounts, MessageId, NewMessage, QueueName, ReceiptHandle, ReceiveOptions,
    ReceivedMessage, check_hidden,
};
use crate::{QueueReader, QueueWriter};
use stored::{QueueHistory, StoredMessage, position, receipt_position};

/// Maximum number of messages in a directory.
const MAX_MESSAGES: usize = 10_000;
/// Maximum size of a file, which may contain a body in which every byte is escaped, and the other fields of a
/// message.
const MAX_FILE_BYTES: u64 = (MAX_MESSAGE_BYTES as u64) * 6 + (1 << 20);
/// The file with the facts about deleted messages.
const HISTORY: &str = ".history.json";

/// A directory that replaces a queue. Clones use the same directory.
#[derive(Clone, Debug)]
pub struct QueueDirectory {
    files: Arc<QueueFiles>,
    /// Serializes the writers of this process, so that only one of them blocks a thread on the lock file.
    write_lock: Arc<Mutex<()>>,
    mode: Mode,
}

impl QueueDirectory {
    /// A queue in the directory `root`, which the first message creates.
    pub fn new(root: impl Into<PathBuf>, name: QueueName) -> Self {
        let files = Arc::new(QueueFiles { folder: LockedFolder::new(root, Durability::Directory), name });
        Self { files, write_lock: Arc::default(), mode: Mode::Real }
    }

    /// Returns this queue with the mode of the run that `permit` belongs to: in a dry run, it refuses every
    /// write, even one with a write permit.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { mode: permit.mode(), ..self.clone() }
    }

    /// Runs file operations on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce(&QueueFiles) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let files = Arc::clone(&self.files);
        run_blocking(move || act(&files)).await
    }

    /// Changes the queue while holding its lock. A change is refused in a dry run.
    async fn change<T: Send + 'static>(
        &self,
        act: impl FnOnce(&QueueFiles) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        match self.mode {
            Mode::Real => {}
            Mode::DryRun => {
                return Err(QueueError::Unsupported("a dry run does not write queues".to_owned()));
            }
        }
        let _turn = self.write_lock.lock().await;
        self.run_blocking(move |files| {
            let _lock = files.folder.lock()?;
            act(files)
        })
        .await
    }
}

/// The files of a queue.
#[derive(Debug)]
struct QueueFiles {
    folder: LockedFolder,
    name: QueueName,
}

impl QueueFiles {
    fn counts(&self, now: SystemTime) -> Result<MessageCounts, QueueError> {
        let mut counts = MessageCounts::default();
        for position in self.positions()? {
            match self.message(position)? {
                Some(message) if message.is_visible(now) => counts.visible += 1,
                Some(_) => counts.hidden += 1,
                // The message was deleted after the listing.
                None => {}
            }
        }
        Ok(counts)
    }

    fn send(&self, new: &NewMessage, now: SystemTime) -> Result<MessageId, QueueError> {
        let (positions, history) = (self.positions()?, self.history()?);
        if let Some(order) = new.order() {
            if let Some(sent) = history.find(&order.deduplication, now) {
                return Ok(stored::id(sent));
            }
            for position in &positions {
                // A file that is not a message is ignored here, because it is reported to consumers.
                let message = self.message(*position).ok().flatten();
                if message.is_some_and(|message| message.is_duplicate(&order.deduplication, now)) {
                    return Ok(stored::id(*position));
                }
            }
        }
        if positions.len() >= MAX_MESSAGES {
            return Err(QueueError::Full { queue: self.name.to_string(), limit: MAX_MESSAGES });
        }
        let position = history.next_position(positions.last().copied());
        self.replace(&self.file(position), &StoredMessage::new(new, now))?;
        Ok(stored::id(position))
    }

    fn receive(&self, options: ReceiveOptions, now: SystemTime) -> Result<Vec<ReceivedMessage>, QueueError> {
        let (mut received, mut blocked, mut malformed) = (Vec::new(), BTreeSet::new(), None);
        for position in self.positions()? {
            if received.len() == options.max() {
                break;
            }
            let message = match self.message(position) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                // One damaged file does not block the messages after it.
                Err(error) => {
                    malformed.get_or_insert(error);
                    continue;
                }
            };
            if !message.is_visible(now) {
                // A hidden message blocks its group, because the messages of a group are delivered one after
                // the other.
                blocked.extend(message.group().map(str::to_owned));
                continue;
            }
            if message.group().is_some_and(|group| blocked.contains(group)) {
                continue;
            }
            let message = message.received(now, options.hidden_for());
            self.replace(&self.file(position), &message)?;
            received.push(message.into_received(position));
        }
        match malformed {
            Some(error) if received.is_empty() => Err(error),
            _ => Ok(received),
        }
    }

    fn delete(&self, receipt: &ReceiptHandle, now: SystemTime) -> Result<(), QueueError> {
        let stale = || QueueError::StaleReceipt(self.name.to_string());
        let position = receipt_position(receipt).ok_or_else(stale)?;
        let Some(message) = self.message(position)? else { return Ok(()) };
        if !message.has_receipt(position, receipt) {
            return Err(stale());
        }
        // The history is written before the message is removed. After a crash between the two, the message
        // still exists, and its position is not used again.
        let history = self.history()?.with_deleted(position, &message, now);
        self.replace(&self.folder.root().join(HISTORY), &history)?;
        Ok(locked_folder::remove(&self.file(position))?)
    }

    fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        hidden_for: Duration,
        now: SystemTime,
    ) -> Result<(), QueueError> {
        let stale = || QueueError::StaleReceipt(self.name.to_string());
        let position = receipt_position(receipt).ok_or_else(stale)?;
        let message = self.message(position)?.filter(|message| message.has_receipt(position, receipt));
        let message = message.ok_or_else(stale)?.hidden_until(now, hidden_for);
        self.replace(&self.file(position), &message)
    }

    /// The positions of the messages, in order.
    fn positions(&self) -> Result<Vec<u64>, QueueError> {
        let failed = |error| FileError::new("list", self.folder.root(), error);
        let entries = match self.folder.root().read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error).into()),
        };
        let mut positions = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            positions.extend(entry.file_name().to_str().and_then(position));
        }
        positions.sort_unstable();
        Ok(positions)
    }

    fn message(&self, position: u64) -> Result<Option<StoredMessage>, QueueError> {
        read(&self.file(position))
    }

    fn history(&self) -> Result<QueueHistory, QueueError> {
        Ok(read(&self.folder.root().join(HISTORY))?.unwrap_or_default())
    }

    fn file(&self, position: u64) -> PathBuf {
        self.folder.root().join(stored::file_name(position))
    }

    /// Replaces a file. The caller holds the lock.
    fn replace(&self, file: &Path, content: &impl Serialize) -> Result<(), QueueError> {
        let bytes =
            serde_json::to_vec(content).map_err(|error| FileError::new("write", file, error.into()))?;
        Ok(self.folder.replace(file, &bytes)?)
    }
}

/// Reads a file, if it exists.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, QueueError> {
    let malformed = |why| QueueError::Malformed { what: format!("`{}`", path.display()), why };
    let bytes =
        locked_folder::read_regular(path, MAX_FILE_BYTES).map_err(|error| match error.source.kind() {
            ErrorKind::FileTooLarge => malformed("it is too large"),
            _ => error.into(),
        })?;
    let parsed = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    parsed.map_err(|_| malformed("it is not a message of a queue"))
}

impl QueueReader for QueueDirectory {
    fn counts<'a>(
        &'a self,
        _: &'a ReadPermit,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageCounts, QueueError>> {
        self.run_blocking(move |files| files.counts(now)).boxed()
    }
}

impl QueueWriter for QueueDirectory {
    fn send<'a>(
        &'a self,
        _: &'a WritePermit,
        message: &'a NewMessage,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageId, QueueError>> {
        async move {
            message.check(&self.files.name)?;
            let message = message.clone();
            self.change(move |files| files.send(&message, now)).await
        }
        .boxed()
    }

    fn receive<'a>(
        &'a self,
        _: &'a WritePermit,
        options: ReceiveOptions,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Vec<ReceivedMessage>, QueueError>> {
        self.change(move |files| files.receive(options, now)).boxed()
    }

    fn delete<'a>(
        &'a self,
        _: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        let receipt = receipt.clone();
        self.change(move |files| files.delete(&receipt, now)).boxed()
    }

    fn change_visibility<'a>(
        &'a self,
        _: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        hidden_for: Duration,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        let receipt = receipt.clone();
        async move {
            check_hidden(hidden_for)?;
            self.change(move |files| files.change_visibility(&receipt, hidden_for, now)).await
        }
        .boxed()
    }
}
