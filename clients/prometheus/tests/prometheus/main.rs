//! The client against a scripted server, and against Prometheus itself.

mod real_prometheus;
mod scripted;

use qontract_access::{Mode, Permits};
use qontract_client_http::{Http, Proxies, Settings, Url};
use qontract_client_prometheus::{Prometheus, PrometheusLogin};
use std::time::Duration;

/// A client in a dry run, with its permits.
struct ClientFixture {
    permits: Permits,
    prometheus: Prometheus,
}

impl ClientFixture {
    fn of(url: &str, login: &PrometheusLogin) -> Self {
        Self::with_timeout(url, login, Duration::from_secs(30))
    }

    /// A client that waits this long for a response.
    fn with_timeout(url: &str, login: &PrometheusLogin, attempt_timeout: Duration) -> Self {
        let permits = qontract_testkit::permits(Mode::DryRun);
        let settings = Settings {
            proxies: Proxies::Never,
            attempt_timeout,
            retries: 1,
            initial_backoff: Duration::from_millis(1),
            ..Settings::default()
        };
        let http = Http::new(&permits.read, settings).expect("a stack");
        let url = Url::parse(url).expect("a URL");
        Self { permits, prometheus: Prometheus::new(&http, url, login) }
    }
}
