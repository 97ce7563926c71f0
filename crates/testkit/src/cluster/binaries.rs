//! The programs of a cluster.

use crate::cluster::{Error, WITHOUT_KUBE_VARIABLE};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The paths of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The directory of the servers.
    pub folder: PathBuf,
    /// The path of `kubectl`.
    pub kubectl: PathBuf,
}

impl Binaries {
    /// The file names of the servers.
    pub const SERVERS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
    /// The variable that names the directory of the servers.
    pub(crate) const FOLDER: &str = "QONTRACT_KUBE_BIN";
    /// The variable that names `kubectl`.
    pub(crate) const KUBECTL: &str = "QONTRACT_KUBECTL";

    /// Reads the paths from the environment.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_variables(|name| env::var_os(name))
    }

    /// Reads the paths from variables. If its variable is not set, `kubectl` is next to the servers.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        if variable(WITHOUT_KUBE_VARIABLE).is_some() {
            return Err(Error::Skipped);
        }
        let folder =
            variable(Self::FOLDER).map(PathBuf::from).ok_or(Error::Unset { variable: Self::FOLDER })?;
        let kubectl = variable(Self::KUBECTL).map_or_else(|| folder.join("kubectl"), PathBuf::from);
        Ok(Self { folder, kubectl })
    }

    /// The variables that [`Self::from_environment`] reads.
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
    fn binaries_round_trip_through_the_variables() {
        let binaries = Binaries { folder: PathBuf::from("/b"), kubectl: PathBuf::from("/k") };
        let variables = binaries.variables();
        let read = Binaries::from_variables(|name| {
            variables.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| value.clone())
        });
        assert_eq!(read.expect("all variables are set"), binaries);
    }

    #[test]
    fn kubectl_is_next_to_the_servers_by_default() {
        let read = Binaries::from_variables(|name| (name == Binaries::FOLDER).then(|| "/b".into()));
        assert_eq!(read.expect("the directory is enough").kubectl, PathBuf::from("/b/kubectl"));
    }

    #[test]
    fn without_binaries_the_error_says_what_to_do_in_one_line() {
        let error = Binaries::from_variables(|_| None).expect_err("no variable is set").to_string();
        assert!(error.contains("run `cargo xtask test`") && !error.contains('\n'), "{error}");
        let error =
            Binaries::from_variables(|name| (name == super::WITHOUT_KUBE_VARIABLE).then(|| "1".into()));
        assert!(matches!(error, Err(Error::Skipped)), "{error:?}");
    }
}
