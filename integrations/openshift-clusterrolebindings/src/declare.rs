//! What the data says about who has which role of a cluster.

use qontract_objects::{Collection, Declared, Granted, Grounds, Members, Objects, Stated};
use qontract_runtime::{Data, Fault, Options, Places};

use crate::NAME;
use crate::query::{Cluster, ClusterRoleBindings, Role};

/// The bindings of all clusters whose roles are managed. In the others nothing is looked after.
pub fn declare(data: &Data, _: &Options) -> Result<Declared<Objects>, Fault> {
    let answer = data.query::<ClusterRoleBindings>()?;
    let roles = answer.data.roles_v1.unwrap_or_default();
    let mut grounds = Grounds::new(NAME);
    for (index, cluster) in answer.data.clusters_v1.into_iter().flatten().enumerate() {
        let place = answer.places.of(&format!("/clusters_v1/{index}"));
        let bindings = bindings(&cluster, &roles, &answer.places);
        grounds.add_cluster(cluster.into(), place, bindings);
    }
    Ok(grounds.finish())
}

fn bindings(cluster: &Cluster, roles: &[Role], places: &Places) -> Result<Stated<Objects>, Fault> {
    if cluster.managed_cluster_roles != Some(true) {
        return Ok(Collection::default().finish());
    }
    let mut all = Collection::of("ClusterRoleBinding.rbac.authorization.k8s.io");
    let services: Vec<&str> = cluster.auth.iter().map(|auth| auth.service.as_str()).collect();
    for (index, role) in roles.iter().enumerate() {
        for (nth, access) in role.access.iter().flatten().enumerate() {
            let is_here = access.cluster.as_ref().is_some_and(|it| it.name == cluster.name);
            let Some(role_name) = access.cluster_role.as_ref().filter(|_| is_here) else { continue };
            let granted =
                Granted { binding: "ClusterRoleBinding", role_kind: "ClusterRole", role: role_name };
            let place = places.of(&format!("/roles_v1/{index}/access/{nth}"));
            Members::from(role).bind(&mut all, granted, &services, place.as_ref())?;
        }
    }
    Ok(all.finish())
}
