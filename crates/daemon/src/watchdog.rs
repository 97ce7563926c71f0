//! Entry point of the watchdog process, which ends the child processes of its parent when the parent is killed. The
//! watchdog is the executable of its parent, started with a special argument.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Whether this process is a watchdog.
pub fn is_requested() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == qontract_child::WATCHDOG_ARGUMENT)
}

/// Waits until the watched process has ended, and then ends its child processes.
pub fn run() -> ExitCode {
    // A supervisor or a terminal signals every process of a service. The watchdog has to outlive the process
    // that it watches, so it ignores these signals.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = &runtime {
        let _context = runtime.enter();
        let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        // A failure is ignored: without a handler, the signal only ends the watchdog earlier.
        let _handlers = signals.map(|kind| signal(kind).ok());
    }
    qontract_child::watch(std::io::stdin());
    ExitCode::SUCCESS
}
