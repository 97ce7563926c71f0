//! The programs that make a cluster.

use crate::cluster::{Error, WITHOUT};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where the programs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The folder of the servers.
    pub folder: PathBuf,
    /// The client.
    pub kubectl: PathBuf,
}

impl Binaries {
    /// The servers, by the names of their files.
    pub const SERVERS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
    /// The variable that names the folder of the servers.
    pub(crate) const FOLDER: &str = "QONTRACT_KUBE_BIN";
    /// The variable that names the client.
    pub(crate) const KUBECTL: &str = "QONTRACT_KUBECTL";

    /// Those that the environment names.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_variables(|name| env::var_os(name))
    }

    /// As [`Self::from_environment`]; the client is looked for beside the servers, unless it is named.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        if variable(WITHOUT).is_some() {
            return Err(Error::LeftOut);
        }
        let folder =
            variable(Self::FOLDER).map(PathBuf::from).ok_or(Error::Unset { variable: Self::FOLDER })?;
        let kubectl = variable(Self::KUBECTL).map_or_else(|| folder.join("kubectl"), PathBuf::from);
        Ok(Self { folder, kubectl })
    }

    /// What [`Self::from_environment`] reads.
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        [(Self::FOLDER, self.folder.clone().into()), (Self::KUBECTL, self.kubectl.clone().into())]
    }
}

#[cfg(test)]
mod tests {
    use super::Binaries;
    use crate::cluster::Error;
    use std::path::PathBuf;

    #[test]
    fn they_are_read_as_they_are_told() {
        let binaries = Binaries { folder: PathBuf::from("/b"), kubectl: PathBuf::from("/k") };
        let told = binaries.variables();
        let read = Binaries::from_variables(|name| {
            told.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| value.clone())
        });
        assert_eq!(read.expect("all is told"), binaries);
    }

    #[test]
    fn the_client_lies_beside_the_servers() {
        let read = Binaries::from_variables(|name| (name == Binaries::FOLDER).then(|| "/b".into()));
        assert_eq!(read.expect("the folder is enough").kubectl, PathBuf::from("/b/kubectl"));
    }

    #[test]
    fn without_them_it_is_told_what_to_do_in_one_line() {
        let error = Binaries::from_variables(|_| None).expect_err("nothing is told").to_string();
        assert!(error.contains("run `cargo xtask test`") && !error.contains('\n'), "{error}");
        let error = Binaries::from_variables(|name| (name == super::WITHOUT).then(|| "1".into()));
        assert!(matches!(error, Err(Error::LeftOut)), "{error:?}");
    }
}
