//! Table of all environment variables, from which help texts and the reference page are generated.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::keys::{KEYS, Key};
use crate::usage::UsageError;

/// The value of an environment variable; `None` if it is unset or empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variable that sets the time after which a run without progress is cancelled.
pub const STALL_VARIABLE: &str = "QONTRACT_STALL_SECONDS";

/// Minimum value of [`STALL_VARIABLE`], because heartbeats are one second apart.
const MIN_STALL_SECONDS: u64 = 2;

/// The time after which a run without progress is cancelled, if [`STALL_VARIABLE`] is set.
pub fn stall_timeout() -> Result<Option<Duration>, UsageError> {
    parse_stall_timeout(variable(STALL_VARIABLE).as_deref())
}

fn parse_stall_timeout(seconds: Option<&str>) -> Result<Option<Duration>, UsageError> {
    let Some(text) = seconds else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if seconds >= MIN_STALL_SECONDS => Ok(Some(Duration::from_secs(seconds))),
        Ok(_) => Err(UsageError(format!("`{STALL_VARIABLE}` is less than {MIN_STALL_SECONDS}: `{text}`"))),
        Err(_) => Err(UsageError(format!("`{STALL_VARIABLE}` is not a number of seconds: `{text}`"))),
    }
}

/// The variable that sets the duration of leases.
pub const LEASE_VARIABLE: &str = "QONTRACT_LEASE_SECONDS";

/// The range of [`LEASE_VARIABLE`]. A shorter lease could expire during a slow request to the store.
const LEASE_SECONDS: RangeInclusive<u64> = 5..=600;

/// The default for [`LEASE_VARIABLE`].
const DEFAULT_LEASE_SECONDS: u64 = 60;

/// The duration of leases.
pub fn lease_duration() -> Result<Duration, UsageError> {
    parse_lease_duration(variable(LEASE_VARIABLE).as_deref())
}

fn parse_lease_duration(seconds: Option<&str>) -> Result<Duration, UsageError> {
    let Some(text) = seconds else { return Ok(Duration::from_secs(DEFAULT_LEASE_SECONDS)) };
    match text.parse() {
        Ok(seconds) if LEASE_SECONDS.contains(&seconds) => Ok(Duration::from_secs(seconds)),
        Ok(_) => Err(UsageError(format!(
            "`{LEASE_VARIABLE}` is not between {} and {}: `{text}`",
            LEASE_SECONDS.start(),
            LEASE_SECONDS.end()
        ))),
        Err(_) => Err(UsageError(format!("`{LEASE_VARIABLE}` is not a number of seconds: `{text}`"))),
    }
}

/// The programs that read a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// The commands of `qontract`.
    Qontract,
    /// `run-integration` only.
    RunIntegration,
    /// `qontract-server` only.
    Server,
    /// Every command: conventions of the operating system and of other tools.
    Everything,
}

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name, or several names separated by commas.
    pub name: &'static str,
    /// The programs that read the variable.
    pub read_by: ReadBy,
    /// The type of the variable's value, such as a path or a number of seconds.
    pub value_type: &'static str,
    /// The default value.
    pub default: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

impl Variable {
    const fn new(
        read_by: ReadBy,
        name: &'static str,
        value_type: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, read_by, value_type, default, meaning }
    }
}

