//! Reports values that no cluster or run accepts: names and labels of namespaces, expiration dates of roles, and
//! values of quotas and limit ranges.
//!
//! `plan` and runs report such values for each shard; this check uses the same functions and reports the values
//! without a target system.

use qontract_bundle::{Bundle, Layout, Map, Value};
use qontract_diagnostics::{Code, Diagnostic, code};
use qontract_objects::{check_label, check_namespace_name, expiration_date};

use super::quotas;

/// Errors in the values of a bundle.
pub fn check(bundle: &Bundle, layout: &Layout) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for file in bundle.datafiles() {
        let value = &file.document.value;
        let mut report = |code: Code, message: String, pointer: &str, hint: &str| {
            let finding = Diagnostic::new(code, message).in_file(layout.datafile(&file.path));
            findings.push(finding.at_pointer(pointer).hint(hint));
        };
        if file.document.is_of("/openshift/namespace-1.yml") {
            let name = value.get("name").and_then(Value::as_str);
            if let Some(Err(message)) = name.map(check_namespace_name) {
                report(code::NAMESPACE_NAME, message, "/name", "use lowercase letters, digits and `-`");
            }
            for (name, label) in value.get("labels").and_then(Value::as_map).into_iter().flat_map(Map::iter) {
                // A value of a different type is reported by the check against the schema.
                let checked = label.as_str().map_or(Ok(()), |label| check_label(name.as_str(), label));
                if let Err(message) = checked {
                    let pointer = format!("/labels/{}", name.as_str().replace('~', "~0").replace('/', "~1"));
                    report(code::NAMESPACE_LABEL, message, &pointer, "use letters, digits, `-`, `_` and `.`");
                }
            }
        } else if file.document.is_of("/access/role-1.yml")
            && let Some(Err(message)) =
                value.get("expirationDate").and_then(Value::as_str).map(expiration_date)
        {
            report(code::EXPIRATION_DATE, message, "/expirationDate", "write it as in `2027-01-31`");
        } else if file.document.is_of("/openshift/quota-1.yml") {
            quotas::check(value, &mut report);
        } else if file.document.is_of("/openshift/limitrange-1.yml") {
            quotas::check_limit_range(value, &mut report);
        }
    }
    findings
}
