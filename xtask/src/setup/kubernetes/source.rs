//! The source of the servers: Debian's source package, and the two changes without which it does not build.

use super::VERSION;
use super::go::Go;
use crate::command::CommandLine;
use crate::setup::apt::Apt;
use crate::setup::install_log::InstallLog;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A library that supports the map layout of Go 1.18 and later. With the vendored version, the API server
/// crashes at the first custom resource.
pub const REFLECT2: &str = "golang-github-modern-go-reflect2-dev";
/// The packages that contain `dpkg-source` and its dependencies.
const UNPACKER: [&str; 3] = ["dpkg-dev", "libdpkg-perl", "patch"];
/// The package of the generated `OpenAPI` description.
const OPENAPI: &str = "k8s.io/kubernetes/pkg/generated/openapi";
/// Modules whose types are not served by this API server.
const EXCLUDED_MODULES: [&str; 2] = ["code-generator", "sample-apiserver"];

/// The unpacked source.
#[derive(Debug)]
pub struct KubernetesSource {
    folder: PathBuf,
}

/// The packages to fetch if this machine cannot unpack source packages.
pub fn missing_packages() -> &'static [&'static str] {
    if has_dpkg_source() { &[] } else { &UNPACKER }
}

fn has_dpkg_source() -> bool {
    CommandLine::new("dpkg-source --version").succeeds()
}

impl KubernetesSource {
    /// Fetches the source and unpacks it into the directory in which Go searches for it.
    pub fn unpack(apt: &Apt<'_>, work: &Path, root: &Path, steps: &InstallLog) -> Result<Self> {
        let description = apt.fetch_source("kubernetes", &work.join("source"))?;
        let name = description.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !is_supported(&name) {
            bail!("apt has the source package {name}, but only version {VERSION} is supported");
        }
        let folder = Go::sources(work).join("k8s.io/kubernetes");
        fs::create_dir_all(folder.parent().context("it has a parent")?)?;
        let line = dpkg_source(root).args(["--no-check", "-x"]).args([&description, &folder]);
        steps.run("unpacking the source", &line)?;
        Ok(Self { folder })
    }

    /// The root directory of the source.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces the vendored reflect2 with Debian's version.
    pub fn replace_reflect2(&self, root: &Path, steps: &InstallLog) -> Result<()> {
        let name = "github.com/modern-go/reflect2";
        let vendored = self.folder.join("vendor").join(name);
        fs::remove_dir_all(&vendored).with_context(|| format!("the source has no {name}"))?;
        let packaged = root.join("usr/share/gocode/src").join(name);
        steps.run("replacing reflect2", &CommandLine::new("cp -R").args([packaged, vendored]))
    }

    /// Generates the `OpenAPI` description, which the source package lacks, with the generator in the source.
    pub fn generate_openapi(&self, go: &Go, work: &Path, steps: &InstallLog) -> Result<()> {
        let generator = work.join("openapi-gen");
        let line = go.command("build -o", &self.folder).args([&generator]);
        let line = line.args(["k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen"]);
        steps.run("building openapi-gen", &line)?;
        let packages = self.openapi_packages()?;
        let line = CommandLine::program(&generator)
            .args(["--output-file-base=zz_generated.openapi", "--output-package", OPENAPI])
            .args(["--go-header-file=vendor/k8s.io/code-generator/hack/boilerplate.go.txt"])
            .args([format!("--input-dirs={}", packages.join(","))])
            .args(["--report-filename"])
            .args([work.join("openapi-violations.txt")]);
        let what = format!("generating the OpenAPI description from {} packages", packages.len());
        steps.run(&what, &go.set_up(line, &self.folder))
    }

