//! The Go toolchain that builds the servers. If the toolchain of the machine has the version with which
//! Debian built this source, it is used; otherwise Debian's toolchain is unpacked.

use super::VERSION;
use super::source::KubernetesSource;
use crate::command::CommandLine;
use std::path::{Path, PathBuf};

/// The Go version that builds this source.
const GO_VERSION: &str = "1.19";
const PACKAGES: [&str; 2] = ["golang-1.19-go", "golang-1.19-src"];

/// A toolchain and its directories.
#[derive(Debug)]
pub struct Go {
    /// The root, unless the machine's own toolchain is used.
    root: Option<PathBuf>,
    work: PathBuf,
}

/// The packages to fetch if this machine does not have the right toolchain.
pub fn missing_packages() -> &'static [&'static str] {
    if is_on_this_machine() { &[] } else { &PACKAGES }
}

fn is_on_this_machine() -> bool {
    CommandLine::new("go version")
        .output()
        .is_ok_and(|output| is_supported(&String::from_utf8_lossy(&output)))
}

/// Whether the output of `go version` (`go version go1.19.8 linux/amd64`) has the right version.
fn is_supported(output: &str) -> bool {
    let version = output.split_whitespace().nth(2).and_then(|word| word.strip_prefix("go"));
    version
        .and_then(|version| version.strip_prefix(GO_VERSION))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Go {
    /// The toolchain, with its caches in the work directory; `root` is where packages were unpacked.
    pub fn new(work: &Path, root: &Path) -> Self {
        let root = (!is_on_this_machine()).then(|| root.join(format!("usr/lib/go-{GO_VERSION}")));
        Self { root, work: work.to_owned() }
    }

    /// The source directory of the toolchain.
    pub fn sources(work: &Path) -> PathBuf {
        work.join("go/src")
    }

    /// A command of the toolchain, run in a directory. The Go configuration of this machine is ignored.
    pub fn command(&self, words: &str, folder: &Path) -> CommandLine {
        let line = match &self.root {
            Some(root) => CommandLine::program(&root.join("bin/go")).env("GOROOT", root),
            None => CommandLine::new("go"),
        };
        self.set_up(line.args(words.split(' ')), folder)
    }

    /// Sets the environment variables by which a command finds Go and the sources.
    pub fn set_up(&self, line: CommandLine, folder: &Path) -> CommandLine {
        let line = match &self.root {
            Some(root) => {
                let mut path = root.join("bin").into_os_string();
                path.push(":");
                path.push(std::env::var_os("PATH").unwrap_or_default());
                line.env("GOROOT", root).env("PATH", path)
            }
            None => line,
        };
        line.env("GOPATH", self.work.join("go"))
            .env("GOCACHE", self.work.join("go-cache"))
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0")
            .env("GOENV", "off")
            .env("GOFLAGS", "")
            .folder(folder)
    }

    /// Builds one of the servers.
    pub fn build(&self, tree: &KubernetesSource, server: &str, into: &Path) -> CommandLine {
        self.command("build -ldflags", tree.folder())
            .args([linker_flags()])
            .args(["-o"])
            .args([into])
            .args([format!("./cmd/{server}")])
    }
}

/// Linker flags that strip debug information and set the version of the programs.
fn linker_flags() -> String {
    let (major, rest) = VERSION.split_once('.').unwrap_or((VERSION, ""));
    let minor = rest.split('.').next().unwrap_or_default();
    let mut flags = "-s -w".to_owned();
    for package in ["component-base/version", "client-go/pkg/version"] {
        let package = format!("k8s.io/kubernetes/vendor/k8s.io/{package}");
        for (name, value) in
            [("gitVersion", format!("v{VERSION}").as_str()), ("gitMajor", major), ("gitMinor", minor)]
        {
            flags.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::{is_supported, linker_flags};

    #[test]
    fn only_the_right_toolchain_is_used() {
        assert!(is_supported("go version go1.19.8 linux/amd64\n"));
        assert!(is_supported("go version go1.19 linux/arm64\n"));
        for other in [
            "go version go1.2 linux/amd64",
            "go version go1.191 linux/amd64",
            "go version go1.24.1 linux/amd64",
            "",
        ] {
            assert!(!is_supported(other), "{other}");
        }
    }

    #[test]
    fn the_version_is_linked_in_where_it_is_read() {
        let flags = linker_flags();
        assert!(flags.starts_with("-s -w "), "{flags}");
        assert!(
            flags.contains(" -X k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion=v1.20.2"),
            "{flags}"
        );
        assert!(
            flags.contains(" -X k8s.io/kubernetes/vendor/k8s.io/client-go/pkg/version.gitMinor=20"),
            "{flags}"
        );
    }
}
