//! What every cluster has to do: one suite, run for the sandbox and for a real API server; and what only one of them does.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod kinds;
mod objects;
mod ownership;
mod real;
mod sandbox;
mod scripted;
mod world;
mod writes;

/// Each function of the suite as a test of both.
macro_rules! contract {
    ($($part:ident: $($name:ident),+;)+) => {
        mod on_the_sandbox {
            $($(
                #[tokio::test]
                async fn $name() {
                    crate::$part::$name(&crate::world::World::sandbox().await).await;
                }
            )+)+
        }

        mod on_a_real_cluster {
            $($(
                #[tokio::test]
                async fn $name() {
                    let world = crate::world::World::real_cluster().await;
                    crate::$part::$name(&world).await;
                    world.clean().await;
                }
            )+)+
        }
    };
}

contract! {
    objects:
        what_is_created_is_listed_and_what_is_removed_is_gone,
        writes_have_preconditions,
        a_namespace_that_is_not_there_has_nothing_and_takes_nothing,
        objects_of_the_cluster_itself_are_in_no_namespace,
        more_objects_than_a_page_has_are_listed;
    ownership:
        what_is_no_longer_declared_goes_and_what_others_set_stays,
        what_we_created_is_ours_when_we_apply,
        fields_of_another_manager_are_not_taken,
        what_was_applied_on_the_client_s_side_is_taken_over,
        what_was_changed_by_hand_is_put_right,
        nobody_is_overruled_if_somebody_else_stands_against_it,
        texts_of_secrets_go_when_they_are_not_declared,
        a_preview_is_what_a_write_makes_of_keys,
        a_preview_is_what_a_write_makes_of_lists,
        what_the_server_fills_in_has_no_owner,
        what_the_server_filled_in_for_another_tool_stays;
    kinds:
        a_kind_or_version_that_is_not_served_is_told,
        kinds_come_with_their_definitions,
        a_name_that_could_be_either_kind_is_told;
    writes:
        what_is_immutable_is_told_and_can_be_replaced,
        a_workload_restarts_once_for_a_cause,
        a_rehearsal_tells_what_would_be_and_writes_nothing,
        an_error_about_a_secret_tells_no_value;
}
