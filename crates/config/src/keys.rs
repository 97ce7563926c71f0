//! Table of all configuration keys. Unknown keys are refused, and the reference page is generated from it.

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// A string.
    Text,
    /// A string that is never printed.
    Secret,
    /// The path of a file or directory, relative to the configuration file.
    Path,
    /// An integer.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    Texts,
    /// A list of bounds of writes.
    WriteBounds,
}

impl KeyType {
    /// The description of the type in errors: "… must be an integer".
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Secret => "a string (secret)",
            Self::Path => "a path",
            Self::Number => "an integer",
            Self::Boolean => "`true` or `false`",
            Self::Texts => "a list of strings",
            Self::WriteBounds => "a list of tables with `origin`, `methods` and `paths`",
        }
    }
}

/// A key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The path; `*` stands for a name that the operator chooses.
    pub path: &'static str,
    /// The type of the key's value.
    pub value_type: KeyType,
    /// The default value; empty if the key is required.
    pub default: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

const fn key(path: &'static str, holds: KeyType, default: &'static str, meaning: &'static str) -> Key {
    Key { path, value_type: holds, default, meaning }
}

/// Every key of the configuration.
pub const KEYS: &[Key] = &[
    key("graphql.server", KeyType::Text, "", "GraphQL endpoint of the data server, unless `--data` is given"),
    key("graphql.token", KeyType::Secret, "none", "value of the `Authorization` header for the data server"),
    key(
        "vault.server",
        KeyType::Text,
        "",
        "address of Vault; without `[vault]`, secrets are tables of this file",
    ),
    key("vault.token", KeyType::Secret, "none", "log in with this token"),
    key("vault.role_id", KeyType::Text, "none", "log in with AppRole, together with `secret_id`"),
    key("vault.secret_id", KeyType::Secret, "none", "see `role_id`"),
    key(
        "vault.kube_auth_role",
        KeyType::Text,
        "none",
        "log in by Vault's Kubernetes auth method, with this role",
    ),
    key(
        "vault.kube_auth_mount",
        KeyType::Text,
        "`kubernetes`",
        "mount path of Vault's Kubernetes auth method",
    ),
    key(
        "kubernetes.ca",
        KeyType::Path,
        "none",
        "PEM file of the CA that signed the certificates of the API servers, in addition to the system's",
    ),
    key(
        "kubernetes.requests_per_second",
        KeyType::Number,
        "50",
        "maximum requests per second to each cluster, shared by the whole process",
    ),
    key(
        "kubernetes.deadline_seconds",
        KeyType::Number,
        "60",
        "timeout of a request to a cluster, including retries",
    ),
    key(
        "kubernetes.validate_in_dry_run",
        KeyType::Boolean,
        "false",
        "dry runs send planned objects with `dryRun=All`",
    ),
    key(
        "kubernetes.clusters.*.server",
        KeyType::Text,
        "the data's",
        "the only server that the token of this cluster is sent to",
    ),
    key(
        "kubernetes.clusters.*.ca",
        KeyType::Path,
        "`kubernetes.ca`",
        "like `kubernetes.ca`, for one cluster",
    ),
    key(
        "kubernetes.clusters.*.requests_per_second",
        KeyType::Number,
        "`kubernetes.requests_per_second`",
        "maximum requests per second to this cluster",
    ),
    key(
        "kubernetes.clusters.*.deadline_seconds",
        KeyType::Number,
        "`kubernetes.deadline_seconds`",
        "like `kubernetes.deadline_seconds`, for one cluster",
    ),
    key(
        "kubernetes.clusters.*.validate_in_dry_run",
        KeyType::Boolean,
        "`kubernetes.validate_in_dry_run`",
        "like `kubernetes.validate_in_dry_run`, for one cluster",
    ),
    key(
        "kubernetes.clusters.*.kubeconfig",
        KeyType::Path,
        "none",
        "kubeconfig with server, CA and credentials of this cluster, instead of the data's token",
    ),
    key(
        "kubernetes.clusters.*.context",
        KeyType::Text,
        "the kubeconfig's current context",
        "context of the kubeconfig",
    ),
    key("targets.blobs.*.bucket", KeyType::Text, "", "name of a bucket that integrations use"),
    key("targets.blobs.*.region", KeyType::Text, "`us-east-1`", "region of the bucket"),
    key("targets.blobs.*.endpoint", KeyType::Text, "AWS", "URL of an S3 server other than AWS"),
    key(
        "targets.blobs.*.secret",
        KeyType::Text,
        "the environment",
        "path of the secret with the fields `aws_access_key_id` and `aws_secret_access_key`",
    ),
    key(
        "targets.queue.*.url",
        KeyType::Text,
        "none",
        "URL of an SQS queue that integrations use; a queue has either a `url` or a `name`",
    ),
    key("targets.queue.*.name", KeyType::Text, "none", "name of the queue, in the account of the key"),
    key("targets.queue.*.region", KeyType::Text, "that of `url`, else `us-east-1`", "region of the queue"),
    key(
        "targets.queue.*.endpoint",
        KeyType::Text,
        "the server of `url`, else AWS",
        "URL of an SQS server other than AWS",
    ),
    key(
        "targets.queue.*.secret",
        KeyType::Text,
        "the environment",
        "path of the secret with the fields `aws_access_key_id` and `aws_secret_access_key`",
    ),
    key(
        "targets.state.bucket",
        KeyType::Text,
        "",
        "bucket of the state store; without `[targets.state]`, the variables `APP_INTERFACE_STATE_*` apply",
    ),
    key("targets.state.region", KeyType::Text, "`us-east-1`", "region of the bucket"),
    key("targets.state.endpoint", KeyType::Text, "AWS", "URL of an S3 server other than AWS"),
    key(
        "targets.state.secret",
        KeyType::Text,
        "the environment",
        "path of the secret with the fields `aws_access_key_id` and `aws_secret_access_key`",
    ),
    key(
        "targets.journal.bucket",
        KeyType::Text,
        "",
        "bucket of the journal, which all processes share; without `[targets.journal]`, it is a directory next to the run records",
    ),
    key("targets.journal.region", KeyType::Text, "`us-east-1`", "region of the bucket"),
    key("targets.journal.endpoint", KeyType::Text, "AWS", "URL of an S3 server other than AWS"),
    key(
        "targets.journal.secret",
        KeyType::Text,
        "the environment",
        "path of the secret with the fields `aws_access_key_id` and `aws_secret_access_key`",
    ),
    key("sandbox.directory", KeyType::Path, "none", "sandbox directory to use instead of the target systems"),
    key(
        "promtool.path",
        KeyType::Path,
        "`promtool` on the `PATH`",
        "path of promtool, for `prometheus-rules-tester`",
    ),
    key(
        "templates.allow_urls",
        KeyType::Texts,
        "none",
        "URLs that `url` may read; a URL that ends with a slash allows everything below it",
    ),
    key(
        "templates.allow_github",
        KeyType::Texts,
        "none",
        "repositories that `github` may read: `owner/name` or `owner/*`",
    ),
    key("templates.github_api", KeyType::Text, "`https://api.github.com`", "address of the GitHub API"),
    key(
        "templates.github_token.path",
        KeyType::Text,
        "none",
        "path of the secret that contains the GitHub token",
    ),
    key("templates.github_token.field", KeyType::Text, "none", "field of that secret"),
    key(
        "templates.allow_s3",
        KeyType::Texts,
        "none",
        "buckets that `s3` and `s3_ls` may read: `account/bucket`",
    ),
    key("templates.s3_endpoint", KeyType::Text, "AWS", "URL of an S3 server other than AWS"),
    key("templates.deadline_seconds", KeyType::Number, "20", "time limit for one lookup, including retries"),
    key(
        "templates.largest_bytes",
        KeyType::Number,
        "4194304",
        "maximum response size of one lookup, in bytes",
    ),
    key(
        "integrations.*.command",
        KeyType::Texts,
        "",
        "program of a process integration and its arguments; relative paths of files start at the directory of the configuration file if the file exists there, else at the working directory; a program without a path is searched for on `PATH` first",
    ),
    key(
        "integrations.*.environment",
        KeyType::Texts,
        "none",
        "environment variables that are passed to the program",
    ),
    key(
        "integrations.*.write_environment",
        KeyType::Texts,
        "none",
        "environment variables that are passed to the program only when it applies a step",
    ),
    key(
        "integrations.*.secret_environment",
        KeyType::Texts,
        "none",
        "environment variables that are passed to the program in `plan`, `print` and `apply`; their values are redacted",
    ),
    key(
        "integrations.*.deadline_seconds",
        KeyType::Number,
        "60",
        "time limit for each response of the program",
    ),
    key(
        "integrations.*.shutdown_seconds",
        KeyType::Number,
        "none",
        "time that the program needs to exit after `SIGINT` while it applies a step; without this key, a shutdown lets the program finish the step",
    ),
    key(
        "foreign.*.command",
        KeyType::Texts,
        "",
        "existing command that is run as an integration, such as the `run-integration` of qontract-reconcile, and its arguments; paths as in `integrations.*.command`",
    ),
    key(
        "foreign.*.config",
        KeyType::Path,
        "none",
        "configuration file of the command, which gets a copy that contains the address of the data",
    ),
    key(
        "foreign.*.arguments",
        KeyType::Texts,
        "none",
        "arguments that `run-integration` passes on to the integration",
    ),
    key(
        "foreign.*.environment",
        KeyType::Texts,
        "none",
        "environment variables that are passed to the command",
    ),
    key(
        "foreign.*.secret_environment",
        KeyType::Texts,
        "none",
        "environment variables that are passed to the command; their values are redacted in its output",
    ),
    key(
        "foreign.*.real_runs",
        KeyType::Boolean,
        "false",
        "whether real runs are allowed; without this key, every run is a dry run",
    ),
    key("foreign.*.deadline_seconds", KeyType::Number, "1800", "time limit of a run of the command"),
    key(
        "foreign.*.shutdown_seconds",
        KeyType::Number,
        "60",
        "time that the command needs to exit after `SIGINT`",
    ),
    key(
        "targets.prometheus.url",
        KeyType::Text,
        "",
        "URL of the Prometheus server with the metrics of loops, for shards that scale themselves",
    ),
    key("targets.prometheus.token", KeyType::Secret, "none", "bearer token for the Prometheus server"),
    key(
        "fleet.commands.*.flags",
        KeyType::Texts,
        "none",
        "flags by which a command that pods run selects shards, such as `--account-name`; commands of this binary and of qontract-reconcile are known",
    ),
    key(
        "fleet.commands.*.grace_seconds",
        KeyType::Number,
        "60",
        "time that a pod of the command gets to end",
    ),
    key(
        "guards.shard_removals",
        KeyType::Number,
        "10",
        "maximum number of removals in a shard without approval",
    ),
    key(
        "guards.shard_percent",
        KeyType::Number,
        "10",
        "maximum percentage of a shard's objects to remove without approval; the larger of the two limits applies",
    ),
    key(
        "guards.caller_removals",
        KeyType::Number,
        "20",
        "maximum number of removals by a caller without approval",
    ),
    key(
        "guards.caller_percent",
        KeyType::Number,
        "10",
        "maximum percentage of a caller's objects to remove without approval; the larger of the two limits applies",
    ),
    key(
        "guards.integration_removals",
        KeyType::Number,
        "30",
        "maximum number of removals by an integration without approval; formerly `run_removals`",
    ),
    key(
        "guards.integration_percent",
        KeyType::Number,
        "10",
        "maximum percentage of an integration's objects to remove without approval; the larger of the two limits applies; formerly `run_percent`",
    ),
    key("guards.run_removals", KeyType::Number, "none", "former name of `integration_removals`"),
    key("guards.run_percent", KeyType::Number, "none", "former name of `integration_percent`"),
    key(
        "guards.window_hours",
        KeyType::Number,
        "24",
        "number of hours that a removal counts towards the limits",
    ),
    key(
        "guards.writes",
        KeyType::WriteBounds,
        "everything",
        "the only write requests that real runs may send to target systems: `methods` at an `origin`, on exactly these `paths`, or below those that end in a slash",
    ),
    key(
        "guards.keys.count",
        KeyType::Number,
        "5",
        "a change that removes this many keys of an object counts as a removal",
    ),
    key(
        "guards.keys.percent",
        KeyType::Number,
        "50",
        "percentage of an object's keys whose loss counts as a removal",
    ),
    key(
        "guards.keys.lists",
        KeyType::Boolean,
        "true",
        "whether a change that removes all items of a list counts as a removal",
    ),
];

