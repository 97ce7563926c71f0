//! Checks the settings of pods for values that Kubernetes refuses.

use crate::finding::Finding;
use crate::manifest::WorkloadKind;
use crate::model::{ExtraEnv, IntegrationSpec};

/// Findings about the settings of the pods of a deployment.
pub fn check_spec(spec: &IntegrationSpec) -> Vec<Finding> {
    let mut findings = Vec::new();
    let kind = WorkloadKind::of(spec);
    if kind == WorkloadKind::CronJob && spec.restart_policy.as_deref() == Some("Always") {
        let text = "a scheduled integration cannot have the restart policy `Always`";
        findings.push(Finding::error("/spec/restartPolicy", text).hint("write `OnFailure` or `Never`"));
    }
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|seconds| seconds > 0);
    if let Some(seconds) = spec.sleep_duration_secs.as_deref().filter(|seconds| !is_number(seconds)) {
        let text = format!("`{seconds}` is not a number of seconds");
        findings.push(Finding::error("/spec/sleepDurationSecs", text));
    }
    for (index, extra) in spec.extra_env.iter().flatten().enumerate() {
        let ExtraEnv { secret_name, secret_key, name, .. } = extra;
        let variable = if secret_name.is_some() { secret_key } else { name };
        let variable = variable.as_deref().unwrap_or_default();
        if !is_variable_name(variable) {
            let text = format!("`{variable}` is not a valid name of an environment variable");
            findings.push(Finding::error(format!("/spec/extraEnv/{index}"), text));
        }
    }
    findings
}

/// Whether Kubernetes accepts the name of an environment variable.
fn is_variable_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::check_spec;
    use crate::model::{ExtraEnv, IntegrationSpec};

    #[track_caller]
    fn check(spec: &IntegrationSpec, expect: &[&str]) {
        let findings = check_spec(spec);
        assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn settings_that_kubernetes_refuses_are_errors() {
        let text = |text: &str| Some(text.to_owned());
        let cron = IntegrationSpec { cron: text("0 * * * *"), ..IntegrationSpec::default() };
        check(&cron, &[]);
        let expect = "a scheduled integration cannot have the restart policy `Always`";
        check(&IntegrationSpec { restart_policy: text("Always"), ..cron }, &[expect]);
        let slow = IntegrationSpec { sleep_duration_secs: text("soon"), ..IntegrationSpec::default() };
        check(&slow, &["`soon` is not a number of seconds"]);
        let named = |name: &str| ExtraEnv { name: text(name), value: text("x"), ..ExtraEnv::default() };
        let secret =
            |key: &str| ExtraEnv { secret_name: text("s"), secret_key: text(key), ..ExtraEnv::default() };
        let extra_env = Some(vec![named("A_b.c-1"), named("1a"), secret("a b"), secret("K")]);
        let invalid =
            ["1a", "a b"].map(|name| format!("`{name}` is not a valid name of an environment variable"));
        let invalid: Vec<&str> = invalid.iter().map(String::as_str).collect();
        check(&IntegrationSpec { extra_env, ..IntegrationSpec::default() }, &invalid);
    }
}
