//! Field managers that wrote declared fields before server-side apply was used; the README has the table with
//! the reasons.

use serde_json::Value;

use super::LAST_APPLIED;
use crate::{MANAGER, RESTARTER};

/// The manager of client-side apply: all of its fields become ours, and those that we do not declare are
/// removed.
const APPLIED: &str = "kubectl-client-side-apply";

/// Managers that write whole objects by other means.
const WHOLE: [&str; 6] = [
    "kubectl-create",
    "kubectl-replace",
    "before-first-apply",
    "OpenAPI-Generator",
    "Swagger-Codegen",
    "qontract-reconcile",
];

/// Managers that write whole objects or single fields. They wrote the whole object if they own the
/// last-applied annotation.
const EITHER: [&str; 2] = ["kubectl", "oc"];

/// Managers of manual changes to single fields: undeclared fields stay.
const BY_HAND: [&str; 1] = ["Mozilla"];

/// Name prefixes of managers of manual changes: `kubectl-edit`, `kubectl-label`, `oc-patch`.
const BY_HAND_PREFIXES: [&str; 2] = ["kubectl-", "oc-"];

/// Whether this manager applied the fields that it owns by `Update`; `fields` is `fieldsV1`.
pub(crate) fn has_applied(manager: &str, fields: &Value) -> bool {
    let keeps = || fields["f:metadata"]["f:annotations"].get(format!("f:{LAST_APPLIED}")).is_some();
    manager == APPLIED || EITHER.contains(&manager) && keeps()
}

/// Whether this manager writes whole objects without applying them.
pub(crate) fn has_written(manager: &str) -> bool {
    WHOLE.contains(&manager)
}

/// Whether declared values overrule the values of this manager.
pub(crate) fn is_overruled(manager: &str) -> bool {
    manager == APPLIED
        || WHOLE.contains(&manager)
        || EITHER.contains(&manager)
        || BY_HAND.contains(&manager)
        || BY_HAND_PREFIXES.iter().any(|prefix| manager.starts_with(prefix))
}

/// Whether this is one of our own names: fields that it created are to become fields that it applied.
pub(crate) fn is_ours(manager: &str) -> bool {
    let rest = manager.strip_prefix(MANAGER);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) && manager != RESTARTER
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LAST_APPLIED, has_applied, has_written, is_ours, is_overruled};

    fn check(manager: &str, moved: bool, overruled: bool) {
        let moves = has_applied(manager, &Value::Null) || has_written(manager);
        assert_eq!(moves, moved, "{manager}");
        assert_eq!(is_overruled(manager), overruled, "{manager}");
    }

    #[test]
    fn fields_of_whole_object_writers_are_moved() {
        check("kubectl-client-side-apply", true, true);
        check("before-first-apply", true, true);
        check("OpenAPI-Generator", true, true);
    }

    #[test]
    fn manual_changes_are_overruled_and_not_moved() {
        for manager in ["kubectl-edit", "kubectl-label", "kubectl-rollout", "kubectl", "oc", "Mozilla"] {
            check(manager, false, true);
        }
    }

    #[test]
    fn programs_that_run_in_the_cluster_are_never_overruled() {
        for manager in
            ["kube-controller-manager", "argocd-controller", "helm", "manager", "octopus", "kubectlx"]
        {
            check(manager, false, false);
        }
        check("qontract-restart", false, false);
    }

    #[test]
    fn our_names_begin_with_our_name() {
        assert!(is_ours("qontract") && is_ours("qontract-saas"));
        assert!(!is_ours("qontract-restart") && !is_ours("qontracts") && !is_ours("helm"));
    }

    #[test]
    fn fields_of_a_tool_with_the_annotation_are_moved() {
        let keeps = json!({"f:metadata": {"f:annotations": {".": {}, format!("f:{LAST_APPLIED}"): {}}}});
        assert!(has_applied("oc", &keeps) && has_applied("kubectl", &keeps));
        assert!(!has_applied("helm", &keeps));
    }
}