/// Every environment variable that is read.
pub const VARIABLES: &[Variable] = &[
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_CONFIG",
        "path",
        "the default locations",
        "configuration file, like `--config`; `run-integration` reads it if `CONFIG` is not set",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_RUNS",
        "path",
        "`$XDG_STATE_HOME/qontract/runs`",
        "directory of the run records, like `--runs`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_RECORD_INPUTS",
        "`off`",
        "on",
        "`off`: do not record the inputs of plans, which `qontract runs replay` needs",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_CACHE",
        "path, or `off`",
        "`$XDG_CACHE_HOME/qontract/repos`",
        "cache directory for large data repos",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_LOG_LEVEL",
        "`DEBUG`, `INFO`, `WARNING`, `ERROR`",
        "`INFO`",
        "log level, like `--log-level`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_LOG_FORMAT",
        "`text` or `json`",
        "`text`",
        "log format, like `--log-format`; also for `run-integration`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_SERVER_TOKEN",
        "string (secret)",
        "none",
        "`Authorization` header for the data server of `--data http://…`; for `serve` and `qontract-server`, the header that requests must have",
    ),
    Variable::new(
        ReadBy::Qontract,
        "QONTRACT_SHUTDOWN_SECONDS",
        "number of seconds",
        "20",
        "maximum time that a shutdown waits for steps in progress; if unset, integrations that need longer get the time that they declare",
    ),
    Variable::new(
        ReadBy::Qontract,
        STALL_VARIABLE,
        "number of seconds",
        "720",
        "time without progress after which the run of a loop is cancelled; at least 2",
    ),
    Variable::new(
        ReadBy::Qontract,
        LEASE_VARIABLE,
        "number of seconds",
        "60",
        "duration of the leases of shards, from 5 to 600: another process can take over a shard whose lease was not renewed for this time",
    ),
    Variable::new(
        ReadBy::Qontract,
        "SHARDS",
        "number",
        "1",
        "number of processes that share the work, like `--shards`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "SHARD_ID",
        "number",
        "0",
        "index of this process, counted from 0, like `--shard-id`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "EARLY_EXIT_COMPARE_SHA",
        "SHA-256",
        "none",
        "bundle on the server to compare with, like `--early-exit-compare-sha`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "CHECK_ONLY_AFFECTED_SHARDS",
        "`true`",
        "unset",
        "run only affected shards, like `--check-only-affected-shards`",
    ),
    Variable::new(
        ReadBy::Qontract,
        "KUBE_SA_TOKEN_PATH",
        "path",
        "`/var/run/secrets/kubernetes.io/serviceaccount/token`",
        "service account token for `vault.kube_auth_role`",
    ),
    Variable::new(ReadBy::RunIntegration, "INTEGRATION_NAME", "string", "required", "integration to run"),
    Variable::new(
        ReadBy::RunIntegration,
        "INTEGRATION_EXTRA_ARGS",
        "words, quoted as for a shell",
        "none",
        "flags of the integration",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "CONFIG",
        "path",
        "`$QONTRACT_CONFIG`, else `/config/config.toml`",
        "configuration file",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "DRY_RUN",
        "`--dry-run` or `--no-dry-run`",
        "unset: a real run",
        "whether target systems are changed",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "MANAGER_DRY_RUN",
        "`--dry-run` or `--no-dry-run`",
        "unset: a real run",
        "whether `integrations-manager` changes target systems, like `DRY_RUN` for other integrations",
    ),
    Variable::new(ReadBy::RunIntegration, "RUN_ONCE", "boolean", "`false`", "exit after the first run"),
    Variable::new(
        ReadBy::RunIntegration,
        "SLEEP_DURATION_SECS",
        "number of seconds",
        "600",
        "time between two runs",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "SLEEP_ON_ERROR",
        "number of seconds",
        "10",
        "first back-off after a failed run; it grows up to `SLEEP_DURATION_SECS`",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "LOG_LEVEL",
        "`DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`",
        "`INFO`",
        "log level",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "LOG_FILE",
        "path",
        "none",
        "file to append log messages to, in addition to stderr",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "PREFIX_LOG_LEVEL",
        "boolean",
        "`false`",
        "write `[LEVEL]` before each line of `LOG_FILE`",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "PROMETHEUS_PORT",
        "port",
        "9090",
        "port of `/metrics`, `/healthz`, `/readyz` and `/status`, on all interfaces",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "SHARD_KEY",
        "string",
        "`$SHARD_ID-$SHARDS`",
        "label `shard_id` of metrics",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "QONTRACT_BALANCED_BY",
        "string",
        "none",
        "dimension of shard keys, such as `cluster`: the metric `qontract_reconcile_key_seconds` has the run time for each of its values",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "PUSHGATEWAY_ENABLED",
        "boolean",
        "`false`",
        "push metrics after each run; requires the next three variables",
    ),
    Variable::new(ReadBy::RunIntegration, "PUSHGATEWAY_URL", "URL", "none", "address of the Pushgateway"),
    Variable::new(
        ReadBy::RunIntegration,
        "PUSHGATEWAY_USERNAME",
        "string",
        "none",
        "user name for the Pushgateway",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "PUSHGATEWAY_PASSWORD",
        "string (secret)",
        "none",
        "password for the Pushgateway",
    ),
    Variable::new(
        ReadBy::RunIntegration,
        "COMMAND_NAME, ENABLE_PROFILING, PROFILE_DUMP_FILE",
        "any",
        "unset",
        "ignored with a warning: they apply only to the Python implementation",
    ),
    Variable::new(
        ReadBy::Everything,
        "ENVIRONMENT_NAME",
        "string",
        "all environments",
        "`--environment-name` of `integrations-manager` and of `qontract fleet`",
    ),
    Variable::new(
        ReadBy::Everything,
        "INTEGRATIONS_MANAGER_UPSTREAM",
        "URL",
        "all integrations",
        "`--upstream` of `integrations-manager` and of `qontract fleet`",
    ),
    Variable::new(
        ReadBy::Everything,
        "INTEGRATIONS_MANAGER_IMAGE, INTEGRATIONS_MANAGER_IMAGE_TAG_FROM_REF, INTEGRATIONS_MANAGER_PARAMETERS",
        "string",
        "none",
        "`--image`, `--image-tag-from-ref` and `--parameter` of `integrations-manager`; several pairs are separated by white space",
    ),
    Variable::new(
        ReadBy::Server,
        "LOAD_METHOD",
        "`fs` or `s3`",
        "required without `INIT_BUNDLES`",
        "source of the bundle",
    ),
    Variable::new(ReadBy::Server, "DATAFILES_FILE", "path", "required for `fs`", "bundle file"),
    Variable::new(ReadBy::Server, "AWS_S3_BUCKET", "string", "required for `s3`", "bucket of the bundle"),
    Variable::new(ReadBy::Server, "AWS_S3_KEY", "string", "required for `s3`", "key of the bundle"),
    Variable::new(
        ReadBy::Server,
        "INIT_BUNDLES",
        "list of `fs://PATH` and `s3://KEY`, separated by commas",
        "none",
        "bundles to load at startup instead of `LOAD_METHOD`; the last one is the latest",
    ),
    Variable::new(
        ReadBy::Server,
        "BUNDLE_SHA_TTL",
        "number of milliseconds",
        "1200000",
        "how long a bundle stays loaded after its last request",
    ),
    Variable::new(
        ReadBy::Everything,
        "AWS_REGION, AWS_DEFAULT_REGION",
        "string",
        "`us-east-1`",
        "region of S3",
    ),
    Variable::new(
        ReadBy::Everything,
        "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL",
        "URL",
        "AWS",
        "URL of an S3 server other than AWS",
    ),
    Variable::new(
        ReadBy::Everything,
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_CONFIG_FILE",
        "string",
        "the identity of the pod or machine",
        "credentials for S3, as in the AWS tools",
    ),
    Variable::new(
        ReadBy::Everything,
        "APP_INTERFACE_STATE_BUCKET, APP_INTERFACE_STATE_BUCKET_REGION, APP_INTERFACE_STATE_AWS_PROFILE, APP_INTERFACE_STATE_VAULT_SECRET, APP_INTERFACE_STATE_VAULT_SECRET_VERSION, APP_INTERFACE_STATE_BUCKET_ACCESS_KEY_ID, APP_INTERFACE_STATE_BUCKET_SECRET_ACCESS_KEY",
        "string",
        "none",
        "state store without `[targets.state]`, as in qontract-reconcile; the first complete credentials apply: profile, Vault secret, key",
    ),
    Variable::new(
        ReadBy::Everything,
        "QONTRACT_SANDBOX_CLOCK, QONTRACT_SANDBOX_KILL_AFTER",
        "time in RFC 3339; number",
        "none",
        "for tests in a sandbox, refused without one: the time of the runs, and the number of written objects after which the process aborts",
    ),
    Variable::new(
        ReadBy::Everything,
        "HTTPS_PROXY, HTTP_PROXY, NO_PROXY",
        "URL; list of hosts",
        "none",
        "proxies for HTTP requests; not used for addresses that templates read",
    ),
    Variable::new(
        ReadBy::Everything,
        "NO_COLOR, CLICOLOR_FORCE",
        "any",
        "unset",
        "`NO_COLOR` disables colours; `CLICOLOR_FORCE` forces them",
    ),
    Variable::new(
        ReadBy::Everything,
        "CI, TERM",
        "any",
        "unset",
        "the progress line is disabled if `CI` is set and not `false`, or if `TERM` is `dumb`",
    ),
    Variable::new(
        ReadBy::Everything,
        "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME, HOME",
        "absolute path",
        "`~/.config`, `~/.local/state`, `~/.cache`",
        "directories for the configuration, run records and caches",
    ),
    Variable::new(
        ReadBy::Everything,
        "PATH",
        "list of directories",
        "",
        "directories that are searched for `git` and `promtool`; passed to programs, with `LANG` and `TZ`",
    ),
    Variable::new(
        ReadBy::Everything,
        "GIT_CEILING_DIRECTORIES",
        "list of directories",
        "none",
        "directories at and above which no Git repository is searched for, as in Git; the working directory is always searched",
    ),
    Variable::new(
        ReadBy::Everything,
        "MIMALLOC_PURGE_DELAY",
        "number of milliseconds",
        "0 in loops, 100 in servers",
        "time after which freed memory is returned to the system; a loop or server re-executes itself once to set it",
    ),
];

