//! The Go toolchain that builds the servers: the machine's own if it is the one that Debian built this source with,
//! else Debian's, unpacked.

use super::VERSION;
use super::source::Tree;
use crate::command::CommandLine;
use std::path::{Path, PathBuf};

/// What this source is known to build with.
const GO: &str = "1.19";
const PACKAGES: [&str; 2] = ["golang-1.19-go", "golang-1.19-src"];

/// A toolchain and its folders.
#[derive(Debug)]
pub struct Go {
    /// Where it lies, unless it is the machine's own.
    root: Option<PathBuf>,
    work: PathBuf,
}

/// The packages to fetch if this machine has no fitting toolchain.
pub fn missing() -> &'static [&'static str] {
    if is_on_this_machine() { &[] } else { &PACKAGES }
}

fn is_on_this_machine() -> bool {
    CommandLine::new("go version").output().is_ok_and(|said| fits(&String::from_utf8_lossy(&said)))
}

/// `go version go1.19.8 linux/amd64`.
fn fits(said: &str) -> bool {
    let version = said.split_whitespace().nth(2).and_then(|word| word.strip_prefix("go"));
    version
        .and_then(|version| version.strip_prefix(GO))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Go {
    /// The toolchain, which keeps what it makes in the folder of work; `root` is where packages were unpacked.
    pub fn new(work: &Path, root: &Path) -> Self {
        let root = (!is_on_this_machine()).then(|| root.join(format!("usr/lib/go-{GO}")));
        Self { root, work: work.to_owned() }
    }

    /// The folder in which the toolchain looks for sources.
    pub fn sources(work: &Path) -> PathBuf {
        work.join("go/src")
    }

    /// A command of the toolchain, in a folder; nothing that is set up for Go on this machine has a say in it.
    pub fn command(&self, words: &str, folder: &Path) -> CommandLine {
        let line = match &self.root {
            Some(root) => CommandLine::program(&root.join("bin/go")).env("GOROOT", root),
            None => CommandLine::new("go"),
        };
        self.set_up(line.args(words.split(' ')), folder)
    }

    /// Gives a command, of the toolchain or not, what it must know to find Go and the sources.
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
    pub fn build(&self, tree: &Tree, server: &str, into: &Path) -> CommandLine {
        self.command("build -ldflags", tree.folder())
            .args([linker_flags()])
            .args(["-o"])
            .args([into])
            .args([format!("./cmd/{server}")])
    }
}

/// Leaves out what only debuggers read, and writes the version in where the programs look for theirs.
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
    use super::{fits, linker_flags};

    #[test]
    fn only_the_known_toolchain_fits() {
        assert!(fits("go version go1.19.8 linux/amd64\n"));
        assert!(fits("go version go1.19 linux/arm64\n"));
        for other in [
            "go version go1.2 linux/amd64",
            "go version go1.191 linux/amd64",
            "go version go1.24.1 linux/amd64",
            "",
        ] {
            assert!(!fits(other), "{other}");
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
