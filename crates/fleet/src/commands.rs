//! The commands that pods run, with the flags by which a command selects a shard.

use std::collections::{BTreeMap, BTreeSet};

/// The flag that selects an AWS account.
pub const ACCOUNT_NAME: &str = "--account-name";
/// The flag that selects a cluster.
pub const CLUSTER_NAME: &str = "--cluster-name";
/// The flag that selects an OCM organization.
pub const ORG_ID: &str = "--org-id";
/// The flag that selects a shard by its whole key.
pub const SHARD: &str = "--shard";

/// The commands of qontract-reconcile that select shards, by flag. Its other commands accept none of the flags.
const PEER_COMMANDS: [(&str, &[&str]); 3] = [
    (
        ACCOUNT_NAME,
        &[
            "aws-account-manager",
            "aws-iam-keys",
            "aws-saml-idp",
            "aws-saml-roles",
            "terraform-aws-route53",
            "terraform-init",
            "terraform-resources",
            "terraform-tgw-attachments",
            "terraform-users",
            "terraform-vpc-peerings",
            "terraform-vpc-resources",
        ],
    ),
    (
        CLUSTER_NAME,
        &[
            "dashdotdb-dvo",
            "endpoints-discovery",
            "openshift-namespaces",
            "openshift-namespaces-api",
            "openshift-prometheus-rules",
            "openshift-resources",
            "openshift-rhcs-certs",
            "openshift-routes",
            "openshift-vault-secrets",
            "prometheus-rules-tester",
        ],
    ),
    (
        ORG_ID,
        &["advanced-upgrade-scheduler", "ocm-addons-upgrade-scheduler-org", "ocm-upgrade-scheduler-org"],
    ),
];

/// Default time that a pod gets to end, in seconds.
pub const DEFAULT_GRACE_SECONDS: u64 = 60;

/// The properties of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    /// The flags by which the command selects shards, with dashes.
    pub flags: BTreeSet<String>,
    /// The time that a pod of the command gets to end, in seconds. It covers the wind-down of the integration.
    pub grace_seconds: u64,
}

impl Default for CommandInfo {
    fn default() -> Self {
        Self { flags: BTreeSet::new(), grace_seconds: DEFAULT_GRACE_SECONDS }
    }
}

/// The commands that pods can run, by integration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    commands: BTreeMap<String, CommandInfo>,
}

impl Commands {
    /// The commands of qontract-reconcile.
    pub fn of_peer() -> Self {
        let mut commands = Self::default();
        for (flag, names) in PEER_COMMANDS {
            for name in names {
                commands.commands.entry((*name).to_owned()).or_default().flags.insert(flag.to_owned());
            }
        }
        commands
    }

    /// Sets the properties of a command. Flags that were set before stay: a pod may run either implementation.
    pub fn add(&mut self, name: impl Into<String>, info: CommandInfo) {
        let command = self.commands.entry(name.into()).or_default();
        command.flags.extend(info.flags);
        command.grace_seconds = command.grace_seconds.max(info.grace_seconds);
    }

    /// Whether the command of an integration accepts a flag. A command that is not known accepts none.
    pub fn accepts(&self, integration: &str, flag: &str) -> bool {
        self.commands.get(integration).is_some_and(|command| command.flags.contains(flag))
    }

    /// The time that a pod of an integration gets to end, in seconds.
    pub fn grace_seconds(&self, integration: &str) -> u64 {
        self.commands.get(integration).map_or(DEFAULT_GRACE_SECONDS, |command| command.grace_seconds)
    }
}

impl<N: Into<String>, F: Into<String>> FromIterator<(N, Vec<F>)> for Commands {
    fn from_iter<I: IntoIterator<Item = (N, Vec<F>)>>(commands: I) -> Self {
        let mut all = Self::default();
        for (name, flags) in commands {
            let flags = flags.into_iter().map(Into::into).collect();
            all.add(name, CommandInfo { flags, ..CommandInfo::default() });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{ACCOUNT_NAME, CLUSTER_NAME, CommandInfo, Commands, DEFAULT_GRACE_SECONDS};

    #[test]
    fn an_unknown_command_accepts_no_flag() {
        let mut commands = Commands::of_peer();
        assert!(commands.accepts("terraform-resources", ACCOUNT_NAME));
        assert!(!commands.accepts("terraform-resources", CLUSTER_NAME));
        assert!(!commands.accepts("go-thing", ACCOUNT_NAME));
        assert_eq!(commands.grace_seconds("go-thing"), DEFAULT_GRACE_SECONDS);
        commands.add("go-thing", CommandInfo { flags: [ACCOUNT_NAME.to_owned()].into(), grace_seconds: 300 });
        assert!(commands.accepts("go-thing", ACCOUNT_NAME));
        assert_eq!(commands.grace_seconds("go-thing"), 300);
    }

    #[test]
    fn a_command_keeps_its_flags_and_its_longest_grace_period() {
        let mut commands = Commands::of_peer();
        commands
            .add("openshift-resources", CommandInfo { flags: ["--x".to_owned()].into(), grace_seconds: 5 });
        assert!(commands.accepts("openshift-resources", CLUSTER_NAME));
        assert!(commands.accepts("openshift-resources", "--x"));
        assert_eq!(commands.grace_seconds("openshift-resources"), DEFAULT_GRACE_SECONDS);
    }
}
