//! A running API server: its URL, its users, and `kubectl` to set up objects.

use crate::cluster::{Error, WITHOUT_KUBE_VARIABLE};
use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

/// A running API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Api {
    /// `https://127.0.0.1:PORT`.
    pub url: String,
    /// The file of the CA certificate.
    pub ca: PathBuf,
    /// The token of a user with all permissions.
    pub token: String,
    /// The token of a user without permissions.
    pub plain_token: String,
    /// A kubeconfig with [`Self::token`].
    pub kubeconfig: PathBuf,
    /// A kubeconfig with [`Self::plain_token`].
    pub plain_kubeconfig: PathBuf,
    /// A kubeconfig with the client certificate of a cluster administrator.
    pub certificate_kubeconfig: PathBuf,
    /// The path of `kubectl`.
    pub kubectl: PathBuf,
}

/// The user of a `kubectl` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// A member of `system:masters`, with all permissions.
    Admin,
    /// The user `plain`, without permissions unless a test grants them.
    Plain,
}

/// The output of `kubectl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubectlOutput {
    /// Whether the command succeeded.
    pub ok: bool,
    /// The stdout.
    pub stdout: String,
    /// The stderr.
    pub stderr: String,
}

const URL: &str = "QONTRACT_KUBE_URL";
const CA: &str = "QONTRACT_KUBE_CA";
const TOKEN: &str = "QONTRACT_KUBE_TOKEN";
const PLAIN_TOKEN: &str = "QONTRACT_KUBE_PLAIN_TOKEN";
const CONFIG: &str = "QONTRACT_KUBE_CONFIG";
const PLAIN_CONFIG: &str = "QONTRACT_KUBE_PLAIN_CONFIG";
const CERTIFICATE_CONFIG: &str = "QONTRACT_KUBE_CERTIFICATE_CONFIG";
const KUBECTL: &str = crate::cluster::Binaries::KUBECTL;

/// The server that all tests of this run share, started by `cargo xtask test`.
///
/// # Panics
///
/// If no server is configured; the message names the remedy.
#[track_caller]
pub fn shared() -> &'static Api {
    static SHARED: OnceLock<Api> = OnceLock::new();
    if let Some(api) = SHARED.get() {
        return api;
    }
    match Api::from_variables(|name| env::var_os(name)) {
        Ok(api) => SHARED.get_or_init(|| api),
        Err(error) => panic!("{error}"),
    }
}

