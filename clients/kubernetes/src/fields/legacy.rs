//! Managers that wrote what we now declare, before there was server-side apply; the README has the table with the reasons.

use serde_json::Value;

use super::LAST_APPLIED;
use crate::{MANAGER, RESTARTER};

/// Who applies on the client's side: all that it applied is to be ours, and what we do not declare of it goes.
const APPLIED: &str = "kubectl-client-side-apply";

/// Who writes objects as a whole by other means.
const WHOLE: [&str; 6] = [
    "kubectl-create",
    "kubectl-replace",
    "before-first-apply",
    "OpenAPI-Generator",
    "Swagger-Codegen",
    "qontract-reconcile",
];

/// Who may write an object as a whole or a field of it. It is as a whole if it keeps what it applied.
const EITHER: [&str; 2] = ["kubectl", "oc"];

/// Who writes single fields by hand: what it wrote besides what we declare stays.
const BY_HAND: [&str; 1] = ["Mozilla"];

/// The beginnings of names of those who write single fields by hand: `kubectl-edit`, `kubectl-label`, `oc-patch`.
const BY_HAND_PREFIXES: [&str; 2] = ["kubectl-", "oc-"];

/// Whether the fields that this manager wrote by `Update` were applied by it; they are as Kubernetes writes them.
pub(crate) fn has_applied(manager: &str, fields: &Value) -> bool {
    let keeps = || fields["f:metadata"]["f:annotations"].get(format!("f:{LAST_APPLIED}")).is_some();
    manager == APPLIED || EITHER.contains(&manager) && keeps()
}

/// Whether this manager wrote objects as a whole, without applying them.
pub(crate) fn has_written(manager: &str) -> bool {
    WHOLE.contains(&manager)
}

/// Whether we set a field to what is declared although this manager set it to something else.
pub(crate) fn is_overruled(manager: &str) -> bool {
    manager == APPLIED
        || WHOLE.contains(&manager)
        || EITHER.contains(&manager)
        || BY_HAND.contains(&manager)
        || BY_HAND_PREFIXES.iter().any(|prefix| manager.starts_with(prefix))
}

/// Whether this is one of our own names: what it created is to be what it applied.
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
    fn who_writes_objects_as_a_whole_hands_them_over() {
        check("kubectl-client-side-apply", true, true);
        check("before-first-apply", true, true);
        check("OpenAPI-Generator", true, true);
    }

    #[test]
    fn what_is_changed_by_hand_is_put_right_and_the_rest_of_it_stays() {
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
    fn an_old_tool_that_keeps_what_it_applied_hands_it_over() {
        let keeps = json!({"f:metadata": {"f:annotations": {".": {}, format!("f:{LAST_APPLIED}"): {}}}});
        assert!(has_applied("oc", &keeps) && has_applied("kubectl", &keeps));
        assert!(!has_applied("helm", &keeps));
    }
}
