//! The terminal that the process runs on: its size, and its modes while a live table is shown.
//!
//! What is typed meanwhile is neither echoed into the table nor left to the shell afterwards. The modes are restored when the
//! guard is dropped, and as soon as the process is asked to end, so that a forced exit later finds them restored. A signal that
//! kills the process outright (`SIGKILL`, `SIGQUIT`) leaves that to the shell.

use std::io;

use parking_lot::Mutex;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};

/// The modes that the terminal had.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { width: 80, height: 24 }
    }
}

impl Size {
    /// The size of the terminal that stdout is; the usual one where it is not known.
    pub fn of_stdout() -> Self {
        Self::known().unwrap_or_default()
    }

    /// The size of the terminal that stdout is, if it is one.
    pub fn known() -> Option<Self> {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)?;
        Some(Self { width: size.ws_col.into(), height: size.ws_row.into() })
    }
}

/// Restores the terminal's modes when it is dropped.
#[derive(Debug)]
pub struct SilentKeys(());

impl SilentKeys {
    /// Turns the echo off, if stdin is a terminal that this process may change.
    pub fn start() -> Self {
        if is_foreground()
            && let Ok(modes) = tcgetattr(io::stdin())
        {
            let mut silent = modes.clone();
            silent.local_modes &= !LocalModes::ECHO;
            if tcsetattr(io::stdin(), OptionalActions::Now, &silent).is_ok() {
                *SAVED.lock() = Some(modes);
            }
        }
        Self(())
    }
}

impl Drop for SilentKeys {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal's modes, if they were changed, and drops what was typed.
pub fn restore() {
    let saved = SAVED.lock().take();
    if let Some(modes) = saved.filter(|_| is_foreground()) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &modes);
    }
}

/// Whether the terminal is this process's to change: a job in the background would be stopped for it.
fn is_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