/// The variables of a program, for its help text.
pub fn help(read_by: ReadBy) -> String {
    let rows: Vec<&Variable> = VARIABLES.iter().filter(|variable| variable.read_by == read_by).collect();
    let width = rows.iter().map(|row| row.name.len()).filter(|width| *width < 24).max().unwrap_or_default();
    let mut text = String::from("Environment variables:\n");
    for Variable { name, default, meaning, .. } in rows {
        let default = if default.is_empty() {
            String::new()
        } else if default.starts_with("required") {
            format!(" [{}]", default.replace('`', ""))
        } else {
            format!(" [default: {}]", default.replace('`', ""))
        };
        let _ = writeln!(text, "  {name:width$}  {}{default}", meaning.replace('`', ""));
    }
    text.push_str("\nAll variables and configuration keys: docs/reference/configuration.md, or `qontract config reference`");
    text
}

/// The reference page, in Markdown.
pub fn page() -> String {
    let mut text = String::from(INTRODUCTION);
    text.push_str("\n| key | type | default | meaning |\n|---|---|---|---|\n");
    for Key { path, value_type: holds, default, meaning } in KEYS {
        let path = path.replace(".*", ".NAME");
        let default = if default.is_empty() { "required" } else { default };
        let _ = writeln!(text, "| `{path}` | {} | {default} | {meaning} |", holds.as_str());
    }
    text.push_str("\n## Environment variables\n\nAn empty variable counts as unset. Booleans are `true`, `1`, `yes`, `on`, or `false`, `0`, `no`, `off`.\n");
    for (read_by, title) in [
        (ReadBy::Qontract, "Commands of `qontract`, and the drop-in replacements"),
        (ReadBy::RunIntegration, "`run-integration`"),
        (ReadBy::Server, "`qontract-server`"),
        (ReadBy::Everything, "Conventions of the operating system and of other tools"),
    ] {
        let _ = write!(text, "\n### {title}\n\n| variable | type | default | meaning |\n|---|---|---|---|\n");
        for Variable { name, value_type: holds, default, meaning, .. } in
            VARIABLES.iter().filter(|one| one.read_by == read_by)
        {
            let names: Vec<String> = name.split(", ").map(|name| format!("`{name}`")).collect();
            let default = if default.is_empty() { "–" } else { default };
            let _ = writeln!(text, "| {} | {holds} | {default} | {meaning} |", names.join(", "));
        }
    }
    text
}

