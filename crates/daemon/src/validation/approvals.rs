//! Warns about removal approvals without effect: approvals that have expired, and approvals for an unknown
//! integration. Only a run can determine whether any other approval matches a removal.

use std::collections::BTreeSet;

use qontract_bundle::{Bundle, Layout};
use qontract_diagnostics::{Diagnostic, code, suggest};
use qontract_runtime::guard::Date;

const APPROVAL_SCHEMA: &str = "/app-interface/removal-approval-1.yml";
const INTEGRATION_SCHEMA: &str = "/app-sre/integration-1.yml";

/// Warnings about the approvals of a bundle, on `today`.
pub fn check(bundle: &Bundle, layout: &Layout, today: Date) -> Vec<Diagnostic> {
    if bundle.schema(APPROVAL_SCHEMA).is_none() {
        return Vec::new();
    }
    let approvals: Vec<_> =
        bundle.datafiles().iter().filter(|file| file.document.is_of(APPROVAL_SCHEMA)).collect();
    if approvals.is_empty() {
        return Vec::new();
    }
    let integrations = bundle.datafiles().iter().filter(|file| file.document.is_of(INTEGRATION_SCHEMA));
    let defined: BTreeSet<&str> =
        integrations.filter_map(|file| file.document.value.get("name")?.as_str()).collect();
    let mut findings = Vec::new();
    for file in approvals {
        let (value, name) = (&file.document.value, layout.datafile(&file.path));
        let text = |key: &str| value.get(key).and_then(|value| value.as_str());
        let expired = text("expiration").and_then(|last| expired(last, today));
        findings.extend(expired.map(|finding| finding.in_file(&name).at_pointer("/expiration")));
        let unknown = text("integration").and_then(|integration| unknown(integration, &defined));
        findings.extend(unknown.map(|finding| finding.in_file(&name).at_pointer("/integration")));
    }
    findings
}

fn expired(last: &str, today: Date) -> Option<Diagnostic> {
    let message = match last.parse::<Date>() {
        Ok(day) if day >= today => return None,
        Ok(_) => format!("the approval expired on {last}"),
        Err(_) => format!("the approval is never valid: `{last}` is not a date"),
    };
    let hint = "delete the file if the removals are done; `qontract approve RUN` writes a new approval";
    Some(Diagnostic::new(code::APPROVAL_EXPIRED, message).hint(hint))
}

/// A warning if the data does not define the integration. If the data defines no integrations, it is incomplete, so
/// there is no warning.
fn unknown(integration: &str, defined: &BTreeSet<&str>) -> Option<Diagnostic> {
    if defined.is_empty() || defined.contains(integration) {
        return None;
    }
    let message = format!("the approval is for `{integration}`, which the data does not define");
    let finding = Diagnostic::new(code::APPROVAL_INTEGRATION, message);
    Some(match suggest::did_you_mean(integration, defined.iter().copied()) {
        Some(hint) => finding.hint(hint),
        None => finding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_expires_after_its_last_day() {
        let check = |last: &str, expect: Option<&str>| {
            let found = expired(last, jiff::civil::date(2026, 11, 17)).map(|finding| finding.message);
            assert_eq!(found.as_deref(), expect, "{last}");
        };
        check("2026-11-18", None);
        check("2026-11-17", None);
        check("2026-11-16", Some("the approval expired on 2026-11-16"));
        check("2026-02-30", Some("the approval is never valid: `2026-02-30` is not a date"));
    }

    #[test]
    fn an_integration_that_is_not_defined_is_named_with_the_nearest_one() {
        let defined =
            BTreeSet::from(["openshift-limitranges", "openshift-resourcequotas", "openshift-routes"]);
        let check = |name: &str, expect: Option<Option<&str>>| {
            let found = unknown(name, &defined).map(|finding| finding.hint);
            let found = found.as_ref().map(Option::as_deref);
            assert_eq!(found, expect, "{name}");
        };
        check("openshift-limitranges", None);
        check("openshift-limitrange", Some(Some("did you mean `openshift-limitranges`?")));
        check("openshift-quotas", Some(Some("did you mean `openshift-resourcequotas`?")));
        check("x", Some(None));
        assert!(unknown("x", &BTreeSet::new()).is_none());
    }
}
