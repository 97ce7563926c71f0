//! Contract of every cluster: one suite for the sandbox and a real API server, and tests that concern only
//! one of them.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod fixture;
mod kinds;
mod objects;
mod ownership;
mod real;
mod residue;
mod sandbox;
mod scripted;
mod writes;

/// Runs each function of the suite as a test of both.
macro_rules! contract {
    ($($part:ident: $($name:ident),+;)+) => {
        mod on_the_sandbox {
            $($(
                #[tokio::test]
                async fn $name() {
                    crate::$part::$name(&crate::fixture::ContractFixture::sandbox().await).await;
                }
            )+)+
        }

        mod on_a_real_cluster {
            $($(
                #[tokio::test]
                #[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
                async fn $name() {
                    let fixture = crate::fixture::ContractFixture::real_cluster().await;
                    crate::$part::$name(&fixture).await;
                    fixture.clean().await;
                }
            )+)+
        }
    };
}

contract! {
    objects:
        created_objects_are_listed_and_removed_ones_are_not,
        writes_have_preconditions,
        a_missing_namespace_is_empty_and_rejects_writes,
        cluster_scoped_objects_have_no_namespace,
        lists_of_several_pages_are_complete;
    ownership:
        undeclared_fields_are_removed_and_fields_of_others_stay,
        fields_that_we_created_are_ours,
        fields_of_another_manager_are_not_taken,
        client_side_applied_fields_are_taken_over,
        manual_changes_of_declared_fields_are_reverted,
        no_manager_is_overruled_if_another_one_conflicts,
        undeclared_string_data_is_removed,
        a_preview_equals_the_written_keys,
        a_preview_equals_the_written_lists,
        a_preview_equals_the_written_selectors,
        a_preview_equals_the_written_untyped_maps,
        server_defaults_have_no_owner,
        server_defaults_of_another_tool_stay;
    kinds:
        an_unserved_kind_or_version_is_an_error,
        custom_kinds_are_served_after_their_definition,
        an_ambiguous_kind_is_an_error;
    residue:
        a_removed_probe_leaves_no_defaults,
        the_source_of_a_variable_changes_and_reverts,
        a_probe_changes_its_handler,
        a_volume_changes_its_source,
        a_strategy_changes_without_its_parameters,
        a_source_of_client_side_apply_changes,
        a_probe_of_client_side_apply_is_removed,
        fields_of_others_in_a_removed_field_stay,
        a_conflict_prevents_a_rewrite,
        fields_that_exclude_declared_ones_are_removed,
        the_other_limit_of_a_disruption_budget_is_removed,
        a_field_of_a_program_that_excludes_a_declared_one_is_a_conflict,
        a_rewrite_has_a_precondition_and_a_rehearsal;
    writes:
        immutable_fields_are_reported_and_can_be_replaced,
        a_workload_restarts_once_for_a_cause,
        a_rehearsal_predicts_the_result_and_writes_nothing,
        an_error_about_a_secret_has_no_values;
}