const INTRODUCTION: &str = "# Configuration reference

<!-- Generated by `cargo xtask generate` from crates/config/src/keys.rs and crates/config/src/environment.rs. -->

`qontract config init` writes a template. `qontract config check` checks the file, the tools, the data, the programs of `[integrations.*]`, and access to every target system. `qontract config reference` prints this page.

## Configuration file

The file is in TOML. The first of these that is named or exists is read:

1. `--config FILE`;
2. `$QONTRACT_CONFIG`;
3. `./qontract.toml`, unless the working directory is inside a data repo or a Git work tree, or the file belongs to neither the user nor the owner of the directory: data and other users must not name programs to run;
4. `$XDG_CONFIG_HOME/qontract/config.toml` (`~/.config/qontract/config.toml`).

`qontract up` and the drop-in replacements (`qontract peer …`, `qontract-reconcile`, `run-integration`) do not search 3 and 4; `run-integration` also reads `$CONFIG`.

Paths are relative to the configuration file. An unknown key is an error. A table whose name is similar to one below is also an error, if it is empty or has one of that table's keys. Every other table holds secrets: without `[vault]`, `{path: creds/shop, field: token}` is the key `token` of the table `[creds.shop]`. A cluster in `[kubernetes.clusters]` that is not in the data causes a warning. `[kubernetes]` and `[vault]` may also be written as `[targets.kubernetes]` and `[targets.vault]`.

With a missing or invalid configuration, a command exits with code 2; `run-integration` retries, or with `RUN_ONCE` exits with code 1.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_the_variables_of_one_program() {
        let text = help(ReadBy::RunIntegration);
        assert!(
            text.contains("\n  SLEEP_DURATION_SECS     time between two runs [default: 600]\n"),
            "{text}"
        );
        assert!(!text.contains("LOAD_METHOD"));
        assert!(help(ReadBy::Server).contains("LOAD_METHOD"));
    }

    #[test]
    fn the_stall_timeout_is_at_least_two_seconds() {
        assert_eq!(parse_stall_timeout(None).ok().flatten(), None);
        assert_eq!(parse_stall_timeout(Some("2")).ok().flatten(), Some(Duration::from_secs(2)));
        for wrong in ["1", "0", "-5", "soon"] {
            assert!(parse_stall_timeout(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_duration_of_leases_is_limited() {
        let seconds = |text| parse_lease_duration(text).ok().map(|duration| duration.as_secs());
        assert_eq!(seconds(None), Some(60));
        assert_eq!([seconds(Some("5")), seconds(Some("600"))], [Some(5), Some(600)]);
        for wrong in ["4", "601", "-5", "soon"] {
            assert_eq!(seconds(Some(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn the_page_has_every_key_and_every_variable() {
        let page = page();
        for key in KEYS {
            assert!(page.contains(&format!("| `{}` |", key.path.replace(".*", ".NAME"))), "{}", key.path);
        }
        for name in VARIABLES.iter().flat_map(|variable| variable.name.split(", ")) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
