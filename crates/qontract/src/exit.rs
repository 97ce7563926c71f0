//! How the program ends.

use std::process::ExitCode;

use qontract_client_server::ServerError;

use crate::config::ConfigError;

/// The exit codes of the command line, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It worked; for commands that compare: nothing differs.
    Ok,
    /// It did not work; for commands that compare: something differs.
    Failure,
    /// It was asked wrongly; for commands that compare: it could not be done.
    Usage,
    /// A run ended with this code.
    Run(u8),
}

/// An error that is the caller's: a path that does not exist, a revision that is none.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

impl Exit {
    /// The code of an error that ended a command.
    pub fn of(error: &anyhow::Error) -> Self {
        let server = error.chain().find_map(|cause| cause.downcast_ref::<ServerError>());
        match server {
            Some(server) if server.is_transient() => Exit::Run(75),
            _ if error.is::<UsageError>() || error.is::<ConfigError>() => Exit::Usage,
            _ => Exit::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Run(code) => code,
        })
    }
}
