//! What others can ask a process over HTTP: is it alive, is it ready, and its metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use qontract_diagnostics::shown_lines;
use qontract_server::{HostPolicy, Page, Pages, serve_pages};
use qontract_telemetry::metrics::Metrics;

use crate::reporter::Voice;

/// How long nothing may be heard of a loop that runs.
const QUIET: Duration = Duration::from_mins(1);

/// What is asked.
#[derive(Clone)]
pub struct Health {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The loops.
    pub voices: Arc<dyn Fn() -> Vec<Arc<Voice>> + Send + Sync>,
    /// The integrations that have no loop, as they cannot be started.
    pub unstarted: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
}

impl Health {
    /// Whether something was heard of every loop not long ago, or it sleeps for a known time.
    fn is_alive(&self) -> Result<(), String> {
        for voice in (self.voices)() {
            let status = voice.status();
            let quiet = status.heard.elapsed();
            let is_late = status.next.is_some_and(|next| next.elapsed() > QUIET);
            if is_late || status.next.is_none() && quiet > QUIET {
                let waits = status.doing.last().map_or_else(String::new, |activity| format!(": {activity}"));
                return Err(format!(
                    "{}: nothing was heard for {} s{waits}\n",
                    voice.integration(),
                    quiet.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// Whether there are loops, every one has run once, and none is missing; or who keeps it from being so.
    fn is_ready(&self) -> Result<(), String> {
        let voices = (self.voices)();
        let mut why = self.missing();
        for voice in voices.iter().filter(|voice| voice.status().last.is_none()) {
            why.extend([voice.integration(), ": has not run yet\n"]);
        }
        match why.is_empty() {
            true if voices.is_empty() => Err("there are no loops yet\n".to_owned()),
            true => Ok(()),
            false => Err(why),
        }
    }

    /// A line for each integration that has no loop.
    fn missing(&self) -> String {
        (self.unstarted)().iter().flat_map(|name| [name, ": cannot be started\n"]).collect()
    }

    /// Answers until the process ends. On the loopback interface it answers to loopback names only, as `serve` does.
    pub async fn serve(self, address: SocketAddr) -> anyhow::Result<SocketAddr> {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let bound = listener.local_addr()?;
        let is_loopback = bound.ip().to_canonical().is_loopback();
        let hosts = if is_loopback { HostPolicy::Loopback(Vec::new()) } else { HostPolicy::Any };
        tokio::spawn(serve_pages(listener, hosts, self));
        Ok(bound)
    }
}

/// The page that lists the others.
const INDEX: &str = concat!(
    "qontract ",
    env!("CARGO_PKG_VERSION"),
    "\n\n/healthz  200 while every loop makes progress\n/readyz   200 once every integration has run\n/metrics  OpenMetrics\n"
);

/// The media type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Pages for Health {
    fn page(&self, path: &str) -> Option<Page> {
        Some(match path {
            "/" => Page::text(200, INDEX),
            "/healthz" => match self.is_alive() {
                // What cannot be started would not be started by another process either; but it is told.
                Ok(()) => Page::text(200, format!("ok\n{}", self.missing())),
                Err(why) => Page::text(503, shown_lines(&why)),
            },
            "/readyz" => match self.is_ready() {
                Ok(()) => Page::text(200, "ok\n"),
                Err(why) => Page::text(503, why),
            },
            "/metrics" => Page { status: 200, media_type: OPEN_METRICS, body: self.metrics.print() },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use qontract_runtime::Ended;
    use qontract_runtime::looping::{Event, Told as _};
    use qontract_telemetry::activity::Activity;
    use qontract_telemetry::log::{Level, Log};
    use qontract_telemetry::metrics::{Metrics, Process};
    use tokio::time::advance;

    use super::Health;
    use crate::reporter::Voice;

    fn health() -> (Health, Arc<Voice>) {
        let metrics = Arc::new(Metrics::default());
        let process =
            Process { integration: "a".to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() };
        let voice = Arc::new(Voice::new(process, Arc::new(Log::new(Level::Error)), Arc::clone(&metrics)));
        let known = Arc::clone(&voice);
        let voices = Arc::new(move || vec![Arc::clone(&known)]);
        (Health { metrics, voices, unstarted: Arc::new(Vec::new) }, voice)
    }

    fn waits(what: &str, seconds: u64) -> Event {
        let since = Duration::from_secs(seconds);
        Event::Beat(vec![Activity { what: what.to_owned(), since }])
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_goes_on_is_alive_however_long_it_takes() {
        let (health, voice) = health();
        voice.tell(Event::Began);
        for piece in 0..10 {
            advance(Duration::from_secs(50)).await;
            voice.tell(waits(&format!("piece {piece}"), 1));
            assert_eq!(health.is_alive(), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_waits_for_the_same_thing_beyond_its_budget_is_not_alive() {
        let (health, voice) = health();
        voice.tell(Event::Began);
        for seconds in 1..=70 {
            advance(Duration::from_secs(1)).await;
            voice.tell(waits("GET https://c1/", seconds));
            assert_eq!(health.is_alive().is_ok(), seconds <= 61, "{seconds}");
        }
        let why = health.is_alive().unwrap_err();
        assert_eq!(why, "a: nothing was heard for 69 s: GET https://c1/ for 70.0 s\n");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_sleeps_is_alive_until_it_oversleeps_and_ready_once_it_has_run() {
        let (health, voice) = health();
        assert_eq!(health.is_ready().unwrap_err(), "a: has not run yet\n");
        voice.tell(Event::Began);
        voice.tell(Event::Ended(Ended::Failed, Duration::from_secs(1)));
        voice.tell(Event::Sleeps(Duration::from_mins(10)));
        assert_eq!(health.is_ready(), Ok(()));
        advance(Duration::from_secs(650)).await;
        assert_eq!(health.is_alive(), Ok(()));
        advance(Duration::from_secs(15)).await;
        assert!(health.is_alive().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_started_is_missed() {
        let (health, voice) = health();
        let health = Health { unstarted: Arc::new(|| vec!["b".to_owned()]), ..health };
        voice.tell(Event::Began);
        voice.tell(Event::Ended(Ended::Ok, Duration::from_secs(1)));
        assert_eq!(health.is_ready().unwrap_err(), "b: cannot be started\n");
        assert_eq!(health.is_alive(), Ok(()));
    }
}
