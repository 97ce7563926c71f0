//! Exit codes of the process. The codes of runs (0, 1, 4, 5, 75) are in `crates/runtime/src/outcome.rs`.

use std::ffi::OsString;
use std::fmt;

use qontract_client_blobs::BlobsError;
use qontract_client_server::ServerError;
use qontract_runtime::RunEnd;
use qontract_runtime::reconcile_loop::TerminationSignal;

pub use qontract_config::{ConfigError, UsageError};

/// The result of a command, from which the exit code follows. Every command uses these results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success; for commands that compare: no differences.
    Ok,
    /// Failure; for commands that compare: differences.
    Failure,
    /// Usage error; for commands that compare: any error.
    Usage,
    /// A dry run has changes, but no failures and no held changes.
    Changes,
    /// A run ended in this state.
    Run(RunEnd),
    /// A signal ended the process.
    Signal(TerminationSignal),
}

/// An integration that would use its real target system although a sandbox is configured.
#[derive(Debug)]
pub enum SandboxUnsupported {
    /// The program of the process integration with this name does not support a sandbox.
    Program(String),
    /// The command of the foreign integration with this name does not support a sandbox.
    Command(String),
}

impl fmt::Display for SandboxUnsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(name) => write!(
                f,
                "the program of `{name}` does not support a sandbox: it would change its real target system; \
                 a program that works on the directory `$QONTRACT_SANDBOX` responds to `describe` with `\"sandbox\": true`"
            ),
            Self::Command(name) => write!(
                f,
                "the command of `{name}` does not support a sandbox: it would use its real target systems"
            ),
        }
    }
}

impl std::error::Error for SandboxUnsupported {}

/// The convention for exit codes that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitConvention {
    /// 0 with or without changes, and 2 for a usage error.
    Plain,
    /// `--detailed-exitcode`: 0 without changes, 2 with changes, and 64 for a usage error.
    Detailed,
}

impl Exit {
    /// Determines the result of a command that ended with an error.
    pub fn of(error: &anyhow::Error) -> Self {
        let server = error.chain().find_map(|cause| cause.downcast_ref::<ServerError>());
        let blobs = error.chain().find_map(|cause| cause.downcast_ref::<BlobsError>());
        match server {
            Some(server) if server.is_transient() => Exit::Run(RunEnd::Transient),
            _ if blobs.is_some_and(BlobsError::is_transient) => Exit::Run(RunEnd::Transient),
            _ if error.is::<UsageError>()
                || error.is::<ConfigError>()
                || error.is::<SandboxUnsupported>() =>
            {
                Exit::Usage
            }
            _ => Exit::Failure,
        }
    }
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self, convention: ExitConvention) -> u8 {
        match (self, convention) {
            (Exit::Ok, _) | (Exit::Changes, ExitConvention::Plain) => 0,
            (Exit::Failure, _) => 1,
            (Exit::Changes, ExitConvention::Detailed) | (Exit::Usage, ExitConvention::Plain) => 2,
            (Exit::Usage, ExitConvention::Detailed) => 64,
            (Exit::Run(ended), _) => ended.code(),
            (Exit::Signal(by), _) => by.exit_code(),
        }
    }

    /// The result of a run. If a shutdown interrupted the run, the signal determines the exit code.
    pub fn of_run(ended: RunEnd, interruption: Option<TerminationSignal>) -> Self {
        match (ended, interruption) {
            (RunEnd::Interrupted, Some(by)) => Exit::Signal(by),
            (ended, _) => Exit::Run(ended),
        }
    }
}

impl ExitConvention {
    /// The convention that a command line selects.
    pub fn of(arguments: &[OsString]) -> Self {
        let options = || arguments.iter().take_while(|word| *word != "--");
        let is_peer = arguments.get(1).is_some_and(|word| word == "peer");
        // Peer tools use the exit codes of the original tools.
        if !is_peer && options().any(|word| word == "--detailed-exitcode") {
            Self::Detailed
        } else {
            Self::Plain
        }
    }
}

#[cfg(test)]
mod tests {
    use qontract_runtime::RunEnd;
    use qontract_runtime::reconcile_loop::TerminationSignal;

    use super::{Exit, ExitConvention};

    #[test]
    fn exit_codes_by_convention() {
        let check = |exit: Exit, plain: u8, detailed: u8| {
            assert_eq!(exit.code(ExitConvention::Plain), plain, "{exit:?}");
            assert_eq!(exit.code(ExitConvention::Detailed), detailed, "{exit:?}");
        };
        check(Exit::Ok, 0, 0);
        check(Exit::Failure, 1, 1);
        check(Exit::Usage, 2, 64);
        check(Exit::Changes, 0, 2);
        check(Exit::Run(RunEnd::Transient), 75, 75);
        check(Exit::Run(RunEnd::Usage), 2, 2);
        check(Exit::Signal(TerminationSignal::Terminate), 143, 143);
    }

    #[test]
    fn the_signal_decides_how_an_interrupted_run_exits() {
        let check = |ended, by, expect| assert_eq!(Exit::of_run(ended, by), expect);
        let signal = TerminationSignal::Terminate;
        check(RunEnd::Interrupted, Some(signal), Exit::Signal(signal));
        check(RunEnd::Interrupted, None, Exit::Run(RunEnd::Interrupted));
        check(RunEnd::Forbidden, Some(signal), Exit::Run(RunEnd::Forbidden));
    }

    #[test]
    fn the_convention_is_read_from_the_command_line() {
        let check = |line: &str, expect: ExitConvention| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            assert_eq!(ExitConvention::of(&words), expect, "{line}");
        };
        check("qontract plan", ExitConvention::Plain);
        check("qontract plan --detailed-exitcode --nope", ExitConvention::Detailed);
        check("qontract plan -- --detailed-exitcode", ExitConvention::Plain);
        check("qontract peer reconcile --detailed-exitcode", ExitConvention::Plain);
    }
}
