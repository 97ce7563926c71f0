//! The servers and the client of a Kubernetes cluster, for tests against a real API server.
//!
//! No package registry provides the servers as binaries, but Debian provides their source. If
//! `KUBEBUILDER_ASSETS` is set, the servers in that directory are used. Otherwise the servers are built once,
//! from the apt sources of this machine, into the cache directory. The system is not changed, because
//! packages are unpacked into the cache and not installed.

mod go;
mod source;

use super::apt::Apt;
use super::install_log::InstallLog;
use super::{Provision, folder};
use crate::command::CommandLine;
use crate::console;
use crate::workspace::ToolCache;
use anyhow::{Context as _, Result, bail};
use qontract_testkit::cluster::Binaries;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of the servers in Debian 12.
const VERSION: &str = "1.20.2";
/// Increment to build the same version again.
const RECIPE: u32 = 1;
/// The servers that are built from source; `etcd` comes from Debian's binary package.
const BUILT_SERVERS: [&str; 2] = ["kube-apiserver", "kube-controller-manager"];

/// The hint if the servers cannot be built.
const HINT: &str =
    "set `KUBEBUILDER_ASSETS` to a directory that contains them, or run `cargo xtask test --without-kube`";

/// The programs that [`binaries`] finds.
#[derive(Debug)]
pub struct Kubernetes;

/// The source of the programs.
#[derive(Debug, PartialEq, Eq)]
enum BinariesSource {
    /// The servers are in `KUBEBUILDER_ASSETS`.
    Machine(Binaries),
    /// The servers are in the cache directory.
    Cache(Binaries),
}

impl Provision for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn version(&self) -> String {
        format!("{VERSION}, recipe {RECIPE}")
    }

    fn is_present(&self, cache: &ToolCache, stamped: bool) -> bool {
        match binaries_source(cache) {
            Some(BinariesSource::Machine(_)) => true,
            Some(BinariesSource::Cache(_)) => stamped,
            None => false,
        }
    }

    /// Builds in a directory that is unique to this process, and then renames the directory, so that the
    /// remains of a killed run do not matter.
    fn install(&self, cache: &ToolCache) -> Result<()> {
        if let Some(folder) = env::var_os("KUBEBUILDER_ASSETS") {
            let servers = Binaries::SERVERS.join(", ");
            let folder = Path::new(&folder).display();
            console::print(format_args!(
                "setup: {folder} does not contain all of {servers} and kubectl: building them"
            ));
        }
        let home = cache.path("kubernetes");
        remove_leftovers(&home)?;
        let work = home.join(format!("work-{}", std::process::id()));
        fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
        let steps = InstallLog::create("kubernetes", home.join("build.log"))?;
        if let Err(error) = build(&work, &steps) {
            fs::remove_dir_all(&work)?;
            bail!("{error:#}\nhint: {HINT}");
        }
        folder::replace(&work.join("bin"), &home.join("bin"))?;
        steps.report("removing the source");
        fs::remove_dir_all(&work)?;
        steps.report("done");
        Ok(())
    }
}

/// The paths of the installed programs.
pub fn binaries(cache: &ToolCache) -> Result<Binaries> {
    match binaries_source(cache) {
        Some(BinariesSource::Machine(binaries) | BinariesSource::Cache(binaries)) => Ok(binaries),
        None => bail!("Kubernetes programs not found: run `cargo xtask setup`"),
    }
}

fn binaries_source(cache: &ToolCache) -> Option<BinariesSource> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = env::split_paths(&path).collect();
    choose_source(assets.as_deref(), &path, &cache.path("kubernetes/bin"), Path::is_file)
}

/// The assets directory if it contains all servers and a client is in it or on `PATH`; otherwise the cache if
/// it is complete.
fn choose_source(
    assets: Option<&Path>,
    path: &[PathBuf],
    cached: &Path,
    exists: impl Fn(&Path) -> bool,
) -> Option<BinariesSource> {
    let complete = |folder: &Path| Binaries::SERVERS.iter().all(|server| exists(&folder.join(server)));
    let client = |folder: &Path| Some(folder.join("kubectl")).filter(|kubectl| exists(kubectl));
    if let Some(folder) = assets.filter(|folder| complete(folder))
        && let Some(kubectl) = client(folder).or_else(|| path.iter().find_map(|folder| client(folder)))
    {
        return Some(BinariesSource::Machine(Binaries { folder: folder.to_owned(), kubectl }));
    }
    let kubectl = client(cached).filter(|_| complete(cached))?;
    Some(BinariesSource::Cache(Binaries { folder: cached.to_owned(), kubectl }))
}

