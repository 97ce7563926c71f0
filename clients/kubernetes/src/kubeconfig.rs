//! Kubeconfig files: server, CA and credentials of one context. Pure: the caller reads the files that a
//! kubeconfig names.
//!
//! Tokens, token files and client certificates are supported. A setting is refused if it would run a program,
//! or change the trust or the identity of a connection.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use qontract_client_http::Secret;
use serde::Deserialize;
use serde_json::Value;

/// An error of a kubeconfig.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// The file is not YAML, or not a kubeconfig.
    #[error("not a kubeconfig: {0}")]
    Syntax(String),
    /// The context, cluster or user does not exist.
    #[error("the kubeconfig has no {what} `{name}`{}", listed(.available))]
    Missing {
        /// The kind of the missing entry.
        what: &'static str,
        /// The name of the entry.
        name: String,
        /// The names of the existing entries.
        available: Vec<String>,
    },
    /// No context is given, and the kubeconfig has no current context.
    #[error("the kubeconfig has no current context: set `context`{}", listed(.0))]
    NoContext(Vec<String>),
    /// A setting that is not supported.
    #[error("{what} `{name}` has `{setting}`, which is not supported: {instead}")]
    Unsupported {
        /// A cluster or a user.
        what: &'static str,
        /// The name of the entry.
        name: String,
        /// The setting.
        setting: &'static str,
        /// The remedy.
        instead: &'static str,
    },
    /// A setting that is missing or malformed.
    #[error("{what} `{name}`: {why}")]
    Invalid {
        /// A cluster or a user.
        what: &'static str,
        /// The name of the entry.
        name: String,
        /// The error.
        why: &'static str,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(" (it has {})", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}

/// PEM in the kubeconfig itself, or in a file that the kubeconfig names.
#[derive(Clone, Debug)]
pub enum Pem {
    /// PEM in the kubeconfig.
    Inline(Secret),
    /// The path of a PEM file, which may be relative to the kubeconfig.
    File(PathBuf),
}

/// Credentials for a cluster.
#[derive(Clone, Debug)]
pub enum KubeconfigCredentials {
    /// A token.
    Token(Secret),
    /// A file with a token, which may be replaced during the run.
    TokenFile(PathBuf),
    /// A client certificate and its private key.
    Certificate {
        /// The certificate.
        certificate: Pem,
        /// The private key of the certificate.
        key: Pem,
    },
}

/// The address and the credentials of one cluster.
#[derive(Clone, Debug)]
pub struct ContextLogin {
    /// The server.
    pub server: String,
    /// The CA of the server.
    pub ca: Option<Pem>,
    /// The credentials.
    pub credentials: KubeconfigCredentials,
}

#[derive(Deserialize)]
struct Kubeconfig {
    #[serde(rename = "current-context", default)]
    current: String,
    #[serde(default)]
    clusters: Vec<NamedEntry>,
    #[serde(default)]
    users: Vec<NamedEntry>,
    #[serde(default)]
    contexts: Vec<NamedEntry>,
}

/// An entry of a list: its name, and a map below the key `cluster`, `user` or `context`.
#[derive(Deserialize)]
struct NamedEntry {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context", default)]
    value: Value,
}

/// One entry, with its section.
struct KubeconfigEntry<'a> {
    what: &'static str,
    name: &'a str,
    value: &'a Value,
}

impl<'a> KubeconfigEntry<'a> {
    fn find(what: &'static str, name: &'a str, all: &'a [NamedEntry]) -> Result<Self, KubeconfigError> {
        let found = all.iter().find(|one| one.name == name);
        let available = || all.iter().map(|one| one.name.clone()).collect();
        let missing = || KubeconfigError::Missing { what, name: name.to_owned(), available: available() };
        found.map(|one| Self { what, name, value: &one.value }).ok_or_else(missing)
    }

