//! Integrations in loops: where their data comes from, what a run is, and what is told about it.

mod alarm;
pub mod audit;
pub mod debug;
pub mod feed;
pub mod health;
pub mod held;
pub mod invalid;
pub mod one;
pub mod push;
pub mod signals;
pub mod turn;
pub mod voice;
