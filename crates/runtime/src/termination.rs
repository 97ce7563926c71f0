//! The signals that end a process.

/// A signal that requests the shutdown of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminationSignal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`, or any other request for an orderly shutdown.
    Terminate,
    /// `SIGHUP`: the terminal was closed.
    Hangup,
}

impl TerminationSignal {
    /// The name of the signal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "SIGHUP",
        }
    }

    /// The exit code of a process that the signal ended: 128 plus the number of the signal.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::Hangup => 129,
        }
    }
}
