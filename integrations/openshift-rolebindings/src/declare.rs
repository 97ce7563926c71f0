//! What the data says about who has which role in a namespace.

use std::collections::BTreeMap;

use qontract_objects::{Collection, Declared, Granted, Members, Objects, in_namespaces};
use qontract_runtime::{Data, Fault, Options};

use crate::query::{Namespace, Role, RoleBindings};
use crate::{NAME, SUPPORT_ROLE_REF};

/// The bindings of all namespaces whose roles are managed. In the others nothing is looked after.
pub fn declare(data: &Data, options: &Options) -> Result<Declared<Objects>, Fault> {
    let answer = data.query::<RoleBindings>()?;
    let roles = answer.data.roles_v1.unwrap_or_default();
    let grants = grants(&roles, options.is_on(SUPPORT_ROLE_REF));
    Ok(in_namespaces(NAME, answer.data.namespaces_v1, &answer.places, |namespace, _| {
        if namespace.managed_roles != Some(true) {
            return Ok(Collection::default().finish());
        }
        let mut all = Collection::of("RoleBinding.rbac.authorization.k8s.io");
        let services: Vec<&str> = namespace.cluster.auth.iter().map(|auth| auth.service.as_str()).collect();
        for grant in grants.get(&key(namespace)).into_iter().flatten() {
            let place = answer.places.of(&grant.pointer);
            grant.members.bind(&mut all, grant.granted, &services, place.as_ref())?;
        }
        Ok(all.finish())
    }))
}

/// What a role of the data grants in a namespace.
struct Grant<'a> {
    granted: Granted<'a>,
    members: Members,
    pointer: String,
}

/// All that is granted, by cluster and namespace. Unless Roles are supported, `role` means a `ClusterRole`, too.
fn grants(roles: &[Role], supports_roles: bool) -> BTreeMap<(&str, &str), Vec<Grant<'_>>> {
    let mut grants: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, role) in roles.iter().enumerate() {
        for (nth, access) in role.access.iter().flatten().enumerate() {
            let Some(namespace) = &access.namespace else { continue };
            let Some(role_name) = access.role.as_ref().or(access.cluster_role.as_ref()) else { continue };
            let role_kind = if supports_roles && access.role.is_some() { "Role" } else { "ClusterRole" };
            let granted = Granted { binding: "RoleBinding", role_kind, role: role_name };
            let pointer = format!("/roles_v1/{index}/access/{nth}");
            let grant = Grant { granted, members: role.into(), pointer };
            grants.entry((&*namespace.cluster.name, &*namespace.name)).or_default().push(grant);
        }
    }
    grants
}

fn key(namespace: &Namespace) -> (&str, &str) {
    (&namespace.cluster.name, &namespace.name)
}
