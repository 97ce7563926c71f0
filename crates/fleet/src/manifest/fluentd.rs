//! The sidecar that ships the log of an integration with fluentd.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use super::{PodSettings, Workload, WorkloadKind, pod};
use crate::model::{Logs, ResourceQuantities, Resources};

/// The directory of the log.
pub(super) const DIRECTORY: &str = "/fluentd/log/";
/// Default path of the log.
pub(super) const LOG_FILE: &str = "/fluentd/log/integration.log";

/// Log lines that are not shipped.
const EXCLUDED: [&str; 3] =
    ["using gql endpoint", "request_id: ", "Certificate did not match expected hostname"];

/// The end of the name of the file that a scheduled run creates when it ends.
const END_MARK: &str = ".end";

/// The sidecar; `None` if the log is not shipped.
pub(super) fn sidecar(workload: &Workload, settings: &PodSettings) -> Option<Value> {
    let logs = workload.spec.logs?;
    let text_or = |name: &str, default: &str| settings.parameters.text_or(name, default);
    let infix = "_FLUENTD";
    let own = workload.spec.fluentd_resources.as_ref();
    let resources = settings.resources(&workload.integration, own, infix).unwrap_or_else(default_resources);
    let command = (workload.kind == WorkloadKind::CronJob).then(job_command);
    Some(json!({
        "name": "fluentd",
        "image": settings.sidecar_image("FLUENTD_IMAGE", "quay.io/app-sre/fluentd"),
        "imagePullPolicy": text_or("FLUENTD_IMAGE_PULL_POLICY", "Always"),
        "command": command,
        "env": environment(logs, settings),
        "resources": resources,
        "securityContext": pod::security_context(),
        "volumeMounts": [
            {"name": "logs", "mountPath": DIRECTORY},
            {"name": "fluentd-config", "mountPath": "/fluentd/etc/", "readOnly": true},
            {"name": "tmp-dir", "mountPath": "/tmp"},
        ],
    }))
}

/// The command of the sidecar of a job. A job is complete when all of its containers have ended, so the sidecar ends
/// after the integration: it ships the rest of the log first.
fn job_command() -> Value {
    let script = format!(
        "fluentd -c /fluentd/etc/fluent.conf & while ! test -e \"$LOG_FILE{END_MARK}\"; do sleep 1; done; \
         sleep 15; kill -TERM $!; wait $!; exit 0"
    );
    json!(["/bin/sh", "-c", script])
}

fn default_resources() -> Resources {
    let quantities = |cpu: &str, memory: &str| {
        Some(ResourceQuantities { cpu: Some(cpu.to_owned()), memory: Some(memory.to_owned()) })
    };
    let limits = ResourceQuantities { cpu: None, memory: Some("120Mi".to_owned()) };
    Resources { requests: quantities("15m", "30Mi"), limits: Some(limits) }
}

/// Secrets are read from the environment when fluentd reads its configuration.
fn environment(logs: Logs, settings: &PodSettings) -> Vec<Value> {
    let cloudwatch = &settings.parameters.text_or("CLOUDWATCH_SECRET", "app-interface-cloudwatch");
    let secret = |name: &str, secret: &str, key: &str| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}});
    let mut variables = vec![
        json!({"name": "LOG_FILE", "value": settings.parameters.text_or("LOG_FILE", LOG_FILE)}),
        secret("AWS_REGION", cloudwatch, "aws_region"),
        secret("AWS_ACCESS_KEY_ID", cloudwatch, "aws_access_key_id"),
        secret("AWS_SECRET_ACCESS_KEY", cloudwatch, "aws_secret_access_key"),
        secret("LOG_GROUP_NAME", cloudwatch, "log_group_name"),
    ];
    if logs.slack == Some(true) || logs.slack_error_filter == Some(true) {
        variables.push(secret("SLACK_WEBHOOK_URL", "app-interface", "slack.webhook_url"));
    }
    if logs.gov_slack == Some(true) {
        variables.push(secret("GOV_SLACK_WEBHOOK_URL", "app-interface", "gov_slack.webhook_url"));
    }
    if logs.google_chat == Some(true) {
        variables.push(secret("GOOGLE_CHAT_WEBHOOK_URL", "app-interface", "google_chat.webhook_url"));
    }
    variables
}

/// The name of the ConfigMap with the configuration; `None` if the log is not shipped.
pub(super) fn config_map_name(workload: &Workload) -> Option<String> {
    workload.spec.logs.map(|_| format!("{}-fluentd", workload.name))
}

/// The ConfigMap with the configuration; `None` if the log is not shipped.
pub(super) fn config_map(workload: &Workload, settings: &PodSettings) -> Option<Value> {
    let name = config_map_name(workload)?;
    let logs = workload.spec.logs?;
    let metadata = json!({"name": name, "labels": workload.labels()});
    let data = json!({"fluent.conf": configuration(workload, logs, settings)});
    Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
}

/// The volumes of the sidecar.
pub(super) fn volumes(workload: &Workload) -> Vec<Value> {
    let Some(name) = config_map_name(workload) else { return Vec::new() };
    vec![
        json!({"name": "logs", "emptyDir": {}}),
        json!({"name": "fluentd-config", "configMap": {"name": name}}),
    ]
}

