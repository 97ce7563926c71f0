//! Progress line on the terminal: shows the current activity of a slow command.
//!
//! The line is drawn on stderr, only if stderr is a terminal, and never in CI. All other output first erases
//! the line ([`erase`]); the line is then drawn again below that output.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use qontract_diagnostics::sanitize;
use qontract_telemetry::activity::{Activities, Activity};

use qontract_config::variable;

/// Time until the line is drawn for the first time.
const SHOW_DELAY: Duration = Duration::from_secs(2);

/// Interval at which the line is drawn.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of characters of the activity: a line that wraps could not be erased.
const MAX_WIDTH: usize = 60;

/// Whether the line is on the terminal. The lock is held while the line is drawn or erased.
static IS_DRAWN: Mutex<bool> = Mutex::new(false);

/// Erases the line if it is drawn. All output calls it first.
pub fn erase() {
    let mut is_drawn = IS_DRAWN.lock();
    if std::mem::take(&mut *is_drawn) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

/// Shows the progress line until it is dropped.
pub struct Progress {
    stop: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows `what` or the current activity. Does nothing if stderr is not a terminal, or in CI.
    pub fn start(what: impl Into<String>, activities: Activities) -> Self {
        let stop: Arc<StopSignal> = Arc::default();
        if !is_enabled() {
            return Self { stop, thread: None };
        }
        let (what, seen, begun) = (what.into(), Arc::clone(&stop), Instant::now());
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let mut pause = SHOW_DELAY;
            while !seen.wait(pause) {
                draw(&line(&what, begun.elapsed(), &activities.in_progress()));
                pause = REDRAW_INTERVAL;
            }
        });
        Self { stop, thread: thread.ok() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        erase();
    }
}

/// Whether the line is drawn: on a terminal that is not dumb, and not in CI.
fn is_enabled() -> bool {
    std::io::stderr().is_terminal()
        && variable("CI").is_none_or(|ci| ci == "false")
        && variable("TERM").is_some_and(|term| term != "dumb")
}

/// Signal that ends the drawing thread.
#[derive(Default)]
struct StopSignal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    fn set(&self) {
        *self.is_set.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for the signal; returns whether it was set before `timeout`.
    fn wait(&self, timeout: Duration) -> bool {
        let mut is_set = self.is_set.lock();
        self.changed.wait_while_for(&mut is_set, |is_set| !*is_set, timeout);
        *is_set
    }
}

fn draw(line: &str) {
    let mut is_drawn = IS_DRAWN.lock();
    *is_drawn = true;
    let _ = std::io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
}

/// `waiting for GET https://c1/api (12s), and 2 more…`, or `validating . (3s)…` without an activity.
fn line(what: &str, elapsed: Duration, doing: &[Activity]) -> String {
    let is_request = |one: &&Activity| one.description.contains("://");
    let mut requests = doing.iter().filter(is_request);
    // If no request is active, the innermost activity is the most specific one.
    let (first, more) = match requests.next() {
        Some(first) => (Some(first), requests.count()),
        None => (doing.last(), 0),
    };
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let (text, since) = match first {
        Some(activity) => {
            (format!("waiting for {}", activity.description.replace('`', "")), activity.elapsed)
        }
        None => (what.to_owned(), elapsed),
    };
    let text = sanitize(&text).chars().take(MAX_WIDTH).collect::<String>();
    format!("{text} ({}s){more}…", since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_activity_and_its_duration() {
        let activity = |what: &str, seconds| Activity {
            description: what.to_owned(),
            elapsed: Duration::from_secs(seconds),
        };
        let check = |doing: &[Activity], expect: &str| {
            assert_eq!(line("validating .", Duration::from_secs(9), doing), expect);
        };
        check(&[], "validating . (9s)…");
        check(&[activity("observe `cluster=c1`", 12)], "waiting for observe cluster=c1 (12s)…");
        let requests = [
            activity("observe `cluster=c1`", 12),
            activity("`GET https://c1/api`", 11),
            activity("`GET https://c2/api`", 3),
        ];
        check(&requests[..2], "waiting for GET https://c1/api (11s)…");
        check(&requests, "waiting for GET https://c1/api (11s), and 1 more…");
        check(
            &[activity(&format!("GET https://{}", "x".repeat(100)), 3)],
            &format!("waiting for GET https://{} (3s)…", "x".repeat(36)),
        );
        check(&[activity("GET https://\u{1b}[31m", 3)], "waiting for GET https://\\u{1b}[31m (3s)…");
    }
}
