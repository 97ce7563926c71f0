//! Reads the kubeconfig that a cluster of the configuration names.

use std::path::{Path, PathBuf};

use qontract_client_http::Secret;
use qontract_client_kubernetes::ClientCertificate;
use qontract_client_kubernetes::kubeconfig::{ContextLogin, KubeconfigCredentials, Pem, login as read_login};
use qontract_config::{ClusterTable, ConfigError};

/// The login of a cluster, with the content of the files that its kubeconfig names.
pub struct ClusterLogin {
    /// The URL of the server.
    pub server: String,
    /// The CA certificates of the server.
    pub ca: Option<Vec<u8>>,
    /// The client certificate, if the kubeconfig has no token.
    pub certificate: Option<ClientCertificate>,
    /// The token, if the kubeconfig has one.
    pub token: Option<KubeconfigToken>,
}

/// The token of a kubeconfig.
pub enum KubeconfigToken {
    /// The token itself.
    Text(Secret),
    /// The file with the token. It is read at each login, because it may be replaced while the process runs.
    File(PathBuf),
}

impl KubeconfigToken {
    /// Reads the token, from its file if it has one.
    pub fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Text(token) => Ok(token.clone()),
            Self::File(file) => {
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|error| format!("cannot read `{}`: {error}", file.display()))?;
                Ok(Secret::new(text.trim()))
            }
        }
    }
}

/// The login from a cluster's kubeconfig; `None` if the cluster names no kubeconfig. `key` is the cluster's key in
/// the configuration.
pub fn login(cluster: &ClusterTable, key: &str) -> Result<Option<ClusterLogin>, ConfigError> {
    let Some(file) = &cluster.kubeconfig else {
        let is_alone = cluster.context.is_some();
        let why = format!("`{key}.context` is set, but `{key}.kubeconfig` is not");
        return if is_alone { Err(ConfigError::new(why)) } else { Ok(None) };
    };
    let wrong = |why: String| ConfigError::new(format!("`{key}.kubeconfig`: {why}"));
    let cannot =
        |file: &Path, error: &std::io::Error| wrong(format!("cannot read `{}`: {error}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| cannot(file, &error))?;
    let ContextLogin { server, ca, credentials } = read_login(&bytes, cluster.context.as_deref())
        .map_err(|error| wrong(format!("`{}`: {error}", file.display())))?;
    if let Some(own) =
        cluster.server.as_ref().filter(|own| own.trim_end_matches('/') != server.trim_end_matches('/'))
    {
        return Err(wrong(format!("its server is `{server}`, and `{key}.server` is `{own}`")));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let text = |pem: Pem| match pem {
        Pem::Inline(text) => Ok(text.expose().to_owned()),
        Pem::File(path) => {
            let path = folder.join(path);
            std::fs::read_to_string(&path).map_err(|error| cannot(&path, &error))
        }
    };
    let ca = ca.map(text).transpose()?.map(String::into_bytes);
    let (mut certificate, mut token) = (None, None);
    match credentials {
        KubeconfigCredentials::Token(secret) => token = Some(KubeconfigToken::Text(secret)),
        KubeconfigCredentials::TokenFile(path) => token = Some(KubeconfigToken::File(folder.join(path))),
        KubeconfigCredentials::Certificate { certificate: own, key } => {
            let pem = Secret::new(format!("{}\n{}\n", text(own)?.trim_end(), text(key)?.trim_end()));
            certificate = Some(ClientCertificate { pem, server: server.clone() });
        }
    }
    Ok(Some(ClusterLogin { server, ca, certificate, token }))
}
