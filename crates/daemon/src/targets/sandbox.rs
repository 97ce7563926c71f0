//! The layout of a sandbox directory, and its secrets.
//!
//! | path | content |
//! |---|---|
//! | `clusters/CLUSTER/NAMESPACE/KIND/NAME.yaml` | the objects of clusters |
//! | `secrets.toml` | the secret store; the first write copies the made-up secrets of the data repo |
//! | `blobs/NAME/` | the bucket `targets.blobs.NAME` |
//! | `queue/NAME/` | the queue `targets.queue.NAME` |
//! | `state/state/INTEGRATION/` | the state store |
//! | `journal/` | the journal |

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use qontract_access::ReadPermit;
use qontract_bundle::repo::{FileReadError, RepoError};
use qontract_bundle::{Layout, Repo};
use qontract_client_secrets::FileSecrets;

/// The file of made-up secrets in a data repo.
const REPO_SECRETS_FILE: &str = "sandbox/secrets.toml";

/// The paths in a sandbox directory, except for those of clusters.
#[derive(Clone, Debug)]
pub(super) struct SandboxFolders(PathBuf);

impl SandboxFolders {
    /// Creates the paths of the sandbox in this directory.
    pub fn new(sandbox: &Path) -> Self {
        Self(sandbox.to_owned())
    }

    /// The file of secrets.
    fn secrets(&self) -> PathBuf {
        self.0.join("secrets.toml")
    }

    /// The directory of a bucket.
    pub fn blobs(&self, name: &str) -> PathBuf {
        self.0.join("blobs").join(name)
    }

    /// The directory of a queue.
    pub fn queue(&self, name: &str) -> PathBuf {
        self.0.join("queue").join(name)
    }

    /// The directory of the bucket with the state store.
    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Opens the secret store: the file of the sandbox or, until the first write, the made-up secrets of the data
    /// repo.
    pub fn secret_store(&self, permit: &ReadPermit, repo: Option<&Path>) -> anyhow::Result<FileSecrets> {
        let file = self.secrets();
        let seed = if file.is_file() { toml::Table::new() } else { made_up_secrets(repo)? };
        let secrets = FileSecrets::new(permit, file, seed);
        secrets.check()?;
        Ok(secrets)
    }
}

/// The made-up secrets of a data repo; empty if the data repo has none.
pub fn made_up_secrets(repo: Option<&Path>) -> anyhow::Result<toml::Table> {
    let Some(repo) = repo else { return Ok(toml::Table::new()) };
    let Some(text) = repo_secrets(repo)? else { return Ok(toml::Table::new()) };
    let file = repo.join(REPO_SECRETS_FILE);
    // The error does not quote the content, because the file might contain real secrets by mistake.
    text.parse().map_err(|_| anyhow::anyhow!("`{}` is not valid TOML", file.display()))
}

/// The text of the made-up secrets of a data repo, if the file exists. The file is read like every file of a data
/// repo: links that leave the data repo and files that are too large are refused.
fn repo_secrets(repo: &Path) -> anyhow::Result<Option<String>> {
    let cannot = || format!("cannot read `{}`", repo.join(REPO_SECRETS_FILE).display());
    let file = match Repo::directory(repo, Layout::default()).file(REPO_SECRETS_FILE) {
        Err(RepoError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error).with_context(cannot),
        Ok(Err(finding)) => bail!("{}: {}", cannot(), finding.message),
        Ok(Ok(file)) => file,
    };
    let bytes = match file.read() {
        Ok(bytes) => bytes.into_owned(),
        Err(error @ FileReadError::TooLarge(_)) => bail!("{}: {error}", cannot()),
        Err(error) => return Err(error).with_context(cannot),
    };
    String::from_utf8(bytes).map(Some).map_err(|_| anyhow::anyhow!("{}: it is not UTF-8", cannot()))
}
