//! The folder of a cluster, and what is in it before the first server starts.

use super::arguments::Ports;
use crate::{Api, Binaries, Error};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A new folder that only its owner may look into.
pub fn folder() -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new()
        .prefix("qontract-cluster-")
        .tempdir()
        .map_err(|source| Error::Make { path: std::env::temp_dir(), source })
}

/// Writes tokens, keys and kubeconfigs; tells where the API server will be.
pub fn write(folder: &Path, binaries: &Binaries, ports: &Ports) -> Result<Api, Error> {
    let api = Api {
        url: format!("https://127.0.0.1:{}", ports.api),
        // made by the API server; it signed itself
        ca: folder.join("certificates/apiserver.crt"),
        token: format!("admin-{}", ports.api),
        plain_token: format!("plain-{}", ports.api),
        kubeconfig: folder.join("admin.kubeconfig"),
        plain_kubeconfig: folder.join("plain.kubeconfig"),
        kubectl: binaries.kubectl.clone(),
    };
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|source| Error::Make { path: path.to_owned(), source })
    };
    write(&folder.join("tokens.csv"), &tokens(&api))?;
    write(&api.kubeconfig, &kubeconfig(&api, &api.token))?;
    write(&api.plain_kubeconfig, &kubeconfig(&api, &api.plain_token))?;
    make_key(&folder.join("service-account.key"))?;
    Ok(api)
}

/// Token, user, id, groups.
fn tokens(api: &Api) -> String {
    format!("{},admin,admin,system:masters\n{},plain,plain\n", api.token, api.plain_token)
}

/// JSON is YAML, and needs no care for what is in the paths but for quotes.
fn kubeconfig(api: &Api, token: &str) -> String {
    let ca = api.ca.display().to_string();
    let url = &api.url;
    format!(
        r#"{{
  "apiVersion": "v1", "kind": "Config", "current-context": "test",
  "clusters": [{{"name": "test", "cluster": {{"server": "{url}", "certificate-authority": {ca:?}}}}}],
  "users": [{{"name": "test", "user": {{"token": "{token}"}}}}],
  "contexts": [{{"name": "test", "context": {{"cluster": "test", "user": "test"}}}}]
}}
"#
    )
}

/// The key that service accounts' tokens are signed with.
fn make_key(path: &Path) -> Result<(), Error> {
    let program = "openssl";
    let output = Command::new(program)
        .args(["genrsa", "-out"])
        .arg(path)
        .arg("2048")
        .output()
        .map_err(|source| Error::Start { program: program.into(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Ended { program: program.to_owned(), log })
}
