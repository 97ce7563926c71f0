//! The Vault client against the emulator and against `RustyVault`.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod caching;
mod faults;
mod fixture;
mod hostile;
mod kubernetes;
mod real_vault;
mod sessions;
mod versions;
mod writes;
