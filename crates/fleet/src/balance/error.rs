//! Errors of balancing: invalid measurements, policies and stored assignments.

/// An input of balancing that is not valid.
#[derive(Debug, thiserror::Error)]
pub enum BalanceError {
    /// A run time that is negative, infinite or not a number.
    #[error("the run time of `{key}` is {seconds} seconds, which is not a duration")]
    Cost {
        /// The shard key.
        key: String,
        /// The measured value.
        seconds: f64,
    },
    /// A policy that contradicts itself.
    #[error("`{field}` of the balance policy is invalid: {reason}")]
    Policy {
        /// The field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A stored document that is not JSON of the expected form.
    #[error("cannot read the stored {document}")]
    Read {
        /// The kind of document.
        document: &'static str,
        /// The cause.
        #[source]
        cause: serde_json::Error,
    },
    /// A stored document of another version.
    #[error("the stored {document} has version {version}, and this program reads version {supported}")]
    Version {
        /// The kind of document.
        document: &'static str,
        /// The version in the document.
        version: u32,
        /// The supported version.
        supported: u32,
    },
    /// A stored assignment with a key in a slot that does not exist.
    #[error("the stored assignment has {slots} slots, but assigns `{key}` to slot {slot}")]
    Slot {
        /// The shard key.
        key: String,
        /// The slot of the key.
        slot: u32,
        /// The number of slots.
        slots: u32,
    },
}
