//! Checks quotas and limit ranges: names in a quota must be unique, and amounts must be quantities.

use std::collections::HashMap;

use qontract_bundle::Value;
use qontract_diagnostics::{Code, code};
use qontract_objects::is_quantity;

/// A function that reports a finding with its code, message, JSON pointer and hint.
pub type Report<'r> = dyn FnMut(Code, String, &str, &str) + 'r;

/// Checks a quota: two parts with the same name must be equal, and all amounts must be quantities.
pub fn check(quota: &Value, report: &mut Report<'_>) {
    let mut first: HashMap<&str, &Value> = HashMap::new();
    for (index, part) in items(quota, "quotas") {
        let pointer = format!("/quotas/{index}");
        if let Some(name) = part.get("name").and_then(Value::as_str)
            && first.insert(name, part).is_some_and(|other| other != part)
        {
            let message = format!("the quota declares `{name}` more than once");
            report(
                code::DUPLICATE_OBJECT,
                message,
                &format!("{pointer}/name"),
                "keep one of the two, or correct a name",
            );
        }
        let Some(resources) = part.get("resources") else { continue };
        for field in ["limits", "requests"] {
            check_amounts(resources.get(field), &format!("{pointer}/resources/{field}"), report);
        }
    }
}

/// Checks a limit range: all amounts must be quantities.
pub fn check_limit_range(range: &Value, report: &mut Report<'_>) {
    for (index, limit) in items(range, "limits") {
        for field in ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"] {
            check_amounts(limit.get(field), &format!("/limits/{index}/{field}"), report);
        }
    }
}

fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value.get(field).and_then(Value::as_list).into_iter().flatten().enumerate()
}

/// Checks those amounts that are strings, because the check against the schema reports values of other types.
fn check_amounts(amounts: Option<&Value>, pointer: &str, report: &mut Report<'_>) {
    for (name, amount) in amounts.and_then(Value::as_map).into_iter().flat_map(qontract_bundle::Map::iter) {
        if let Some(text) = amount.as_str().filter(|text| !is_quantity(text)) {
            let (name, message) = (name.as_str(), format!("`{text}` is not a quantity"));
            let hint = "write it as in `500m`, `2` or `8Gi`";
            report(code::OBJECT_VALUE, message, &format!("{pointer}/{name}"), hint);
        }
    }
}