/// The tables at the top level that may also be written below `[targets]`.
pub(crate) const ALSO_BELOW_TARGETS: [&str; 2] = ["kubernetes", "vault"];

/// The path in [`KEYS`] of a key that is written below `[targets]`.
fn canonical<'p, 'n>(path: &'p [&'n str]) -> &'p [&'n str] {
    match path {
        ["targets", rest @ ..] if rest.first().is_some_and(|name| ALSO_BELOW_TARGETS.contains(name)) => rest,
        _ => path,
    }
}

/// The key with this path, in which `*` stands for any name.
pub fn find(path: &[&str]) -> Option<&'static Key> {
    let path = canonical(path);
    KEYS.iter().find(|key| {
        let pattern: Vec<&str> = key.path.split('.').collect();
        pattern.len() == path.len()
            && pattern.iter().zip(path).all(|(one, given)| one == given || *one == "*")
    })
}

/// The names that may follow a path; `*` if any name may.
pub fn children(path: &[&str]) -> Vec<&'static str> {
    let path = canonical(path);
    let mut names: Vec<&str> = match path {
        ["targets"] => ALSO_BELOW_TARGETS.to_vec(),
        _ => Vec::new(),
    };
    for key in KEYS {
        let mut pattern = key.path.split('.');
        let matches = path.iter().all(|given| pattern.next().is_some_and(|one| one == *given || one == "*"));
        if let Some(next) = pattern.next().filter(|next| matches && !names.contains(next)) {
            names.push(next);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_name() {
        assert_eq!(
            find(&["kubernetes", "clusters", "a.b", "ca"]).map(|key| key.path),
            Some("kubernetes.clusters.*.ca")
        );
        assert!(find(&["kubernetes", "clusters", "a"]).is_none());
        assert!(find(&["kubernetes", "cluster", "a", "ca"]).is_none());
    }

    #[test]
    fn the_names_that_may_follow_a_path_are_listed() {
        assert_eq!(children(&["promtool"]), ["path"]);
        assert_eq!(children(&["kubernetes", "clusters"]), ["*"]);
        assert_eq!(children(&["templates", "github_token"]), ["path", "field"]);
        assert_eq!(children(&["promtool", "path"]), [""; 0]);
        assert_eq!(
            children(&[]),
            [
                "graphql",
                "vault",
                "kubernetes",
                "targets",
                "sandbox",
                "promtool",
                "templates",
                "integrations",
                "foreign",
                "fleet",
                "guards"
            ]
        );
        assert_eq!(
            children(&["targets"]),
            ["kubernetes", "vault", "blobs", "queue", "state", "journal", "prometheus"]
        );
        assert_eq!(children(&["targets", "kubernetes", "clusters"]), ["*"]);
    }
}
