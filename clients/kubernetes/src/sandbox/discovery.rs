//! The kinds that a sandbox cluster serves: well-known kinds, and those of its custom resource definitions.

use serde_json::Value;

use super::folder::{ClusterDir, object_names};
use super::kinds::{WELL_KNOWN_GROUPS, plural};
use super::record::ObjectFile;
use crate::discovery::{KindGroups, choose_group};
use crate::error::KubernetesError;
use crate::object::{ApiResource, Cluster, Kind};

/// A kind that the sandbox serves.
#[derive(Clone, Debug)]
pub(super) struct SandboxKind {
    pub kind: Kind,
    pub resource: ApiResource,
    /// The name of the directories with objects of this kind.
    pub folder: String,
}

/// Finds the API resource of a kind.
///
/// The directory is `Kind` if the name identifies a well-known kind, otherwise `Kind.group`.
pub(super) fn find_kind(
    folder: &ClusterDir,
    cluster: &Cluster,
    kind: &Kind,
) -> Result<SandboxKind, KubernetesError> {
    let well_known = well_known_groups(&kind.name);
    let mut groups = well_known.clone();
    // Well-known kinds take precedence over definitions.
    if !kind.group.as_ref().is_some_and(|group| well_known.contains_key(group)) {
        for (group, served) in custom_groups(folder, &kind.name)? {
            groups.entry(group).or_insert(served);
        }
    }
    let (group, served) = choose_group(cluster, kind, &groups)?;
    let plain =
        choose_group(cluster, &Kind::named(&kind.name), &well_known).is_ok_and(|(meant, _)| meant == group);
    let name = if plain { kind.name.clone() } else { format!("{}.{group}", kind.name) };
    Ok(SandboxKind {
        kind: Kind { name: kind.name.clone(), group: Some(group) },
        resource: served,
        folder: name,
    })
}

/// The directory of a custom kind.
pub(super) fn custom_kind_dir(definition: &Value) -> Option<String> {
    let (kind, group) =
        (definition["spec"]["names"]["kind"].as_str()?, definition["spec"]["group"].as_str()?);
    Some(format!("{kind}.{group}"))
}

fn well_known_groups(kind: &str) -> KindGroups {
    let mut groups = KindGroups::new();
    for group in WELL_KNOWN_GROUPS {
        let is_namespaced = group.namespaced.contains(&kind);
        if is_namespaced || group.cluster_scoped.contains(&kind) {
            let versions = group.versions.iter().map(|version| api_version(group.name, version)).collect();
            groups.insert(group.name.to_owned(), api_resource(versions, plural(kind), is_namespaced));
        }
    }
    groups
}

fn custom_groups(folder: &ClusterDir, kind: &str) -> Result<KindGroups, KubernetesError> {
    let definitions = folder.kind_dir(None, "CustomResourceDefinition")?;
    let mut groups = KindGroups::new();
    for name in object_names(&definitions)? {
        let Some(found) = folder.read(&definitions.join(format!("{name}.yaml")))? else { continue };
        // A definition that cannot be read defines no kind. The error is reported when the definition itself
        // is read.
        let Ok(ObjectFile { body, .. }) = ObjectFile::read(&found.bytes) else { continue };
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
            groups.insert(group.to_owned(), api_resource(versions, plural, spec["scope"] != "Cluster"));
        }
    }
    Ok(groups)
}

fn api_resource(versions: Vec<String>, plural: String, is_namespaced: bool) -> ApiResource {
    ApiResource {
        api_version: versions.first().cloned().unwrap_or_default(),
        versions,
        plural,
        is_namespaced,
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
