//! Who is bound to a role: the people and the bots of a role of the data, as a cluster knows them.

use std::collections::BTreeSet;

use jiff::civil::Date;
use qontract_runtime::{Fault, Place};
use serde_json::{Value, json};

use crate::collection::Collection;

/// The group of the objects that bind.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The members of a role of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// People.
    pub people: Vec<Person>,
    /// Service accounts of bots: `namespace/name`.
    pub accounts: Vec<String>,
    /// The day from which on the role grants nothing: `YYYY-MM-DD`.
    pub until: Option<String>,
}

/// How somebody is called elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// In the organisation.
    pub org: String,
    /// On GitHub.
    pub github: String,
}

/// What is granted, and by which kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted<'a> {
    /// The kind of the objects that bind: `RoleBinding` or `ClusterRoleBinding`.
    pub binding: &'a str,
    /// The kind of the role: `Role` or `ClusterRole`.
    pub role_kind: &'a str,
    /// The role.
    pub role: &'a str,
}

impl Members {
    /// Binds all of them, as a cluster knows them that lets people in by `services`.
    pub fn bind(
        &self,
        all: &mut Collection,
        granted: Granted<'_>,
        services: &[&str],
        place: Option<&Place>,
    ) -> Result<(), Fault> {
        let at = |why: String| Fault::author(why).at(place.cloned());
        let until = self.until().map_err(at)?;
        let names = self.names(services).map_err(at)?;
        let people = names.into_iter().map(|name| (name.to_owned(), json!({"kind": "User", "name": name})));
        let accounts = self.accounts.iter().map(|account| match account.split_once('/') {
            Some((namespace, name)) if !name.contains('/') => {
                let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
                Ok((format!("{namespace}-{name}"), subject))
            }
            _ => Err(at(format!("`{account}` is no service account: namespace, slash, name"))),
        });
        for bound in people.map(Ok).chain(accounts) {
            let (name, subject) = bound?;
            all.add_until(binding(granted, &name, &subject), until, place.cloned())?;
        }
        Ok(())
    }

    fn until(&self) -> Result<Option<Date>, String> {
        let Some(day) = &self.until else { return Ok(None) };
        let wrong = |_| format!("`expirationDate` is no day: `{day}` instead of YYYY-MM-DD");
        Date::strptime("%Y-%m-%d", day).map(Some).map_err(wrong)
    }

    /// What a cluster calls the people. One that does not say how it lets people in does so by GitHub.
    fn names(&self, services: &[&str]) -> Result<BTreeSet<&str>, String> {
        let services = if services.is_empty() { &["github-org"] } else { services };
        let mut names = BTreeSet::new();
        for service in services {
            let name: fn(&Person) -> &str = match *service {
                "github-org" | "github-org-team" => |person| &person.github,
                "oidc" | "rhidp" => |person| &person.org,
                other => return Err(format!("it is not known what `{other}` calls people")),
            };
            names.extend(self.people.iter().map(name).filter(|name| !name.is_empty()));
        }
        Ok(names)
    }
}

/// One binds one: so each comes and goes alone.
fn binding(Granted { binding, role_kind, role }: Granted<'_>, name: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": binding,
        "metadata": {"name": format!("{role}-{name}")},
        "roleRef": {"kind": role_kind, "name": role},
        "subjects": [subject],
    })
}

/// Lets the roles of a room's own answers be read as [`Members`].
///
/// The room's request asks of each role `users { org_username github_username }`, `bots { openshift_serviceaccount }`, and `expirationDate`.
#[macro_export]
macro_rules! reads_members {
    ($query:ident) => {
        impl From<&$query::Role> for $crate::Members {
            fn from(role: &$query::Role) -> Self {
                let person = |user: &$query::User| $crate::Person {
                    org: user.org_username.clone(),
                    github: user.github_username.clone(),
                };
                Self {
                    people: role.users.iter().map(person).collect(),
                    accounts: role
                        .bots
                        .iter()
                        .filter_map(|bot| bot.openshift_serviceaccount.clone())
                        .collect(),
                    until: role.expiration_date.clone(),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::{Granted, Members, Person};
    use crate::collection::Collection;

    fn check(services: &[&str], expect: Result<&[&str], &str>) {
        let ann = Person { org: "ann".to_owned(), github: "ann-hub".to_owned() };
        let members = Members { people: vec![ann], accounts: vec!["ci/bot".to_owned()], until: None };
        let mut all = Collection::of("RoleBinding");
        let granted = Granted { binding: "RoleBinding", role_kind: "ClusterRole", role: "view" };
        let bound = members.bind(&mut all, granted, services, None);
        let objects = all.finish().0.objects;
        let names = objects.iter().filter_map(|body| body["metadata"]["name"].as_str()).collect::<Vec<_>>();
        let told = bound.map(|()| &*names).map_err(|fault| fault.text);
        assert_eq!(told, expect.map_err(str::to_owned));
    }

    #[test]
    fn a_cluster_knows_people_by_how_it_lets_them_in() {
        check(&["github-org"], Ok(&["view-ann-hub", "view-ci-bot"]));
        check(&["oidc"], Ok(&["view-ann", "view-ci-bot"]));
        check(&["rhidp", "oidc"], Ok(&["view-ann", "view-ci-bot"]));
        check(&["github-org-team", "oidc"], Ok(&["view-ann", "view-ann-hub", "view-ci-bot"]));
        check(&[], Ok(&["view-ann-hub", "view-ci-bot"]));
        check(&["smoke-signs"], Err("it is not known what `smoke-signs` calls people"));
    }
}
