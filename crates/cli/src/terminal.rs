//! The terminal of the process: its size, and its modes while a live table is shown.
//!
//! Keys pressed while the table is shown are neither echoed into it nor passed to the shell afterwards. The
//! modes are restored when the guard is dropped. They are also restored as soon as a shutdown begins, in case
//! the exit is forced. After a signal that kills the process outright (`SIGKILL`, `SIGQUIT`), the shell has
//! to restore them.

use std::io;

use parking_lot::Mutex;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};

/// The modes of the terminal before the echo was turned off.
static SAVED_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { width: 80, height: 24 }
    }
}

impl TerminalSize {
    /// The size of the terminal on stdout; 80×24 if it is unknown.
    pub fn of_stdout() -> Self {
        Self::detect().unwrap_or_default()
    }

    /// The size of the terminal on stdout; `None` if stdout is not a terminal.
    pub fn detect() -> Option<Self> {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)?;
        Some(Self { width: size.ws_col.into(), height: size.ws_row.into() })
    }
}

/// Turns the echo of the terminal off, and restores its modes when it is dropped.
#[derive(Debug)]
pub struct EchoGuard(());

impl EchoGuard {
    /// Turns the echo off, if stdin is a terminal that this process may change.
    pub fn start() -> Self {
        if is_foreground()
            && let Ok(modes) = tcgetattr(io::stdin())
        {
            let mut silent = modes.clone();
            silent.local_modes &= !LocalModes::ECHO;
            if tcsetattr(io::stdin(), OptionalActions::Now, &silent).is_ok() {
                *SAVED_MODES.lock() = Some(modes);
            }
        }
        Self(())
    }
}

impl Drop for EchoGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal's modes, if they were changed, and discards pending input.
pub fn restore() {
    let saved = SAVED_MODES.lock().take();
    if let Some(modes) = saved.filter(|_| is_foreground()) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &modes);
    }
}

/// Whether this process may change the terminal: the kernel stops a background job that tries to do so.
fn is_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
