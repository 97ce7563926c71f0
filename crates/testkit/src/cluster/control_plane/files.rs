//! The directory of a cluster, and its files before the first server starts.

use super::arguments::Ports;
use crate::cluster::{Api, Binaries, Error};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A new directory that only its owner can read.
pub fn folder() -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new()
        .prefix("qontract-cluster-")
        .tempdir()
        .map_err(|source| Error::Create { path: std::env::temp_dir(), source })
}

/// Writes tokens, keys and kubeconfigs; returns the description of the API server.
pub fn write(folder: &Path, binaries: &Binaries, ports: &Ports) -> Result<Api, Error> {
    let api = Api {
        url: format!("https://127.0.0.1:{}", ports.api),
        // The API server creates this self-signed certificate.
        ca: folder.join("certificates/apiserver.crt"),
        token: format!("admin-{}", ports.api),
        plain_token: format!("plain-{}", ports.api),
        kubeconfig: folder.join("admin.kubeconfig"),
        plain_kubeconfig: folder.join("plain.kubeconfig"),
        certificate_kubeconfig: folder.join("certificate.kubeconfig"),
        kubectl: binaries.kubectl.clone(),
    };
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|source| Error::Create { path: path.to_owned(), source })
    };
    write(&folder.join("tokens.csv"), &tokens(&api))?;
    let token = |token: &str| format!(r#"{{"token": "{token}"}}"#);
    write(&api.kubeconfig, &kubeconfig(&api, &token(&api.token)))?;
    write(&api.plain_kubeconfig, &kubeconfig(&api, &token(&api.plain_token)))?;
    // The paths are relative to the kubeconfig.
    let certificate = r#"{"client-certificate": "client.crt", "client-key": "client.key"}"#;
    write(&api.certificate_kubeconfig, &kubeconfig(&api, certificate))?;
    // Without extensions, the certificate would be an X.509 v1 certificate, which few servers and clients
    // accept.
    write(&folder.join("client.ext"), "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n")?;
    for line in KEYS {
        openssl(folder, line)?;
    }
    Ok(api)
}

/// The content of the token file, with the token, the name, the id and any groups of each user.
fn tokens(api: &Api) -> String {
    format!("{},admin,admin,system:masters\n{},plain,plain\n", api.token, api.plain_token)
}

/// A kubeconfig as JSON, which is valid YAML and in which only paths need to be quoted.
fn kubeconfig(api: &Api, user: &str) -> String {
    let ca = api.ca.display().to_string();
    let url = &api.url;
    format!(
        r#"{{
  "apiVersion": "v1", "kind": "Config", "current-context": "test",
  "clusters": [{{"name": "test", "cluster": {{"server": "{url}", "certificate-authority": {ca:?}}}}}],
  "users": [{{"name": "test", "user": {user}}}],
  "contexts": [{{"name": "test", "context": {{"cluster": "test", "user": "test"}}}}]
}}
"#
    )
}

/// `openssl` commands that create the signing key of service account tokens, the CA of client certificates,
/// and the client certificate of a member of `system:masters`.
const KEYS: [&str; 4] = [
    "genrsa -out service-account.key 2048",
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=client-ca -keyout client-ca.key -out client-ca.crt",
    "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /O=system:masters/CN=certified -keyout client.key -out client.csr",
    "x509 -req -in client.csr -CA client-ca.crt -CAkey client-ca.key -CAcreateserial -days 2 -extfile client.ext -out client.crt",
];

/// Runs `openssl` in the directory.
fn openssl(folder: &Path, line: &str) -> Result<(), Error> {
    let program = "openssl";
    let output = Command::new(program)
        .args(line.split(' '))
        .current_dir(folder)
        .output()
        .map_err(|source| Error::Start { program: program.into(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Ended { program: program.to_owned(), log })
}