    /// The packages with an `openapi-gen` marker, sorted.
    fn openapi_packages(&self) -> Result<Vec<String>> {
        let mut packages = BTreeSet::new();
        let mut folders = vec![self.folder.join("pkg"), self.folder.join("staging/src/k8s.io")];
        while let Some(folder) = folders.pop() {
            let entries = folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))?;
            for entry in entries {
                let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
                if kind.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "go")
                    && has_openapi_marker(&fs::read(&path)?)
                {
                    let relative = folder.strip_prefix(&self.folder)?.to_string_lossy().into_owned();
                    packages.extend(import_path(&relative));
                }
            }
        }
        Ok(packages.into_iter().collect())
    }
}

/// Whether a source package has the supported version. In `kubernetes_1.20.5+really1.20.2-1.1`, the version
/// follows `really`.
fn is_supported(name: &str) -> bool {
    let version = name.rsplit_once("really").or_else(|| name.split_once('_')).map(|(_, version)| version);
    version.and_then(|version| version.strip_prefix(VERSION)).is_some_and(|rest| rest.starts_with('-'))
}

/// `dpkg-source` of the machine, otherwise the unpacked `dpkg-source`.
fn dpkg_source(root: &Path) -> CommandLine {
    if has_dpkg_source() {
        return CommandLine::new("dpkg-source");
    }
    let bin = root.join("usr/bin");
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(&bin);
    CommandLine::program(&bin.join("dpkg-source"))
        .env("PERL5LIB", root.join("usr/share/perl5"))
        .env("PATH", path)
}

/// Whether a Go file has the comment `+k8s:openapi-gen=…`.
fn has_openapi_marker(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| {
        let remark = line.strip_prefix(b"//").map(<[u8]>::trim_ascii_start);
        remark.is_some_and(|remark| remark.starts_with(b"+k8s:openapi-gen="))
    })
}

/// The import path of a directory of the source; `None` for excluded modules.
fn import_path(folder: &str) -> Option<String> {
    let Some(staged) = folder.strip_prefix("staging/src/k8s.io/") else {
        return Some(format!("k8s.io/kubernetes/{folder}"));
    };
    let module = staged.split('/').next()?;
    (!EXCLUDED_MODULES.contains(&module)).then(|| format!("k8s.io/kubernetes/vendor/k8s.io/{staged}"))
}

#[cfg(test)]
mod tests {
    use super::{has_openapi_marker, import_path, is_supported};

    #[test]
    fn only_the_supported_version_is_built() {
        assert!(is_supported("kubernetes_1.20.5+really1.20.2-1.1+deb12u1"));
        assert!(is_supported("kubernetes_1.20.2-1"));
        for other in
            ["kubernetes_1.20.5-1", "kubernetes_1.20.21-1", "kubernetes_1.20.2+really1.33.4-1", "etcd"]
        {
            assert!(!is_supported(other), "{other}");
        }
    }

    #[test]
    fn the_openapi_marker_is_a_comment() {
        assert!(has_openapi_marker(
            b"// +k8s:deepcopy-gen=package\n// +k8s:openapi-gen=true\n\npackage v1\n"
        ));
        assert!(has_openapi_marker(b"//+k8s:openapi-gen=true"));
        assert!(!has_openapi_marker(b"package v1\n\nconst tag = \"+k8s:openapi-gen=true\"\n"));
        assert!(!has_openapi_marker(b"// see +k8s:openapi-gen=true\n"));
    }

    #[test]
    fn staged_packages_are_imported_as_vendored() {
        let check = |folder: &str, expect: Option<&str>| assert_eq!(import_path(folder).as_deref(), expect);
        check("pkg/apis/abac/v0", Some("k8s.io/kubernetes/pkg/apis/abac/v0"));
        check("staging/src/k8s.io/api/core/v1", Some("k8s.io/kubernetes/vendor/k8s.io/api/core/v1"));
        check("staging/src/k8s.io/sample-apiserver/pkg/apis/wardle/v1beta1", None);
        check("staging/src/k8s.io/code-generator/_examples/apiserver/apis/example/v1", None);
    }
}
