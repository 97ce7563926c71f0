//! Tests of the rules, of the verdicts against other validators, and of the validation cache. They are one
//! test program, so that it is linked once; `hostile` is a separate one, because it measures the CPU time of
//! its process.

mod compat;
mod incremental;
mod messages;
mod mistakes;
mod oracle;
mod order;
mod patterns;
mod public;
mod verdicts;
