//! Secrets in a writable file: the secret store of a sandbox.
//!
//! **Invariant:** the file is replaced atomically and readable only by its owner, and a file lock serializes
//! the writes of all processes.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_client_http::Secret;
use qontract_concurrency::run_blocking;
use qontract_files::atomic::{AtomicFile, Durability};
use qontract_files::{lock, private_files};
use toml::{Table, Value};

use crate::config_secrets::ConfigSecrets;
use crate::error::SecretsError;
use crate::location::segments;
use crate::reference::SecretRef;
use crate::{SecretFields, SecretReader, SecretWriter, WriteOutcome};

/// Secrets in nested tables of a TOML file, as in [`ConfigSecrets`]. They have no versions.
///
/// The file is read for each call, so that changes by other processes and by editors take effect.
#[derive(Clone)]
pub struct FileSecrets {
    shared: Arc<SecretsFile>,
}

/// The blocking implementation.
struct SecretsFile {
    path: PathBuf,
    /// The secrets that are used while the file does not exist. The first write copies these secrets into the
    /// file.
    seed: Table,
    mode: Mode,
}

impl FileSecrets {
    /// The secrets in the file at `path`, or in `seed` until the first write creates it. In a dry run, writes
    /// are refused, regardless of the permit.
    pub fn new(permit: &ReadPermit, path: impl Into<PathBuf>, seed: Table) -> Self {
        Self { shared: Arc::new(SecretsFile { path: path.into(), seed, mode: permit.mode() }) }
    }

    /// Checks that the file, if it exists, can be read and is valid.
    pub fn check(&self) -> Result<(), SecretsError> {
        self.shared.load().map(drop)
    }
}

impl fmt::Debug for FileSecrets {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileSecrets(`{}`)", self.shared.path.display())
    }
}

impl SecretsFile {
    fn load(&self) -> Result<Table, SecretsError> {
        // Only a regular file is opened, because a pipe would block.
        if !self.path.is_file() {
            return Ok(self.seed.clone());
        }
        let text = fs::read_to_string(&self.path).map_err(|error| file_error("read", &self.path, error))?;
        // The parser's message is omitted, because it may quote a value.
        let invalid = |_| io::Error::new(ErrorKind::InvalidData, "it is not valid TOML");
        text.parse().map_err(|error| file_error("read", &self.path, invalid(error)))
    }

    fn tables(&self) -> Result<ConfigSecrets, SecretsError> {
        self.load().map(ConfigSecrets::new)
    }

    fn write(&self, path: &str, fields: &SecretFields) -> Result<WriteOutcome, SecretsError> {
        if self.mode == Mode::DryRun {
            return Err(SecretsError::Unsupported("a dry run does not write secrets"));
        }
        let segments = segments(path)?;
        let _lock = self.lock()?;
        let mut root = self.load()?;
        if ConfigSecrets::new(root.clone()).fields(path).is_ok_and(|current| is_same(&current, fields)) {
            return Ok(WriteOutcome::Unchanged);
        }
        let wrong = |why| SecretsError::Path { path: path.to_owned(), why };
        let mut table = &mut root;
        for segment in segments {
            let inner = table.entry(segment).or_insert_with(|| Value::Table(Table::new()));
            table = inner.as_table_mut().ok_or_else(|| wrong("another secret has a field of this name"))?;
        }
        if fields.keys().any(|field| table.get(field).is_some_and(Value::is_table)) {
            return Err(wrong("a field would have the name of another secret"));
        }
        table.retain(|_, value| value.is_table());
        for (field, value) in fields {
            table.insert(field.clone(), Value::String(value.expose().to_owned()));
        }
        self.replace(&root.to_string())?;
        Ok(WriteOutcome::Changed)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// A hidden file next to the file.
    fn beside(&self, extension: &str) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.folder().join(format!(".{name}.{extension}"))
    }

    /// Takes the lock. The lock is held until the returned file is dropped.
    fn lock(&self) -> Result<File, SecretsError> {
        let (folder, path) = (self.folder(), self.beside("lock"));
        let created = private_files::create_folder(folder, folder);
        created.map_err(|error| file_error("create", folder, error))?;
        lock::acquire(&path, lock::DEFAULT_TIMEOUT).map_err(|error| file_error("lock", &path, error))
    }

    /// Replaces the file. The caller holds the lock, so nothing else uses the temporary file.
    fn replace(&self, text: &str) -> Result<(), SecretsError> {
        let write = || {
            let mut out = AtomicFile::locked(&self.path, &self.beside("draft"), Durability::Directory)?;
            out.write_all(text.as_bytes())?;
            out.commit()
        };
        write().map_err(|error| file_error("write", &self.path, error))
    }
}

/// Whether both secrets have the same fields and values.
fn is_same(one: &SecretFields, other: &SecretFields) -> bool {
    one.len() == other.len()
        && one.iter().all(|(field, value)| other.get(field).is_some_and(|other| other.is_same(value)))
}

fn file_error(what: &str, path: &Path, error: io::Error) -> SecretsError {
    SecretsError::File { what: format!("{what} `{}`", path.display()), error: Arc::new(error) }
}

impl SecretReader for FileSecrets {
    fn read<'a>(
        &'a self,
        permit: &'a ReadPermit,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretsError>> {
        async move { self.shared.tables()?.read(permit, secret).await }.boxed()
    }

    fn read_all<'a>(
        &'a self,
        _: &'a ReadPermit,
        path: &'a str,
        _: Option<u64>,
    ) -> BoxFuture<'a, Result<SecretFields, SecretsError>> {
        async move { self.shared.tables()?.fields(path) }.boxed()
    }
}

impl SecretWriter for FileSecrets {
    fn write<'a>(
        &'a self,
        _: &'a WritePermit,
        path: &'a str,
        fields: &'a SecretFields,
    ) -> BoxFuture<'a, Result<WriteOutcome, SecretsError>> {
        let (shared, path, fields) = (Arc::clone(&self.shared), path.to_owned(), fields.clone());
        async move {
            // The write runs on a blocking thread, because the lock may block.
            run_blocking(move || shared.write(&path, &fields)).await
        }
        .boxed()
    }
}