impl Api {
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        if variable(WITHOUT_KUBE_VARIABLE).is_some() {
            return Err(Error::Skipped);
        }
        let value = |name: &'static str| variable(name).ok_or(Error::Unset { variable: name });
        let text = |name| value(name)?.into_string().map_err(|_| Error::Unset { variable: name });
        Ok(Self {
            url: text(URL)?,
            ca: value(CA)?.into(),
            token: text(TOKEN)?,
            plain_token: text(PLAIN_TOKEN)?,
            kubeconfig: value(CONFIG)?.into(),
            plain_kubeconfig: value(PLAIN_CONFIG)?.into(),
            certificate_kubeconfig: value(CERTIFICATE_CONFIG)?.into(),
            kubectl: value(KUBECTL)?.into(),
        })
    }

    /// The environment variables that make this server the [`shared`] server of other processes.
    pub fn variables(&self) -> [(&'static str, OsString); 8] {
        [
            (URL, self.url.clone().into()),
            (CA, self.ca.clone().into()),
            (TOKEN, self.token.clone().into()),
            (PLAIN_TOKEN, self.plain_token.clone().into()),
            (CONFIG, self.kubeconfig.clone().into()),
            (PLAIN_CONFIG, self.plain_kubeconfig.clone().into()),
            (CERTIFICATE_CONFIG, self.certificate_kubeconfig.clone().into()),
            (KUBECTL, self.kubectl.clone().into()),
        ]
    }

    /// Runs `kubectl` as admin; `-f -` reads `stdin`.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> KubectlOutput {
        self.kubectl_as(User::Admin, arguments, stdin)
    }

    /// Runs `kubectl` as one of the users.
    ///
    /// # Panics
    ///
    /// If `kubectl` cannot be started.
    pub fn kubectl_as(&self, user: User, arguments: &[&str], stdin: &str) -> KubectlOutput {
        self.run_kubectl(user, arguments, stdin)
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.kubectl.display()))
    }

    pub(crate) fn run_kubectl(
        &self,
        user: User,
        arguments: &[&str],
        stdin: &str,
    ) -> io::Result<KubectlOutput> {
        let kubeconfig = match user {
            User::Admin => &self.kubeconfig,
            User::Plain => &self.plain_kubeconfig,
        };
        // The cache is next to the kubeconfig, so that nothing is written to the home directory.
        let cache = self.kubeconfig.with_file_name("kubectl-cache");
        let mut child = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--cache-dir")
            .arg(cache)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = thread::scope(|scope| {
            let pipe = child.stdin.take();
            // The error is ignored, because a client might not read its stdin.
            scope.spawn(move || pipe.map(|mut pipe| pipe.write_all(stdin.as_bytes())));
            child.wait_with_output()
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(KubectlOutput {
            ok: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }
}

impl KubectlOutput {
    /// The stdout of a successful command.
    ///
    /// # Panics
    ///
    /// If the command failed; the message contains its stderr.
    pub fn text(self) -> String {
        assert!(self.ok, "kubectl failed: {}", self.stderr);
        self.stdout
    }

    /// The stderr of a failed command.
    ///
    /// # Panics
    ///
    /// If the command succeeded.
    pub fn error_text(self) -> String {
        assert!(!self.ok, "kubectl did not fail: {}", self.stdout);
        self.stderr
    }
}

#[cfg(test)]
mod tests {
    use super::{Api, WITHOUT_KUBE_VARIABLE};
    use crate::cluster::Error;
    use std::ffi::OsString;
    use std::path::PathBuf;

    fn api(kubectl: &str) -> Api {
        Api {
            url: "https://127.0.0.1:1".to_owned(),
            ca: PathBuf::from("/c/apiserver.crt"),
            token: "a".to_owned(),
            plain_token: "p".to_owned(),
            kubeconfig: PathBuf::from("/c/admin"),
            plain_kubeconfig: PathBuf::from("/c/plain"),
            certificate_kubeconfig: PathBuf::from("/c/certificate"),
            kubectl: PathBuf::from(kubectl),
        }
    }

    #[test]
    fn a_server_round_trips_through_the_variables() {
        let expected = api("/b/kubectl");
        let variables = expected.variables();
        let read = Api::from_variables(|name| {
            variables.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| value.clone())
        });
        assert_eq!(read.expect("all variables are set"), expected);
    }

    #[test]
    fn without_a_server_the_error_says_what_to_do_in_one_line() {
        let error = Api::from_variables(|_| None).expect_err("no variable is set").to_string();
        assert!(error.contains("`cargo xtask test --without-kube`") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_skipped_server_is_an_error() {
        let left_out =
            Api::from_variables(|name| (name == WITHOUT_KUBE_VARIABLE).then(|| OsString::from("1")));
        assert!(matches!(left_out, Err(Error::Skipped)), "{left_out:?}");
    }

    #[test]
    fn the_client_gets_its_arguments_and_does_not_use_the_home_directory() {
        let output = api("echo").kubectl(&["get", "pods"], "").text();
        assert_eq!(output, "--kubeconfig /c/admin --cache-dir /c/kubectl-cache get pods\n");
    }

    #[test]
    fn a_failed_command_is_detected() {
        let output = api("false").kubectl(&[], "");
        assert!(!output.ok);
        assert_eq!(output.error_text(), "");
    }
}
