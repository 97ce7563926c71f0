//! The kinds that a sandbox cluster serves: the well-known ones, and those of its custom resource
//! definitions.

use serde_json::Value;

use super::folder::{Folder, names};
use super::kinds::{KNOWN, plural};
use super::record::Record;
use crate::discovery::{Groups, choose};
use crate::error::KubernetesError;
use crate::object::{Cluster, Kind, Served};

/// A kind that the sandbox serves.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub kind: Kind,
    pub served: Served,
    /// The name of its directories.
    pub folder: String,
}

/// Finds how a cluster serves a kind.
///
/// The directory is the name alone where that denotes this kind among the well-known ones; else `Kind.group`.
pub(super) fn find(folder: &Folder, cluster: &Cluster, kind: &Kind) -> Result<Known, KubernetesError> {
    let known = known(&kind.name);
    let mut groups = known.clone();
    // Well-known kinds take precedence over definitions.
    if !kind.group.as_ref().is_some_and(|group| known.contains_key(group)) {
        for (group, served) in defined(folder, &kind.name)? {
            groups.entry(group).or_insert(served);
        }
    }
    let (group, served) = choose(cluster, kind, &groups)?;
    let plain = choose(cluster, &Kind::named(&kind.name), &known).is_ok_and(|(meant, _)| meant == group);
    let name = if plain { kind.name.clone() } else { format!("{}.{group}", kind.name) };
    Ok(Known { kind: Kind { name: kind.name.clone(), group: Some(group) }, served, folder: name })
}

/// The directory of a custom kind.
pub(super) fn folder_of_custom(definition: &Value) -> Option<String> {
    let (kind, group) =
        (definition["spec"]["names"]["kind"].as_str()?, definition["spec"]["group"].as_str()?);
    Some(format!("{kind}.{group}"))
}

fn known(kind: &str) -> Groups {
    let mut groups = Groups::new();
    for group in KNOWN {
        let is_namespaced = group.namespaced.contains(&kind);
        if is_namespaced || group.of_cluster.contains(&kind) {
            let versions = group.versions.iter().map(|version| api_version(group.name, version)).collect();
            groups.insert(group.name.to_owned(), served(versions, plural(kind), is_namespaced));
        }
    }
    groups
}

fn defined(folder: &Folder, kind: &str) -> Result<Groups, KubernetesError> {
    let definitions = folder.of_kind(None, "CustomResourceDefinition")?;
    let mut groups = Groups::new();
    for name in names(&definitions)? {
        let Some(found) = folder.read(&definitions.join(format!("{name}.yaml")))? else { continue };
        // A definition that cannot be read defines no kind; the error is reported when it is read.
        let Ok(Record { body, .. }) = Record::read(&found.bytes) else { continue };
        let spec = &body["spec"];
        if spec["names"]["kind"] != kind {
            continue;
        }
        let Some(group) = spec["group"].as_str() else { continue };
        let versions = spec["versions"].as_array().into_iter().flatten();
        let mut versions: Vec<_> = versions.filter(|version| version["served"] != false).collect();
        versions.sort_by_key(|version| version["storage"] != true);
        let versions = versions.iter().filter_map(|version| version["name"].as_str());
        let versions: Vec<_> = versions.map(|version| api_version(group, version)).collect();
        if !versions.is_empty() {
            let plural = spec["names"]["plural"].as_str().map_or_else(|| plural(kind), str::to_owned);
            groups.insert(group.to_owned(), served(versions, plural, spec["scope"] != "Cluster"));
        }
    }
    Ok(groups)
}

fn served(versions: Vec<String>, plural: String, is_namespaced: bool) -> Served {
    Served { api_version: versions.first().cloned().unwrap_or_default(), versions, plural, is_namespaced }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
