//! Chooses the API group of a kind if several groups have a kind of that name. Pure.

use std::collections::BTreeMap;

use crate::error::KubernetesError;
use crate::object::{ApiResource, Cluster, Kind};

/// The groups that have a kind with a given name, each with its API resource.
pub(crate) type KindGroups = BTreeMap<String, ApiResource>;

/// Chooses the group of a kind: the named group, otherwise the only group that has the kind, otherwise the
/// core group, otherwise the only built-in group.
pub(crate) fn choose_group(
    cluster: &Cluster,
    kind: &Kind,
    groups: &KindGroups,
) -> Result<(String, ApiResource), KubernetesError> {
    let chosen = |(group, served): (&String, &ApiResource)| (group.clone(), served.clone());
    if let Some(group) = &kind.group {
        return groups.get_key_value(group).map(chosen).ok_or_else(|| unserved(cluster, kind, groups));
    }
    if let Some(core) = groups.get_key_value("") {
        return Ok(chosen(core));
    }
    let own: Vec<_> = groups.iter().filter(|(group, _)| is_builtin(group)).collect();
    match (own.as_slice(), groups.len()) {
        (_, 0) => Err(unserved(cluster, kind, groups)),
        ([only], _) => Ok(chosen(*only)),
        (_, 1) => Ok(groups.iter().next().map(chosen).expect("there is one")),
        (_, _) => Err(KubernetesError::Ambiguous {
            cluster: cluster.name.clone(),
            kind: kind.name.clone(),
            groups: groups.keys().cloned().collect(),
        }),
    }
}

/// Whether the group is built into Kubernetes.
fn is_builtin(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn unserved(cluster: &Cluster, kind: &Kind, groups: &KindGroups) -> KubernetesError {
    let kinds = groups.keys().map(|group| Kind { name: kind.name.clone(), group: Some(group.clone()) });
    let kinds = kinds.map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
    let instead = if kinds.is_empty() { kinds } else { format!(", only {kinds}") };
    KubernetesError::Unserved { cluster: cluster.name.clone(), kind: format!("`{kind}`"), instead }
}

/// The API version of a draft: the version in its body, which the cluster must serve.
pub(crate) fn draft_version(
    cluster: &Cluster,
    kind: &Kind,
    served: &ApiResource,
    body: &serde_json::Value,
) -> Result<String, KubernetesError> {
    let Some(version) = body["apiVersion"].as_str() else { return Ok(served.api_version.clone()) };
    if served.versions.iter().any(|one| one == version) {
        return Ok(version.to_owned());
    }
    let versions =
        served.versions.iter().map(|version| format!("`{version}`")).collect::<Vec<_>>().join(", ");
    Err(KubernetesError::Unserved {
        cluster: cluster.name.clone(),
        kind: format!("`{}` of `{version}`", kind.name),
        instead: format!(", only of {versions}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{KindGroups, choose_group, draft_version};
    use crate::object::{ApiResource, Cluster, Kind};

    fn cluster() -> Cluster {
        Cluster { name: "c1".to_owned(), server: String::new(), token: None }
    }

    fn served(group: &str) -> ApiResource {
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        ApiResource {
            versions: vec![api_version.clone()],
            api_version,
            plural: "xs".to_owned(),
            is_namespaced: true,
        }
    }

    #[track_caller]
    fn check(kind: &str, groups: &[&str], expect: Result<&str, &str>) {
        let groups: KindGroups = groups.iter().map(|group| ((*group).to_owned(), served(group))).collect();
        let chosen = choose_group(&cluster(), &kind.parse().unwrap(), &groups);
        let chosen = chosen.map(|(group, _)| group).map_err(|error| error.to_string());
        assert_eq!(chosen.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn a_group_is_named_or_the_only_one_or_built_in() {
        check("X.b.example.com", &["a.example.com", "b.example.com"], Ok("b.example.com"));
        check("X", &["b.example.com"], Ok("b.example.com"));
        check(
            "RoleBinding",
            &["authorization.openshift.io", "rbac.authorization.k8s.io"],
            Ok("rbac.authorization.k8s.io"),
        );
        check("Service", &["", "serving.knative.dev"], Ok(""));
        check("Event", &["", "events.k8s.io"], Ok(""));
    }

    #[test]
    fn an_ambiguous_kind_is_an_error() {
        let text = "X is in several groups of the cluster `c1`: a.com, b.com; name one, as in `X.a.com`";
        check("X", &["a.com", "b.com"], Err(text));
        let text =
            "X is in several groups of the cluster `c1`: a.k8s.io, b, c.com; name one, as in `X.a.k8s.io`";
        check("X", &["a.k8s.io", "b", "c.com"], Err(text));
    }

    #[test]
    fn an_error_about_an_unserved_kind_lists_the_served_ones() {
        check("X", &[], Err("the cluster `c1` does not serve `X`"));
        check("X.a.com", &["b.com"], Err("the cluster `c1` does not serve `X.a.com`, only `X.b.com`"));
        let body = json!({"apiVersion": "apps/v1beta1"});
        let error =
            draft_version(&cluster(), &Kind::named("Deployment"), &served("apps"), &body).unwrap_err();
        let text = "the cluster `c1` does not serve `Deployment` of `apps/v1beta1`, only of `apps/v1`";
        assert_eq!(error.to_string(), text);
    }
}
