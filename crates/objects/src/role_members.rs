//! Binds the members of a role (users and bots) by the names that a cluster uses for them.

use std::collections::BTreeSet;

use jiff::civil::Date;
use qontract_runtime::{Fault, SourceLocation};
use serde_json::{Value, json};

use crate::fragments::{RoleMembers, User};
use crate::object_set::ObjectSet;

/// The API group of role bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// A role to grant, and the kind of binding that grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The kind of the bindings: `RoleBinding` or `ClusterRoleBinding`.
    pub binding: &'a str,
    /// The kind of the role: `Role` or `ClusterRole`.
    pub role_kind: &'a str,
    /// The role.
    pub role: &'a str,
}

impl RoleMembers {
    /// Adds a binding for each member. `services` are the authentication services of the cluster, which
    /// determine the names of users.
    pub fn bind(
        &self,
        all: &mut ObjectSet,
        granted: Grant<'_>,
        services: &[&str],
        place: Option<&SourceLocation>,
    ) -> Result<(), Fault> {
        let at = |why: String| Fault::author(why).at(place.cloned());
        let until = self.expiry().map_err(at)?;
        let names = self.user_names(services).map_err(at)?;
        let people = names.into_iter().map(|name| (name.to_owned(), json!({"kind": "User", "name": name})));
        let accounts = self.bots.iter().filter_map(|bot| bot.openshift_serviceaccount.as_deref());
        let accounts = accounts.map(|account| match account.split_once('/') {
            Some((namespace, name)) if !name.contains('/') => {
                let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
                Ok((format!("{namespace}-{name}"), subject))
            }
            _ => Err(at(format!("`{account}` is not a service account: expected `namespace/name`"))),
        });
        for bound in people.map(Ok).chain(accounts) {
            let (name, subject) = bound?;
            all.add_until(binding(granted, &name, &subject), until, place.cloned())?;
        }
        Ok(())
    }

    fn expiry(&self) -> Result<Option<Date>, String> {
        self.expiration_date.as_deref().map(expiration_date).transpose()
    }

    /// The user names on a cluster. GitHub is the default authentication service.
    fn user_names(&self, services: &[&str]) -> Result<BTreeSet<&str>, String> {
        let services = if services.is_empty() { &["github-org"] } else { services };
        let mut names = BTreeSet::new();
        for service in services {
            let name: fn(&User) -> &str = match *service {
                "github-org" | "github-org-team" => |user| &user.github_username,
                "oidc" | "rhidp" => |user| &user.org_username,
                other => return Err(format!("unknown authentication service `{other}`")),
            };
            names.extend(self.users.iter().map(name).filter(|name| !name.is_empty()));
        }
        Ok(names)
    }
}

/// Parses the day on which a role expires.
pub fn expiration_date(day: &str) -> Result<Date, String> {
    let wrong = |_| format!("`expirationDate` is not a date of the form YYYY-MM-DD: `{day}`");
    Date::strptime("%Y-%m-%d", day).map_err(wrong)
}

/// A binding with one subject, so that members are added and removed independently.
fn binding(Grant { binding, role_kind, role }: Grant<'_>, name: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": binding,
        "metadata": {"name": format!("{role}-{name}")},
        "roleRef": {"kind": role_kind, "name": role},
        "subjects": [subject],
    })
}

#[cfg(test)]
mod tests {
    use qontract_client_kubernetes::Kind;

    use super::Grant;
    use crate::fragments::{Bot, RoleMembers, User};
    use crate::object_set::ObjectSet;

    fn check(services: &[&str], expect: Result<&[&str], &str>) {
        let ann = User { org_username: "ann".to_owned(), github_username: "ann-hub".to_owned() };
        let bot = Bot { openshift_serviceaccount: Some("ci/bot".to_owned()) };
        let members = RoleMembers { users: vec![ann], bots: vec![bot], expiration_date: None };
        let mut all = ObjectSet::of(Kind::named("RoleBinding"));
        let granted = Grant { binding: "RoleBinding", role_kind: "ClusterRole", role: "view" };
        let bound = members.bind(&mut all, granted, services, None);
        let objects = all.finish().state.objects;
        let names = objects.iter().filter_map(|body| body["metadata"]["name"].as_str()).collect::<Vec<_>>();
        let actual = bound.map(|()| &*names).map_err(|fault| fault.text);
        assert_eq!(actual, expect.map_err(str::to_owned));
    }

    #[test]
    fn user_names_depend_on_the_authentication_service() {
        check(&["github-org"], Ok(&["view-ann-hub", "view-ci-bot"]));
        check(&["oidc"], Ok(&["view-ann", "view-ci-bot"]));
        check(&["rhidp", "oidc"], Ok(&["view-ann", "view-ci-bot"]));
        check(&["github-org-team", "oidc"], Ok(&["view-ann", "view-ann-hub", "view-ci-bot"]));
        check(&[], Ok(&["view-ann-hub", "view-ci-bot"]));
        check(&["smoke-signs"], Err("unknown authentication service `smoke-signs`"));
    }
}
