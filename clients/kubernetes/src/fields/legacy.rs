//! Field managers that wrote declared fields before server-side apply was used; the README has the table with
//! the reasons.

use serde_json::Value;

use super::LAST_APPLIED;
use crate::{MANAGER, RESTART_MANAGER};

/// The manager of client-side apply. All fields of this manager become ours, and those that we do not declare
/// are removed.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// Managers that write whole objects by other means.
const WHOLE_OBJECT_WRITERS: [&str; 6] = [
    "kubectl-create",
    "kubectl-replace",
    "before-first-apply",
    "OpenAPI-Generator",
    "Swagger-Codegen",
    "qontract-reconcile",
];

/// Managers that write whole objects or individual fields. Such a manager wrote the whole object if it owns
/// the last-applied annotation.
const AMBIGUOUS_WRITERS: [&str; 2] = ["kubectl", "oc"];

/// Managers of manual changes to individual fields. Fields of these managers that are not declared are kept.
const MANUAL_EDITORS: [&str; 1] = ["Mozilla"];

/// Name prefixes of managers of manual changes: `kubectl-edit`, `kubectl-label`, `oc-patch`.
const MANUAL_EDITOR_PREFIXES: [&str; 2] = ["kubectl-", "oc-"];

/// Whether this manager applied the fields that it owns with the operation `Update`; `fields` is `fieldsV1`.
pub(crate) fn is_client_side_apply(manager: &str, fields: &Value) -> bool {
    let keeps = || fields["f:metadata"]["f:annotations"].get(format!("f:{LAST_APPLIED}")).is_some();
    manager == CLIENT_SIDE_APPLY || AMBIGUOUS_WRITERS.contains(&manager) && keeps()
}

/// Whether this manager writes whole objects without applying them.
pub(crate) fn writes_whole_objects(manager: &str) -> bool {
    WHOLE_OBJECT_WRITERS.contains(&manager)
}

/// Whether declared values overrule the values of this manager.
pub(crate) fn is_overruled(manager: &str) -> bool {
    manager == CLIENT_SIDE_APPLY
        || WHOLE_OBJECT_WRITERS.contains(&manager)
        || AMBIGUOUS_WRITERS.contains(&manager)
        || MANUAL_EDITORS.contains(&manager)
        || MANUAL_EDITOR_PREFIXES.iter().any(|prefix| manager.starts_with(prefix))
}

/// Whether this is one of our own manager names. Fields that such a manager created become applied fields.
pub(crate) fn is_ours(manager: &str) -> bool {
    let rest = manager.strip_prefix(MANAGER);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) && manager != RESTART_MANAGER
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LAST_APPLIED, is_client_side_apply, is_ours, is_overruled, writes_whole_objects};

    fn check(manager: &str, moved: bool, overruled: bool) {
        let moves = is_client_side_apply(manager, &Value::Null) || writes_whole_objects(manager);
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
        assert!(is_client_side_apply("oc", &keeps) && is_client_side_apply("kubectl", &keeps));
        assert!(!is_client_side_apply("helm", &keeps));
    }
}
