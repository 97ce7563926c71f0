//! The stack against real servers on the loopback interface.

mod dry_run;
mod limits;
mod loopback;
mod redirects;
mod retries;
mod secrets;

use std::time::Duration;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, Proxies, Settings};

/// Settings of a test: pauses that nobody notices, and nothing between the stack and the server.
fn settings() -> Settings {
    Settings {
        pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(2),
        proxies: Proxies::Never,
        ..Settings::default()
    }
}

/// A run of this mode: its permits and its stack.
fn run(mode: Mode, settings: Settings) -> (Permits, Http) {
    let permits = qontract_testkit::permits(mode);
    let http = Http::new(&permits.read, settings).expect("a stack");
    (permits, http)
}
