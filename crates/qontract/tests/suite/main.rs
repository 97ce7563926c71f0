//! Tests that run the binary as a user does. They are one test program, so that it is linked once and the
//! support code is shared.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod canaries;
mod cases;
mod cli;
mod codes;
mod complete_plans;
mod config_check;
mod drop_in;
mod empty_files;
mod example_real_cluster;
mod first_contact;
mod first_hour;
mod git_layouts;
mod guide;
mod held_changes;
mod hostile_git;
mod hostile_output;
mod hostile_programs;
mod hostile_remotes;
mod hostile_secrets;
mod hostile_server;
mod hostile_trees;
mod invalid_data;
mod loops;
mod operators;
mod orphans;
mod plan;
mod process_sandbox;
mod query;
mod real_cluster;
mod real_cluster_logins;
mod reconcile;
mod redaction_order;
mod release;
mod removal_budget;
mod repo_cache;
mod report_details;
mod runs;
mod screen;
mod secret_store;
mod serve;
mod shutdown;
mod support;
mod templates;
mod up;
