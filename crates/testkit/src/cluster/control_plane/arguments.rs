//! The command lines of the servers.

use crate::cluster::{Api, Error};
use std::path::Path;
use std::process::Command;

/// The last minor version of Kubernetes whose controller manager also listens without TLS by default.
const LAST_WITH_PLAIN_PORT: u32 = 23;

/// The ports of the servers, on 127.0.0.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// The client port of etcd.
    pub etcd: u16,
    /// The peer port of etcd, which is not used.
    pub peer: u16,
    /// The port of the API server.
    pub api: u16,
}

/// Arguments of etcd, without fsync: the data is temporary.
pub fn etcd(folder: &Path, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.peer);
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ]
}

/// Arguments of the API server, without service accounts for pods and without its own endpoints, which tests
/// do not need.
pub fn api_server(folder: &Path, ports: &Ports) -> Vec<String> {
    let key = folder.join("service-account.key");
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.api),
        format!("--cert-dir={}", folder.join("certificates").display()),
        format!("--token-auth-file={}", folder.join("tokens.csv").display()),
        format!("--client-ca-file={}", folder.join("client-ca.crt").display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", key.display()),
        format!("--service-account-signing-key-file={}", key.display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ]
}

/// Arguments of the controller manager, without a port and with a high request rate.
pub fn controller_manager(folder: &Path, api: &Api, minor: u32) -> Vec<String> {
    let mut arguments = vec![
        format!("--kubeconfig={}", api.kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        format!("--service-account-private-key-file={}", folder.join("service-account.key").display()),
        format!("--root-ca-file={}", api.ca.display()),
    ];
    if minor <= LAST_WITH_PLAIN_PORT {
        arguments.push("--port=0".to_owned());
    }
    arguments
}

/// The minor version of a Kubernetes program.
pub fn minor_version(program: &Path) -> Result<u32, Error> {
    let failed = |source| Error::Start { program: program.to_owned(), source };
    let output = Command::new(program).arg("--version").output().map_err(failed)?;
    let output = String::from_utf8_lossy(&output.stdout);
    minor(&output).ok_or_else(|| {
        let log = format!("unknown version: {}", output.trim());
        Error::Ended { program: program.display().to_string(), log }
    })
}

fn minor(output: &str) -> Option<u32> {
    let (_, rest) = output.split_once("v1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::minor;

    #[test]
    fn versions_are_read() {
        assert_eq!(minor("Kubernetes v1.20.2\n"), Some(20));
        assert_eq!(minor("Kubernetes v1.34.0-rc.1\n"), Some(34));
        assert_eq!(minor("Kubernetes v2\n"), None);
    }
}
