//! The reasons why an entry of the data does not produce an object.

use qontract_runtime::Fault;

/// The cause of an invalid entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidCause {
    /// The template cannot be rendered from the data.
    Template {
        /// The line in the template, counted from 1.
        line: Option<usize>,
        /// The error message.
        message: String,
    },
    /// The template does not render to an object.
    Output,
    /// The file is not an object.
    File {
        /// The line that is not YAML, counted from 1.
        line: Option<usize>,
    },
    /// Another cause, such as an error in the entry itself or an unsupported feature.
    Other,
}

/// The reason why an entry does not produce an object.
pub struct EntryError {
    /// The fault.
    pub fault: Box<Fault>,
    /// The cause of the fault.
    pub cause: InvalidCause,
}

impl EntryError {
    /// A fault with its cause.
    pub fn new(fault: Fault, cause: InvalidCause) -> Self {
        Self { fault: Box::new(fault), cause }
    }
}

impl From<Fault> for EntryError {
    fn from(fault: Fault) -> Self {
        Self::new(fault, InvalidCause::Other)
    }
}
