//! Shared code of the tests.

pub mod bounded_output;
pub mod cluster;
pub mod command;
pub mod empty_cluster;
pub mod loopback;
pub mod operator;
pub mod running;
pub mod secrets_repo;
pub mod terminal;
