//! What speed is measured on. The module [`corpus`] makes data repos of any size from a seed; the binary of the same name writes
//! them to disk.

pub mod corpus;
