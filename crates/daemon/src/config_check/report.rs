//! The results of the checks, as text and as JSON.

use qontract_diagnostics::{pluralize, sanitize};
use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// The check passed.
    Ok,
    /// The check passed, but the setting may be a mistake.
    Warning,
    /// The check failed.
    Failed,
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One check with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The subject of the check.
    #[serde(rename = "check")]
    pub name: String,
    /// The result of the check.
    pub status: CheckStatus,
    /// The details of the result.
    pub detail: String,
    /// A hint on how to fix the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The results of all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    checks: Vec<CheckResult>,
}

impl CheckReport {
    /// Adds a check that succeeded.
    pub fn ok(&mut self, check: &str, detail: String) {
        self.checks.push(CheckResult { name: check.to_owned(), status: CheckStatus::Ok, detail, hint: None });
    }

    /// Adds a check with a warning.
    pub fn warning(&mut self, check: &str, detail: String, hint: &str) {
        self.push(check, CheckStatus::Warning, detail, hint);
    }

    /// Adds a check that failed.
    pub fn failed(&mut self, check: &str, detail: String, hint: &str) {
        self.push(check, CheckStatus::Failed, detail, hint);
    }

    fn push(&mut self, check: &str, status: CheckStatus, detail: String, hint: &str) {
        self.checks.push(CheckResult { name: check.to_owned(), status, detail, hint: Some(hint.to_owned()) });
    }

    /// Adds the checks of another report.
    pub fn extend(&mut self, other: Self) {
        self.checks.extend(other.checks);
    }

    /// Whether a check failed.
    pub fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| check.status == CheckStatus::Failed)
    }

    /// The results as a table for people, with a summary.
    pub fn text(&self) -> String {
        let width =
            self.checks.iter().map(|check| sanitize(&check.name).chars().count()).max().unwrap_or_default();
        let mut text = String::new();
        for CheckResult { name, status, detail, hint } in &self.checks {
            let (status, check) = (status.as_str(), sanitize(name));
            text.push_str(&format!("{status:<8} {check:<width$}  {}\n", sanitize(detail)));
            if let Some(hint) = hint {
                text.push_str(&format!("{:8} {:width$}  hint: {}\n", "", "", sanitize(hint)));
            }
        }
        let count = |status| self.checks.iter().filter(|check| check.status == status).count();
        let (ok, warnings, failed) =
            (count(CheckStatus::Ok), count(CheckStatus::Warning), count(CheckStatus::Failed));
        text.push_str(&format!("{ok} ok, {}, {failed} failed\n", pluralize(warnings, "warning")));
        text
    }

    /// The results as a JSON object.
    pub fn json(&self) -> serde_json::Result<Vec<u8>> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_table_with_hints_and_a_summary() {
        let mut report = CheckReport::default();
        report.ok("git", "commit abc".to_owned());
        assert!(!report.has_failed());
        report.warning("promtool", "not found".to_owned(), "install it");
        assert!(!report.has_failed());
        report.failed("cluster c1", "connection refused".to_owned(), "check it");
        assert!(report.has_failed());
        let expect = "\
            ok       git         commit abc\n\
            warning  promtool    not found\n                     hint: install it\n\
            failed   cluster c1  connection refused\n                     hint: check it\n\
            1 ok, 1 warning, 1 failed\n";
        assert_eq!(report.text(), expect);
        let json: serde_json::Value = serde_json::from_slice(&report.json().unwrap()).unwrap();
        assert_eq!(json["checks"][2]["status"], "failed");
        assert_eq!(json["checks"][0].get("hint"), None);
    }
}