    /// A string setting; an empty string counts as missing.
    fn text(&self, setting: &str) -> Option<&'a str> {
        self.value.get(setting).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// PEM from the setting whose name ends in `-data`, or from the file that the setting without `-data`
    /// names.
    fn pem(&self, setting: &str) -> Result<Option<Pem>, KubeconfigError> {
        let Some(data) = self.text(&format!("{setting}-data")) else {
            return Ok(self.text(setting).map(|file| Pem::File(file.into())));
        };
        let text = BASE64_STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| self.invalid("its `-data` is not base64-encoded PEM"))?;
        Ok(Some(Pem::Inline(Secret::new(text))))
    }

    fn invalid(&self, why: &'static str) -> KubeconfigError {
        KubeconfigError::Invalid { what: self.what, name: self.name.to_owned(), why }
    }

    /// Fails if the entry has any of these settings.
    fn reject(&self, settings: &[&'static str], instead: &'static str) -> Result<(), KubeconfigError> {
        let is_set = |setting: &&&'static str| {
            self.value.get(**setting).is_some_and(|value| !value.is_null() && value != "")
        };
        let Some(setting) = settings.iter().find(is_set) else { return Ok(()) };
        Err(KubeconfigError::Unsupported { what: self.what, name: self.name.to_owned(), setting, instead })
    }
}

