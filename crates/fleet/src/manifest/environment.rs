//! The environment variables of an integration.

use serde_json::{Value, json};

use super::{PodSettings, Workload, WorkloadKind, fluentd, pod};
use crate::model::ExtraEnv;

/// The parameters that an integration gets if it needs the settings of its environment.
const ENVIRONMENT_PREFIXES: [&str; 5] =
    ["IMAGE", "BUSYBOX", "FLUENTD", "CLOUDWATCH", "INTERNAL_CERTIFICATES"];

/// The name of the integration that deploys the others.
const MANAGER: &str = "integrations-manager";

/// Environment variables. A later variable replaces an earlier one of the same name.
#[derive(Default)]
struct Variables {
    entries: Vec<Value>,
}

impl Variables {
    fn add(&mut self, entry: Value) {
        match self.entries.iter_mut().find(|other| other["name"] == entry["name"]) {
            Some(other) => *other = entry,
            None => self.entries.push(entry),
        }
    }

    fn value(&mut self, name: &str, value: impl Into<String>) {
        self.add(json!({"name": name, "value": value.into()}));
    }

    /// A key of a Secret, which the pod requires.
    fn secret(&mut self, name: &str, secret: &str, key: &str) {
        self.add(json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}));
    }

    /// A key of a Secret that may be missing.
    fn optional_secret(&mut self, name: &str, secret: &str, key: &str) {
        let reference = json!({"name": secret, "key": key, "optional": true});
        self.add(json!({"name": name, "valueFrom": {"secretKeyRef": reference}}));
    }

    /// A key of the ConfigMap of the platform that may be missing.
    fn setting(&mut self, name: &str) {
        let reference = json!({"name": "app-interface", "key": name, "optional": true});
        self.add(json!({"name": name, "valueFrom": {"configMapKeyRef": reference}}));
    }
}

/// The environment variables of an integration.
pub(super) fn environment(workload: &Workload, settings: &PodSettings) -> Vec<Value> {
    let mut variables = Variables::default();
    add_shard(&mut variables, workload);
    add_run(&mut variables, workload, settings);
    add_services(&mut variables, workload, settings);
    if workload.spec.environment_aware == Some(true) {
        add_environment(&mut variables, settings);
    }
    if workload.integration == MANAGER {
        for (name, value) in &settings.manager {
            variables.value(name, value);
        }
    }
    for (name, value) in &workload.variables {
        variables.value(name, value);
    }
    for extra in workload.spec.extra_env.iter().flatten() {
        match extra {
            ExtraEnv { secret_name: Some(secret), secret_key: Some(key), .. } => {
                variables.secret(key, secret, key);
            }
            ExtraEnv { name: Some(name), value, .. } => {
                variables.value(name, value.as_deref().unwrap_or_default());
            }
            ExtraEnv { .. } => {}
        }
    }
    variables.entries
}

fn add_shard(variables: &mut Variables, workload: &Workload) {
    let shard = &workload.shard;
    if !shard.shard_id.is_empty() {
        variables.value("SHARDS", &shard.shards);
        variables.value("SHARD_ID", &shard.shard_id);
    }
    if !shard.shard_key.is_empty() {
        variables.value("SHARD_KEY", &shard.shard_key);
    }
}

/// The variables that determine what is run, and when.
fn add_run(variables: &mut Variables, workload: &Workload, settings: &PodSettings) {
    let (spec, parameters) = (&workload.spec, &settings.parameters);
    variables.value("DRY_RUN", parameters.text_or("DRY_RUN", "--dry-run"));
    if workload.integration == MANAGER {
        variables.value("MANAGER_DRY_RUN", parameters.text_or("MANAGER_DRY_RUN", "--dry-run"));
    }
    if let Some(command) = &spec.command {
        variables.value("COMMAND_NAME", command);
    }
    variables.value("INTEGRATION_NAME", &workload.integration);
    variables.value("INTEGRATION_EXTRA_ARGS", &workload.shard.extra_args);
    match workload.kind {
        WorkloadKind::CronJob => variables.value("RUN_ONCE", "true"),
        WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
            let prefix = workload.integration.to_uppercase().replace('-', "_");
            let own = spec.sleep_duration_secs.as_ref().map(|seconds| {
                parameters.text(&format!("{prefix}_SLEEP_DURATION_SECS")).unwrap_or_else(|| seconds.clone())
            });
            let shared = || parameters.text_or("SLEEP_DURATION_SECS", "300");
            variables.value("SLEEP_DURATION_SECS", own.unwrap_or_else(shared));
        }
    }
    if let Some(logs) = &spec.logs {
        variables.value("LOG_FILE", parameters.text_or("LOG_FILE", fluentd::LOG_FILE));
        if logs.google_chat == Some(true) || logs.slack_error_filter == Some(true) {
            // Errors are recognised by this prefix.
            variables.value("PREFIX_LOG_LEVEL", "true");
        }
    }
}

/// The variables for other services.
fn add_services(variables: &mut Variables, workload: &Workload, settings: &PodSettings) {
    let (spec, parameters) = (&workload.spec, &settings.parameters);
    variables.setting("GITHUB_API");
    variables.setting("SENTRY_DSN");
    if spec.disable_unleash != Some(true) {
        variables.optional_secret("UNLEASH_API_URL", "unleash", "API_URL");
        variables.optional_secret("UNLEASH_CLIENT_ACCESS_TOKEN", "unleash", "CLIENT_ACCESS_TOKEN");
    }
    if spec.state == Some(true) {
        variables.secret("APP_INTERFACE_STATE_BUCKET", "app-interface", "aws.s3.bucket");
        let account = parameters.text_or("APP_INTERFACE_STATE_BUCKET_ACCOUNT", "app-sre");
        variables.value("APP_INTERFACE_STATE_BUCKET_ACCOUNT", account);
        variables.value("AWS_CONFIG_FILE", "/aws/config");
    }
    if spec.dashdotdb == Some(true) {
        variables.secret("DASHDOTDB_SECRET", "dashdotdb", "AUTH_VAULT_PATH");
    }
    if spec.enable_pushgateway == Some(true) {
        let secret = parameters.text_or("PUSHGATEWAY_SECRET", "pushgateway");
        variables.value("PUSHGATEWAY_ENABLED", "true");
        variables.secret("PUSHGATEWAY_URL", &secret, "url");
        variables.secret("PUSHGATEWAY_USERNAME", &secret, "username");
        variables.secret("PUSHGATEWAY_PASSWORD", &secret, "password");
    }
    for (name, default) in [
        ("SLOW_OC_RECONCILE_THRESHOLD", "600"),
        ("LOG_SLOW_OC_RECONCILE", "false"),
        ("USE_NATIVE_CLIENT", ""),
    ] {
        variables.value(name, parameters.text_or(name, default));
    }
    variables.value("KUBE_SA_TOKEN_PATH", pod::TOKEN_PATH);
}

/// The name and the parameters of the environment.
fn add_environment(variables: &mut Variables, settings: &PodSettings) {
    variables.value("ENVIRONMENT_NAME", settings.environment.as_deref().unwrap_or_default());
    let is_passed = |name: &str| ENVIRONMENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    for name in settings.parameters.values.keys().filter(|name| is_passed(name)) {
        variables.value(name, settings.parameters.text_or(name, ""));
    }
    if let Some(tag) = &settings.tag {
        variables.value("IMAGE_TAG", tag);
    }
}
