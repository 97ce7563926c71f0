//! The stack against real servers on the loopback interface.

mod aws;
mod bounds;
mod dry_run;
mod limits;
mod loopback;
mod redirects;
mod retries;
mod secrets;

use std::time::Duration;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, Proxies, Settings};

/// Settings for tests: minimal back-off, no proxy.
fn settings() -> Settings {
    Settings {
        initial_backoff: Duration::from_millis(1),
        max_backoff: Duration::from_millis(2),
        proxies: Proxies::Never,
        ..Settings::default()
    }
}

/// The permits and the stack of a run of this mode.
fn run(mode: Mode, settings: Settings) -> (Permits, Http) {
    let permits = qontract_testkit::permits(mode);
    let http = Http::new(&permits.read, settings).expect("a stack");
    (permits, http)
}