/// The address and credentials of a context's cluster; `None` means the current context.
pub fn login(bytes: &[u8], context: Option<&str>) -> Result<ContextLogin, KubeconfigError> {
    let value = qontract_yaml::json::read(bytes).map_err(KubeconfigError::Syntax)?;
    // The content may be secret, so the error does not quote it.
    let syntax = |_| {
        KubeconfigError::Syntax("`clusters`, `users` and `contexts` are lists of named entries".to_owned())
    };
    let kubeconfig: Kubeconfig = serde_json::from_value(value).map_err(syntax)?;
    let Kubeconfig { current, clusters, users, contexts } = &kubeconfig;
    let name = context.unwrap_or(current);
    if name.is_empty() {
        return Err(KubeconfigError::NoContext(contexts.iter().map(|one| one.name.clone()).collect()));
    }
    let context = KubeconfigEntry::find("context", name, contexts)?;
    let part =
        |setting| context.text(setting).ok_or_else(|| context.invalid("it names no cluster or no user"));
    let cluster = KubeconfigEntry::find("cluster", part("cluster")?, clusters)?;
    let user = KubeconfigEntry::find("user", part("user")?, users)?;
    cluster.reject(&["proxy-url"], "set `HTTPS_PROXY`")?;
    cluster.reject(&["tls-server-name"], "use an address that the certificate is for")?;
    let instead = "use a token, a token file or a client certificate";
    user.reject(&["exec", "auth-provider", "username", "password"], instead)?;
    user.reject(&["as", "as-uid", "as-groups", "as-user-extra"], "use the credentials of that user")?;
    let server = cluster.text("server").ok_or_else(|| cluster.invalid("it has no `server`"))?.to_owned();
    let ca = cluster.pem("certificate-authority")?;
    let certificate = user.pem("client-certificate")?;
    let credentials = match (user.text("token"), user.text("tokenFile"), certificate) {
        (_, Some(file), _) => KubeconfigCredentials::TokenFile(file.into()),
        (Some(token), None, _) => KubeconfigCredentials::Token(Secret::new(token)),
        (None, None, Some(certificate)) => {
            let key = user.pem("client-key")?.ok_or_else(|| user.invalid("it has no `client-key`"))?;
            KubeconfigCredentials::Certificate { certificate, key }
        }
        (None, None, None) => return Err(user.invalid("it has neither a token nor a client certificate")),
    };
    Ok(ContextLogin { server, ca, credentials })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kubeconfig with one context `c`, whose cluster and user have these settings.
    fn file(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        )
    }

    #[track_caller]
    fn refused(text: &str, context: Option<&str>, expect: &str) {
        assert_eq!(login(text.as_bytes(), context).unwrap_err().to_string(), expect);
    }

    const SERVER: &str = "server: 'https://h:6443'";

    #[test]
    fn a_token_a_token_file_or_a_certificate_is_accepted() {
        let text = file("server: 'https://h:6443', certificate-authority-data: YWJj", "token: t0ken");
        let read = login(text.as_bytes(), None).unwrap();
        assert_eq!(read.server, "https://h:6443");
        assert!(matches!(&read.ca, Some(Pem::Inline(pem)) if pem.expose() == "abc"));
        assert!(
            matches!(&read.credentials, KubeconfigCredentials::Token(token) if token.expose() == "t0ken")
        );
        let text = file("server: 'https://h:6443', certificate-authority: ca.pem", "token: a, tokenFile: t");
        let read = login(text.as_bytes(), Some("c")).unwrap();
        assert!(matches!(&read.ca, Some(Pem::File(path)) if path == &PathBuf::from("ca.pem")));
        assert!(
            matches!(&read.credentials, KubeconfigCredentials::TokenFile(path) if path == &PathBuf::from("t"))
        );
        let text = file(SERVER, "client-certificate-data: YWJj, client-key: k.pem");
        let KubeconfigCredentials::Certificate { certificate: Pem::Inline(pem), key: Pem::File(key) } =
            login(text.as_bytes(), None).unwrap().credentials
        else {
            panic!("a certificate")
        };
        assert_eq!((pem.expose(), key), ("abc", PathBuf::from("k.pem")));
    }

    #[test]
    fn unsupported_settings_are_refused_with_a_remedy() {
        let instead = "use a token, a token file or a client certificate";
        for setting in ["exec", "auth-provider", "username", "password"] {
            let text = file(SERVER, &format!("token: t, {setting}: x"));
            refused(&text, None, &format!("user `u` has `{setting}`, which is not supported: {instead}"));
        }
        refused(
            &file(SERVER, "token: t, as: root"),
            None,
            "user `u` has `as`, which is not supported: use the credentials of that user",
        );
        let proxy = file("server: 'https://h', proxy-url: 'http://p'", "token: t");
        refused(&proxy, None, "cluster `k` has `proxy-url`, which is not supported: set `HTTPS_PROXY`");
        let named = file("server: 'https://h', tls-server-name: x", "token: t");
        refused(
            &named,
            None,
            "cluster `k` has `tls-server-name`, which is not supported: use an address that the certificate is for",
        );
        // Empty settings count as missing.
        assert!(login(file(SERVER, "token: t, password: '', exec: null").as_bytes(), None).is_ok());
    }

    #[test]
    fn missing_entries_are_named() {
        refused(&file(SERVER, "token: t"), Some("d"), "the kubeconfig has no context `d` (it has `c`)");
        refused("clusters: []\n", None, "the kubeconfig has no current context: set `context`");
        refused(
            "contexts: [{name: c}]\n",
            None,
            "the kubeconfig has no current context: set `context` (it has `c`)",
        );
        refused(
            "contexts: [{name: c, context: {cluster: k}}]\n",
            Some("c"),
            "the kubeconfig has no cluster `k`",
        );
        refused(
            "contexts: [{name: c, context: {}}]\n",
            Some("c"),
            "context `c`: it names no cluster or no user",
        );
        refused(&file("a: b", "token: t"), None, "cluster `k`: it has no `server`");
        refused(&file(SERVER, "a: b"), None, "user `u`: it has neither a token nor a client certificate");
        refused(&file(SERVER, "client-certificate: c.pem"), None, "user `u`: it has no `client-key`");
        refused(
            &file(SERVER, "client-certificate-data: '%'"),
            None,
            "user `u`: its `-data` is not base64-encoded PEM",
        );
        refused(
            "clusters: s3cret\n",
            None,
            "not a kubeconfig: `clusters`, `users` and `contexts` are lists of named entries",
        );
    }
}
