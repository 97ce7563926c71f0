//! Support for the benchmarks. The module [`corpus`] generates data repos of any size from a seed; the binary
//! of the same name writes them to disk.

pub mod corpus;
