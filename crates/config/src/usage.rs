//! Usage errors: mistakes in the command line, the environment or the configuration.

/// An error of the caller, such as a path that does not exist or a word that is not a Git revision.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
