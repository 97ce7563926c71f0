//! The text of an error with its causes.

use std::error::Error;

/// The message of an error and the messages of all its causes, on one line.
///
/// ```
/// let why = "a".parse::<u8>().unwrap_err();
/// assert_eq!(qontract_diagnostics::error_chain(&why), "invalid digit found in string");
/// ```
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
