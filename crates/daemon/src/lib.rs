//! Runs integrations on data, once or in loops: data sources and pinned data, validation, target systems, loops and
//! their supervisor, log lines and run records, health and signals.
//!
//! The binary provides the list of integrations ([`registry::Registry`]), the parsed configuration, and a sink for
//! messages ([`qontract_diagnostics::MessageSink`]). No code of this crate prints to stdout.

pub mod allocator;
pub mod announcement;
pub mod audit;
pub mod bundle_analysis;
pub mod clusters;
pub mod config_check;
pub mod data_endpoint;
pub mod data_server;
pub mod data_validity;
pub mod debug_log;
pub mod discovery;
pub mod exit;
pub mod failed_shards;
pub mod fleet_status;
pub mod health;
pub mod held_changes;
pub mod input;
pub mod input_store;
pub mod journal;
mod lease_host;
pub mod line_cache;
pub mod loop_orders;
pub mod opened_repo;
pub mod pinned_data;
pub mod plan_report;
pub mod planner;
pub mod process_slot;
mod program_log;
pub mod pushgateway;
pub mod reconciled_data;
pub mod registry;
pub mod repeat_filter;
pub mod replay;
pub mod repo_cache;
pub mod reporter;
pub mod run_entry;
pub mod run_integration;
pub mod run_loop;
mod run_rounds;
pub mod run_settings;
pub mod run_setup;
pub mod run_store;
pub mod run_summary;
pub mod run_text;
pub mod runner;
pub mod sandbox_folder;
pub mod signals;
pub mod simulation;
pub mod source;
pub mod state_access;
pub mod status_view;
pub mod supervisor;
pub mod targets;
#[cfg(test)]
mod test_data;
mod unfinished_runs;
pub mod validation;
pub mod watchdog;
pub mod watcher;
