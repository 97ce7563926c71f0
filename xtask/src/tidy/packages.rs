//! Packages and their dependencies, from `cargo metadata`.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Linked into the program.
    Normal,
    /// Used by the build script.
    Build,
    /// Used by tests, examples and benchmarks.
    Dev,
}

/// One package of the resolved dependency graph.
#[derive(Debug)]
pub struct Package {
    /// The name.
    pub name: String,
    /// The directory, relative to the root of the checkout; `None` if the package is not in the workspace.
    pub folder: Option<String>,
    /// Ids of the package's dependencies.
    dependencies: BTreeSet<(String, Kind)>,
}

/// The resolved dependency graph, which maps ids to packages.
#[derive(Debug, Default)]
pub struct Packages(BTreeMap<String, Package>);

/// A package for a test: name, directory (empty if not in the workspace), dependencies.
#[cfg(test)]
pub type TestPackage<'a> = (&'a str, &'a str, &'a [(&'a str, Kind)]);

impl Packages {
    /// Reads the output of `cargo metadata`; `root` is the root of the checkout.
    pub fn from_metadata(json: &[u8], root: &str) -> Result<Self> {
        let metadata: Value =
            serde_json::from_slice(json).context("cannot read the output of cargo metadata")?;
        let mut packages = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let manifest = text(&package["manifest_path"])?;
            let ours = package["source"].is_null();
            let folder = manifest
                .strip_prefix(root)
                .filter(|_| ours)
                .map(|path| path.trim_end_matches("Cargo.toml").trim_matches('/').to_owned());
            let name = text(&package["name"])?.to_owned();
            packages.insert(
                text(&package["id"])?.to_owned(),
                Package { name, folder, dependencies: BTreeSet::new() },
            );
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let package = packages.get_mut(text(&node["id"])?).context("a node without a package")?;
            for dependency in list(&node["deps"]) {
                let id = text(&dependency["pkg"])?;
                let kinds = list(&dependency["dep_kinds"]).iter().map(|kind| match kind["kind"].as_str() {
                    Some("dev") => Kind::Dev,
                    Some("build") => Kind::Build,
                    _ => Kind::Normal,
                });
                package.dependencies.extend(kinds.map(|kind| (id.to_owned(), kind)));
            }
        }
        Ok(Self(packages))
    }

    /// Packages for a test.
    #[cfg(test)]
    pub fn of(packages: &[TestPackage<'_>]) -> Self {
        let packages = packages.iter().map(|(name, folder, needs)| {
            let folder = Some((*folder).to_owned()).filter(|folder| !folder.is_empty());
            let dependencies = needs.iter().map(|(id, kind)| ((*id).to_owned(), *kind)).collect();
            ((*name).to_owned(), Package { name: (*name).to_owned(), folder, dependencies })
        });
        Self(packages.collect())
    }

    /// The packages of this workspace: directory and package.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.0.values().filter_map(|package| Some((package.folder.as_deref()?, package)))
    }

    /// The direct dependencies of a package.
    pub fn dependencies_of<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = (&'a Package, Kind)> {
        package.dependencies.iter().filter_map(|(id, kind)| Some((self.0.get(id)?, *kind)))
    }

    /// The shortest chain of normal dependencies from a package to one of the given names, both ends
    /// included.
    pub fn chain_to<'a>(&'a self, from: &'a Package, names: &[&str]) -> Option<Vec<&'a str>> {
        let mut seen = BTreeSet::from([from.name.as_str()]);
        let mut chains = std::collections::VecDeque::from([vec![from]]);
        while let Some(chain) = chains.pop_front() {
            let last = *chain.last()?;
            if chain.len() > 1 && names.contains(&last.name.as_str()) {
                return Some(chain.into_iter().map(|package| package.name.as_str()).collect());
            }
            for (next, kind) in self.dependencies_of(last) {
                if kind == Kind::Normal && seen.insert(&next.name) {
                    chains.push_back(chain.iter().copied().chain([next]).collect());
                }
            }
        }
        None
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata: a string is missing")
}

#[cfg(test)]
mod tests {
    use super::{Kind, Packages};

    const METADATA: &str = r#"{
        "packages": [
            {"id": "a", "name": "qontract-a", "source": null, "manifest_path": "/top/crates/a/Cargo.toml"},
            {"id": "t", "name": "tokio", "source": "registry", "manifest_path": "/cargo/tokio/Cargo.toml"}
        ],
        "resolve": {"nodes": [
            {"id": "a", "deps": [{"pkg": "t", "dep_kinds": [{"kind": null}, {"kind": "dev"}]}]},
            {"id": "t", "deps": []}
        ]}
    }"#;

    #[test]
    fn metadata_is_read() {
        let packages = Packages::from_metadata(METADATA.as_bytes(), "/top").expect("it parses");
        let ours: Vec<_> = packages.members().collect();
        let [(folder, package)] = ours.as_slice() else { panic!("one package is ours: {ours:?}") };
        assert_eq!((*folder, package.name.as_str()), ("crates/a", "qontract-a"));
        let needs: Vec<_> =
            packages.dependencies_of(package).map(|(package, kind)| (package.name.as_str(), kind)).collect();
        assert_eq!(needs, [("tokio", Kind::Normal), ("tokio", Kind::Dev)]);
        assert_eq!(packages.chain_to(package, &["tokio"]), Some(vec!["qontract-a", "tokio"]));
        assert_eq!(packages.chain_to(package, &["hyper"]), None);
    }
}
