//! The watchdog process: this executable, started by itself with a single argument, which ends child processes that it leaves behind when it is killed.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Whether this process is the watchdog of another one.
pub fn is_asked_for() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == qontract_child::WATCHDOG_ARGUMENT)
}

/// Watches until the other process is gone.
pub fn run() -> ExitCode {
    // A supervisor or a terminal signals every process of a service. The watchdog has to end after the process that it watches, so that it catches these signals and does nothing.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = &runtime {
        let _context = runtime.enter();
        let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        // Without a handler it only ends earlier.
        let _handlers = signals.map(|kind| signal(kind).ok());
    }
    qontract_child::watch(std::io::stdin());
    ExitCode::SUCCESS
}