/// A value in the configuration of fluentd.
enum ConfigValue {
    /// A string.
    Text(String),
    /// A variable of the environment.
    Variable(&'static str),
}

impl fmt::Display for ConfigValue {
    /// Writes the value. **Invariant:** a string from the data is only a string: in double quotes, fluentd would
    /// execute it as a program (`strings_of_the_data_are_never_executed`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "\"#{{ENV['{name}']}}\""),
            Self::Text(text) => {
                let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
                write!(f, "'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
            }
        }
    }
}

impl From<String> for ConfigValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ConfigValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A destination of log lines.
struct Store {
    plugin: &'static str,
    settings: Vec<(&'static str, ConfigValue)>,
}

impl Store {
    fn write(&self, text: &mut String) {
        let _ = write!(text, "  <store>\n    @type {}\n", self.plugin);
        for (name, value) in &self.settings {
            let _ = writeln!(text, "    {name} {value}");
        }
        text.push_str("  </store>\n");
    }
}

/// A chat of Slack.
fn slack(webhook: &'static str, channel: String, workload: &Workload, settings: &PodSettings) -> Store {
    let text_or = |name: &str, default: &str| settings.parameters.text_or(name, default).into();
    Store {
        plugin: "slack",
        settings: vec![
            ("webhook_url", ConfigValue::Variable(webhook)),
            ("channel", channel.into()),
            ("icon_emoji", text_or("SLACK_ICON_EMOJI", ":robot_face:")),
            ("username", text_or("SLACK_USERNAME", "sd-app-sre-bot")),
            ("flush_interval", "10s".into()),
            ("message", format!("```[{}] %s```", workload.integration).into()),
        ],
    }
}

/// The destinations of all lines.
fn stores(workload: &Workload, logs: Logs, settings: &PodSettings) -> Vec<Store> {
    let text_or = |name: &str, default: &str| settings.parameters.text_or(name, default);
    let channel = || {
        if workload.spec.trigger == Some(true) {
            text_or("SLACK_CHANNEL_TRIGGER", "sd-app-sre-triggers-stage")
        } else {
            text_or("SLACK_CHANNEL", "sd-app-sre-reconcile-stage")
        }
    };
    let mut stores = vec![Store {
        plugin: "cloudwatch_logs",
        settings: vec![
            ("log_group_name", ConfigValue::Variable("LOG_GROUP_NAME")),
            ("log_stream_name", workload.integration.as_str().into()),
            ("auto_create_stream", "true".into()),
        ],
    }];
    if logs.slack == Some(true) {
        stores.push(slack("SLACK_WEBHOOK_URL", channel(), workload, settings));
    }
    if logs.gov_slack == Some(true) {
        stores.push(slack("GOV_SLACK_WEBHOOK_URL", channel(), workload, settings));
    }
    stores
}

/// The destinations of errors.
fn error_stores(workload: &Workload, logs: Logs, settings: &PodSettings) -> Vec<Store> {
    let mut stores = Vec::new();
    if logs.slack_error_filter == Some(true) {
        let channel =
            settings.parameters.text_or("SLACK_CHANNEL_ERRORS", "sd-app-sre-reconcile-errors-stage");
        stores.push(slack("SLACK_WEBHOOK_URL", channel, workload, settings));
    }
    if logs.google_chat == Some(true) {
        let endpoint = ConfigValue::Variable("GOOGLE_CHAT_WEBHOOK_URL");
        let settings = vec![("endpoint", endpoint), ("content_type", "application/json".into())];
        stores.push(Store { plugin: "http", settings });
    }
    stores
}

/// The configuration of fluentd: all lines go to `CloudWatch` and to the chat of the integration, errors also to the
/// destinations of errors.
fn configuration(workload: &Workload, logs: Logs, settings: &PodSettings) -> String {
    let log = settings.parameters.text_or("LOG_FILE", LOG_FILE);
    let (path, position) = (ConfigValue::from(log.as_str()), ConfigValue::from(format!("{log}.pos")));
    let mut text = format!(
        "<source>\n  @type tail\n  path {path}\n  pos_file {position}\n  tag integration\n  \
         read_from_head true\n  <parse>\n    @type none\n  </parse>\n</source>\n"
    );
    for pattern in EXCLUDED {
        let _ = write!(
            text,
            "<filter integration>\n  @type grep\n  <exclude>\n    key message\n    pattern /{pattern}/\n  \
             </exclude>\n</filter>\n"
        );
    }
    let (mut stores, errors) = (stores(workload, logs, settings), error_stores(workload, logs, settings));
    if !errors.is_empty() {
        stores.push(Store { plugin: "relabel", settings: vec![("@label", "@errors".into())] });
    }
    write_match(&mut text, &stores);
    if !errors.is_empty() {
        text.push_str(
            "<label @errors>\n<filter integration>\n  @type grep\n  <regexp>\n    key message\n    pattern \
             /^\\[(ERROR|CRITICAL)\\]/\n  </regexp>\n</filter>\n",
        );
        write_match(&mut text, &errors);
        text.push_str("</label>\n");
    }
    text
}

fn write_match(text: &mut String, stores: &[Store]) {
    text.push_str("<match integration>\n  @type copy\n");
    for store in stores {
        store.write(text);
    }
    text.push_str("</match>\n");
}

#[cfg(test)]
mod tests {
    use super::ConfigValue;

    #[test]
    fn strings_of_the_data_are_never_executed() {
        let check = |text: &str, expect: &str| assert_eq!(ConfigValue::from(text).to_string(), expect);
        check("\"#{`id`}\"", "'\"#{`id`}\"'");
        check("a'\n</store>\n<match **>", r"'a\'</store><match **>'");
        check(r"a\", r"'a\\'");
    }
}