/// Creates `bin` in the work directory.
fn build(work: &Path, steps: &InstallLog) -> Result<()> {
    if !CommandLine::new("apt-get --version").succeeds() {
        bail!("cannot fetch the Kubernetes source: `apt-get` not found");
    }
    let (root, bin) = (work.join("root"), work.join("bin"));
    let apt = Apt::isolated(&work.join("apt"), steps)?;
    let mut packages = vec!["etcd-server", "kubernetes-client", source::REFLECT2];
    packages.extend(go::missing_packages());
    packages.extend(source::missing_packages());
    apt.unpack(&packages, &root)?;
    let tree = source::KubernetesSource::unpack(&apt, work, &root, steps)?;
    let go = go::Go::new(work, &root);
    tree.replace_reflect2(&root, steps)?;
    tree.generate_openapi(&go, work, steps)?;
    for (server, time) in BUILT_SERVERS.into_iter().zip(["5 minutes", "2 minutes"]) {
        let what = format!("building {server} (about {time} on two cores)");
        steps.run(&what, &go.build(&tree, server, &bin.join(server)))?;
    }
    for program in ["etcd", "kubectl"] {
        fs::copy(root.join("usr/bin").join(program), bin.join(program))
            .with_context(|| format!("the package has no {program}"))?;
    }
    for server in Binaries::SERVERS {
        let version = CommandLine::program(&bin.join(server)).args(["--version"]);
        steps.run(&format!("trying {server}"), &version)?;
    }
    Ok(())
}

/// Removes the work directories of killed runs. The caller holds the lock of the cache, so no other process
/// uses these directories.
fn remove_leftovers(home: &Path) -> Result<()> {
    let Ok(entries) = home.read_dir() else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("work-") {
            let path = entry.path();
            fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BinariesSource, choose_source, remove_leftovers};
    use qontract_testkit::cluster::Binaries;
    use std::fs;
    use std::path::{Path, PathBuf};

    const SERVERS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

    fn check(folders: &[(&str, &[&str])], expect: Option<&BinariesSource>) {
        let exists = |file: &Path| {
            folders
                .iter()
                .any(|(folder, names)| names.iter().any(|name| Path::new(folder).join(name) == file))
        };
        let path = [PathBuf::from("/bin"), PathBuf::from("/usr/bin")];
        let found = choose_source(Some(Path::new("/assets")), &path, Path::new("/cache"), exists);
        assert_eq!(found.as_ref(), expect);
    }

    fn binaries(folder: &str, kubectl: &str) -> Binaries {
        Binaries { folder: PathBuf::from(folder), kubectl: PathBuf::from(kubectl) }
    }

    #[test]
    fn assets_with_everything_win() {
        let expect = BinariesSource::Machine(binaries("/assets", "/assets/kubectl"));
        let kubectl = ("/assets", ["kubectl"].as_slice());
        check(
            &[("/assets", &SERVERS), kubectl, ("/cache", &SERVERS), ("/cache", &["kubectl"])],
            Some(&expect),
        );
    }

    #[test]
    fn the_client_may_be_on_the_path() {
        let expect = BinariesSource::Machine(binaries("/assets", "/usr/bin/kubectl"));
        check(&[("/assets", &SERVERS), ("/usr/bin", &["kubectl"])], Some(&expect));
    }

    #[test]
    fn incomplete_assets_are_ignored() {
        let cached = [("/cache", SERVERS.as_slice()), ("/cache", ["kubectl"].as_slice())];
        let expect = BinariesSource::Cache(binaries("/cache", "/cache/kubectl"));
        let lacking = ("/assets", ["etcd", "kube-apiserver", "kubectl"].as_slice());
        check(&[lacking, cached[0], cached[1]], Some(&expect));
        check(&[lacking], None);
    }

    #[test]
    fn an_incomplete_cache_is_ignored() {
        check(&[("/cache", &SERVERS), ("/usr/bin", &["kubectl"])], None);
        check(&[("/cache", &["etcd", "kube-apiserver", "kubectl"])], None);
    }

    #[test]
    fn only_the_remains_of_killed_builds_are_removed() {
        let home = tempfile::tempdir().expect("a temporary directory");
        for folder in ["work-17/go", "bin"] {
            fs::create_dir_all(home.path().join(folder)).expect("a directory");
        }
        remove_leftovers(home.path()).expect("it can be removed");
        assert!(!home.path().join("work-17").exists() && home.path().join("bin").exists());
        remove_leftovers(&home.path().join("none")).expect("nothing to remove");
    }
}
