//! Declares the `ClusterRoleBindings` of clusters.

use qontract_objects::{Declared, DeclaredObjects, Grant, Kind, LocatedState, ObjectSet, ShardBuilder};
use qontract_runtime::{Data, Fault, SourceLocations};

use crate::NAME;
use crate::query::{Cluster, ClusterRoleBindings, Role};

/// Declares the bindings of all clusters with managed cluster roles. On other clusters, no binding is
/// managed.
pub fn declare(data: &Data) -> Result<Declared<DeclaredObjects>, Fault> {
    let answer = data.query::<ClusterRoleBindings>()?;
    let roles = answer.data.roles_v1.unwrap_or_default();
    let mut shards = ShardBuilder::new(NAME);
    for (index, cluster) in answer.data.clusters_v1.into_iter().flatten().enumerate() {
        let place = answer.places.of(&format!("/clusters_v1/{index}"));
        let bindings = bindings(&cluster, &roles, &answer.places);
        shards.add_cluster(&cluster.cluster_access, place, bindings);
    }
    Ok(shards.finish())
}

fn bindings(
    cluster: &Cluster,
    roles: &[Role],
    places: &SourceLocations,
) -> Result<LocatedState<DeclaredObjects>, Fault> {
    if cluster.managed_cluster_roles != Some(true) {
        return Ok(ObjectSet::default().finish());
    }
    let mut all = ObjectSet::of(Kind::in_group("ClusterRoleBinding", "rbac.authorization.k8s.io"));
    let services: Vec<&str> = cluster.cluster_login.auth.iter().map(|auth| auth.service.as_str()).collect();
    for (index, role) in roles.iter().enumerate() {
        for (nth, access) in role.cluster_access.iter().flatten().enumerate() {
            let is_here = access.cluster.as_ref().is_some_and(|it| it.name == cluster.cluster_access.name);
            let Some(role_name) = access.cluster_role.as_ref().filter(|_| is_here) else { continue };
            let granted = Grant { binding: "ClusterRoleBinding", role_kind: "ClusterRole", role: role_name };
            let place = places.of(&format!("/roles_v1/{index}/clusterAccess/{nth}"));
            role.role_members.bind(&mut all, granted, &services, place.as_ref())?;
        }
    }
    Ok(all.finish())
}
