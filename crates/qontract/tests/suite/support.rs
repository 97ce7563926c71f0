//! Shared code of the tests.

pub mod api_request;
pub mod api_server;
pub mod bounded_output;
pub mod chart;
pub mod clock;
pub mod cluster;
pub mod cluster_repo;
pub mod command;
pub mod counting_proxy;
pub mod empty_cluster;
pub mod fleet;
pub mod kubelet;
pub mod loopback;
pub mod operator;
pub mod peer_fleet;
pub mod pod_history;
pub mod records;
pub mod running;
pub mod secrets_repo;
pub mod terminal;
pub mod web_deployment;
