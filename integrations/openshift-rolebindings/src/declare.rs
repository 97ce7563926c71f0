//! Declares the `RoleBindings` of namespaces.

use std::collections::BTreeMap;

use qontract_objects::fragments::{NamespaceTarget, RoleMembers};
use qontract_objects::{Declared, DeclaredObjects, Grant, Kind, ObjectSet, in_namespaces};
use qontract_runtime::{Data, Fault};

use crate::NAME;
use crate::query::{Role, RoleBindings};

/// Declares the bindings of all namespaces with managed roles. In other namespaces, no binding is managed. If
/// `supports_roles` is set, `role` refers to a Role.
pub fn declare(data: &Data, supports_roles: bool) -> Result<Declared<DeclaredObjects>, Fault> {
    let answer = data.query::<RoleBindings>()?;
    let roles = answer.data.roles_v1.unwrap_or_default();
    let grants = grants(&roles, supports_roles);
    Ok(in_namespaces(
        NAME,
        answer.data.namespaces_v1,
        &answer.places,
        |namespace| &namespace.namespace_target,
        |namespace, _| {
            if namespace.managed_roles != Some(true) {
                return Ok(ObjectSet::default().finish());
            }
            let mut all = ObjectSet::of(Kind::in_group("RoleBinding", "rbac.authorization.k8s.io"));
            let services: Vec<&str> = namespace.login.auth.iter().map(|auth| auth.service.as_str()).collect();
            for grant in grants.get(&key(&namespace.namespace_target)).into_iter().flatten() {
                let place = answer.places.of(&grant.pointer);
                grant.members.bind(&mut all, grant.granted, &services, place.as_ref())?;
            }
            Ok(all.finish())
        },
    ))
}

/// The grant of a role to the members of a role datafile, in one namespace.
struct RoleGrant<'a> {
    granted: Grant<'a>,
    members: &'a RoleMembers,
    pointer: String,
}

/// All grants, by cluster and namespace. Unless `supports_roles` is set, `role` also refers to a
/// `ClusterRole`.
fn grants(roles: &[Role], supports_roles: bool) -> BTreeMap<(&str, &str), Vec<RoleGrant<'_>>> {
    let mut grants: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, role) in roles.iter().enumerate() {
        for (nth, access) in role.access.iter().flatten().enumerate() {
            let Some(namespace) = &access.namespace else { continue };
            let Some(role_name) = access.role.as_ref().or(access.cluster_role.as_ref()) else { continue };
            let role_kind = if supports_roles && access.role.is_some() { "Role" } else { "ClusterRole" };
            let granted = Grant { binding: "RoleBinding", role_kind, role: role_name };
            let pointer = format!("/roles_v1/{index}/access/{nth}");
            let grant = RoleGrant { granted, members: &role.role_members, pointer };
            grants.entry((&*namespace.cluster.name, &*namespace.name)).or_default().push(grant);
        }
    }
    grants
}

fn key(namespace: &NamespaceTarget) -> (&str, &str) {
    (&namespace.cluster.name, &namespace.name)
}
