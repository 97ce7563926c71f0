//! The health listener of loops: liveness, readiness, status and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_diagnostics::{sanitize_json, sanitize_lines};
use qontract_server::{HostPolicy, Page, Pages, serve_pages};
use qontract_telemetry::metrics::Metrics;
use serde::Serialize;
use tokio::time::Instant;

use crate::data_validity::{DataStatus, DataUse, InvalidData};
use crate::held_changes::HeldChange;
use crate::reporter::{LoopPhase, LoopReporter, LoopStatus};
use crate::source::DataSource;

/// Time after the last heartbeat of the watchdog after which a loop counts as not alive.
///
/// A slow step does not make a loop unhealthy: the watchdog cancels a step that makes no progress within its
/// limits.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum number of held changes of a loop that the status lists.
const MAX_HELD_CHANGES: usize = 20;

/// Serves the health of the loops of a process.
#[derive(Clone)]
pub struct Health {
    /// The metrics that the listener serves.
    pub metrics: Arc<Metrics>,
    /// Returns the reporters of the loops.
    pub reporters: Arc<dyn Fn() -> Vec<Arc<LoopReporter>> + Send + Sync>,
    /// Returns the integrations that have no loop because they cannot be started.
    pub unstarted: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Returns the integrations that cannot run on this machine.
    pub unchecked: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// The source of the data, once it is set.
    pub data_source: Arc<OnceLock<Arc<dyn DataSource>>>,
}

/// The URLs of the pages of a listener.
pub fn addresses(bound: SocketAddr) -> String {
    format!(
        "http://{bound}/status (data and loops, as JSON), /healthz (liveness), /readyz (readiness), /metrics (OpenMetrics)"
    )
}

/// The status of the process, as JSON.
#[derive(Serialize)]
struct ProcessStatus {
    version: &'static str,
    data: DataStatus,
    loops: Vec<LoopStatusEntry>,
    unstarted: Vec<String>,
    /// Integrations that cannot run on this machine.
    not_checked: Vec<String>,
}

/// The current activity of a loop, in one word.
fn activity(status: &LoopStatus) -> &'static str {
    match (status.next, status.last) {
        _ if status.paused.is_some() => "paused",
        (Some(_), _) => "waiting",
        (None, None) if status.phase == LoopPhase::Starting => "starting",
        (None, _) => "running",
    }
}

/// The status of a loop, as JSON.
#[derive(Serialize)]
struct LoopStatusEntry {
    integration: String,
    /// The current activity of the loop, in one word.
    activity: &'static str,
    /// The state of the last run; `None` if the loop has not run yet.
    state: Option<&'static str>,
    run: Option<String>,
    /// The first error of the last run.
    error: Option<String>,
    changes: usize,
    held: usize,
    /// The first of the held changes.
    held_changes: Vec<HeldChangeEntry>,
    /// The command that approves the held changes; `None` if no approval would release them.
    approve: Option<String>,
    next_in_seconds: Option<u64>,
    /// The reason why the loop is paused, if it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<String>,
}

/// A held change, as JSON.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct HeldChangeEntry {
    change: String,
    reason: String,
}

impl LoopStatusEntry {
    fn new(reporter: &LoopReporter) -> Self {
        let status = reporter.status();
        let run = status.run.as_ref().and_then(|run| run.id.as_ref());
        let is_approvable = status.held.iter().any(|held| held.approvable);
        let held_change =
            |held: &HeldChange| HeldChangeEntry { change: held.text.clone(), reason: held.why.clone() };
        Self {
            error: status.error.clone(),
            held_changes: status.held.iter().take(MAX_HELD_CHANGES).map(held_change).collect(),
            approve: run.filter(|_| is_approvable).map(|run| format!("qontract approve {run}")),
            integration: reporter.integration().to_owned(),
            activity: activity(&status),
            state: status.last_state(),
            run: status.run.as_ref().and_then(|run| run.id.clone()),
            changes: status.changes.planned,
            held: status.changes.held,
            paused: status.paused.clone(),
            next_in_seconds: status.next.map(|next| next.saturating_duration_since(Instant::now()).as_secs()),
        }
    }
}

impl Health {
    /// Checks that every loop is alive: its watchdog has sent a heartbeat recently, or the loop sleeps until a known
    /// time. The error names the first loop that is not alive.
    fn is_alive(&self) -> Result<(), String> {
        for reporter in (self.reporters)() {
            let status = reporter.status();
            let idle = status.last_heartbeat.elapsed();
            let is_late = status.next.is_some_and(|next| next.elapsed() > HEARTBEAT_TIMEOUT);
            let is_silent = status.next.is_none() && status.paused.is_none() && idle > HEARTBEAT_TIMEOUT;
            if is_late || is_silent {
                let waits = status.doing.last().map_or_else(String::new, |activity| format!(": {activity}"));
                return Err(format!(
                    "{}: no heartbeat for {} s{waits}\n",
                    reporter.integration(),
                    idle.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// Checks that loops exist, that each loop has run once, and that no loop is missing. The error lists the
    /// reasons.
    fn is_ready(&self) -> Result<(), String> {
        let reporters = (self.reporters)();
        let mut why = self.missing();
        if self.invalid().is_some_and(|invalid| invalid.bundle.is_none()) {
            why.push_str("the data is invalid; no valid bundle yet\n");
        }
        let has_not_run = |status: LoopStatus| status.last.is_none() && status.paused.is_none();
        for reporter in reporters.iter().filter(|reporter| has_not_run(reporter.status())) {
            why.extend([reporter.integration(), ": has not run yet\n"]);
        }
        match why.is_empty() {
            true if reporters.is_empty() => Err("no loops yet\n".to_owned()),
            true => Ok(()),
            false => Err(why),
        }
    }

    /// The data, if it is invalid.
    fn invalid(&self) -> Option<InvalidData> {
        self.data_source.get().and_then(|feed| feed.invalid())
    }

    /// A line about invalid data; empty if the data is valid. Invalid data does not affect liveness or readiness,
    /// because a restart would not make it valid.
    fn degraded(&self) -> String {
        let summary = |invalid: InvalidData| invalid.summary(Timestamp::now(), DataUse::Reconcile);
        self.invalid().map(|invalid| format!("degraded: {}\n", summary(invalid))).unwrap_or_default()
    }

    fn status(&self) -> ProcessStatus {
        let bundle = self.data_source.get().and_then(|feed| feed.bundle_in_use());
        ProcessStatus {
            version: env!("CARGO_PKG_VERSION"),
            data: DataStatus::new(self.invalid().as_ref(), bundle),
            loops: (self.reporters)().iter().map(|reporter| LoopStatusEntry::new(reporter)).collect(),
            unstarted: (self.unstarted)(),
            not_checked: (self.unchecked)(),
        }
    }

    /// A line for each integration that has no loop.
    fn missing(&self) -> String {
        (self.unstarted)().iter().flat_map(|name| [name, ": cannot be started\n"]).collect()
    }

    /// Serves until the process ends. A listener on the loopback interface accepts only loopback host names, as
    /// `serve` does.
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

/// The page that lists the other pages.
const INDEX_PAGE: &str = concat!(
    "qontract ",
    env!("CARGO_PKG_VERSION"),
    "\n\n/healthz  200 while every loop makes progress\n/readyz   200 once every integration has run; names invalid data\n/status   data and loops, as JSON\n/metrics  OpenMetrics\n"
);

/// The media type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Pages for Health {
    fn page(&self, path: &str) -> Option<Page> {
        let text = |status, text: &str| Page::text(status, sanitize_lines(text));
        Some(match path {
            "/" => Page::text(200, INDEX_PAGE),
            "/healthz" => match self.is_alive() {
                // An integration that cannot be started is named but does not make the process unhealthy, because a
                // restart would not help.
                Ok(()) => text(200, &format!("ok\n{}{}", self.missing(), self.degraded())),
                Err(why) => text(503, &why),
            },
            "/readyz" => match self.is_ready() {
                Ok(()) => text(200, &format!("ok\n{}", self.degraded())),
                Err(why) => text(503, &format!("{why}{}", self.degraded())),
            },
            "/status" => {
                let status = serde_json::to_string_pretty(&self.status()).unwrap_or_default();
                let body = format!("{}\n", sanitize_json(&status));
                Page { status: 200, media_type: "application/json", body }
            }
            "/metrics" => Page { status: 200, media_type: OPEN_METRICS, body: self.metrics.encode() },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use qontract_runtime::reconcile_loop::{LoopEvent, LoopObserver as _};
    use qontract_runtime::{RunEnd, RunRecord};
    use qontract_telemetry::activity::Activity;
    use qontract_telemetry::log::{Level, Log};
    use qontract_telemetry::metrics::ProcessLabels;
    use serde_json::json;
    use tokio::sync::watch;
    use tokio::time::advance;

    use super::*;
    use crate::data_validity::DataErrors;
    use crate::pinned_data::PinnedData;
    use crate::run_store::RecordStorage;
    use crate::runner::{EndedRun, RunObserver as _};

    fn health() -> (Health, Arc<LoopReporter>) {
        let metrics = Arc::new(Metrics::default());
        let process =
            ProcessLabels { integration: "a".to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() };
        let reporter =
            Arc::new(LoopReporter::new(process, Arc::new(Log::new(Level::Error)), Arc::clone(&metrics)));
        let listed = Arc::clone(&reporter);
        let reporters = Arc::new(move || vec![Arc::clone(&listed)]);
        (
            Health {
                metrics,
                reporters,
                unstarted: Arc::new(Vec::new),
                unchecked: Arc::new(Vec::new),
                data_source: Arc::default(),
            },
            reporter,
        )
    }

    /// A data source that is invalid for this reason.
    struct InvalidSource(Option<String>);

    impl DataSource for InvalidSource {
        fn current(&self) -> anyhow::Result<Arc<PinnedData>> {
            anyhow::bail!("not needed")
        }

        fn subscribe(&self) -> watch::Receiver<u64> {
            watch::channel(0).1
        }

        fn invalid(&self) -> Option<InvalidData> {
            let errors = DataErrors::unreadable("x");
            Some(InvalidData { since: Timestamp::UNIX_EPOCH, errors, bundle: self.0.clone() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_of_a_loop_has_its_activity_and_the_state_of_its_last_run() {
        let (health, reporter) = health();
        let check = |activity: &str, state: Option<&str>, next: Option<u64>| {
            let status = health.status();
            let one = &status.loops[0];
            assert_eq!((one.activity, one.state, one.next_in_seconds), (activity, state, next));
            assert!(status.data.is_valid());
        };
        check("starting", None, None);
        reporter.observe(LoopEvent::Started);
        check("running", None, None);
        reporter.observe(LoopEvent::Ended(RunEnd::Failed, Duration::from_secs(1)));
        reporter.observe(LoopEvent::Sleeping(Duration::from_mins(10)));
        check("waiting", Some("failed"), Some(600));
        reporter.observe(LoopEvent::Started);
        check("running", Some("failed"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_data_is_degraded_and_without_a_valid_bundle_not_ready() {
        let (health, reporter) = health();
        reporter.observe(LoopEvent::Started);
        reporter.observe(LoopEvent::Ended(RunEnd::Ok, Duration::from_secs(1)));
        assert_eq!(health.degraded(), "");
        let with = |bundle: Option<&str>| {
            let feed: Arc<dyn DataSource> = Arc::new(InvalidSource(bundle.map(str::to_owned)));
            Health { data_source: Arc::new(OnceLock::from(feed)), ..health.clone() }
        };
        assert_eq!(with(Some("abcdef01")).is_ready(), Ok(()));
        assert_eq!(
            with(Some("abcdef01")).degraded(),
            "degraded: data invalid since 1970-01-01 00:00 UTC (1 error); reconciling bundle abcdef0\n"
        );
        assert_eq!(with(None).is_ready().unwrap_err(), "the data is invalid; no valid bundle yet\n");
        assert_eq!(with(None).is_alive(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_of_a_loop_has_its_error_and_the_held_changes_with_the_approval() {
        let (health, reporter) = health();
        let mut record: RunRecord = serde_json::from_value(json!({
            "version": 2, "run": "r1", "began": 0, "milliseconds": 5, "integration": "a", "mode": "real run",
            "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1",
            "decisions": [], "faults": [{"text": "cannot reach cluster `c1`"}], "warnings": [],
            "approval": "x", "ended": "failed", "exit": 1,
            "shards": {"s": {
                "state": "ran", "rounds": 1, "changes": [], "waits": [], "faults": [], "applied": 0, "removed": 0,
                "held": [{"change": "remove", "text": "- remove x", "why": "too many", "approvable": true}],
            }},
        }))
        .expect("a record");
        reporter
            .ran("a", Ok(EndedRun { record: &record, storage: RecordStorage::Stored, commit_time: None }));
        let status = health.status();
        let one = &status.loops[0];
        assert_eq!(one.error.as_deref(), Some("cannot reach cluster `c1`"));
        let held = HeldChangeEntry { change: "- remove x".to_owned(), reason: "too many".to_owned() };
        assert_eq!(one.held_changes, [held]);
        assert_eq!(one.approve.as_deref(), Some("qontract approve r1"));
        // The next run succeeds.
        record.faults.clear();
        record.shards.clear();
        reporter
            .ran("a", Ok(EndedRun { record: &record, storage: RecordStorage::Stored, commit_time: None }));
        let status = health.status();
        let one = &status.loops[0];
        assert_eq!((&one.error, one.held_changes.len(), &one.approve), (&None, 0, &None));
    }

    fn waits(what: &str, seconds: u64) -> LoopEvent {
        let elapsed = Duration::from_secs(seconds);
        LoopEvent::Heartbeat(vec![Activity { description: what.to_owned(), elapsed }])
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_makes_progress_is_alive_however_long_it_takes() {
        let (health, reporter) = health();
        reporter.observe(LoopEvent::Started);
        for piece in 0..10 {
            advance(Duration::from_secs(50)).await;
            reporter.observe(waits(&format!("piece {piece}"), 1));
            assert_eq!(health.is_alive(), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_is_alive_while_the_watchdog_beats_and_not_once_it_is_silent() {
        let (health, reporter) = health();
        reporter.observe(LoopEvent::Started);
        // A step that takes fifteen minutes without a heartbeat.
        for seconds in 1..=900 {
            advance(Duration::from_secs(1)).await;
            reporter.observe(waits("apply", seconds));
            assert_eq!(health.is_alive(), Ok(()), "{seconds}");
        }
        advance(Duration::from_secs(69)).await;
        assert_eq!(health.is_alive().unwrap_err(), "a: no heartbeat for 69 s: apply for 900.0 s\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeping_loop_is_alive_until_it_oversleeps_and_ready_once_it_has_run() {
        let (health, reporter) = health();
        assert_eq!(health.is_ready().unwrap_err(), "a: has not run yet\n");
        reporter.observe(LoopEvent::Started);
        reporter.observe(LoopEvent::Ended(RunEnd::Failed, Duration::from_secs(1)));
        reporter.observe(LoopEvent::Sleeping(Duration::from_mins(10)));
        assert_eq!(health.is_ready(), Ok(()));
        advance(Duration::from_secs(650)).await;
        assert_eq!(health.is_alive(), Ok(()));
        advance(Duration::from_secs(15)).await;
        assert!(health.is_alive().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_integration_that_cannot_be_started_is_named() {
        let (health, reporter) = health();
        let health = Health { unstarted: Arc::new(|| vec!["b".to_owned()]), ..health };
        reporter.observe(LoopEvent::Started);
        reporter.observe(LoopEvent::Ended(RunEnd::Ok, Duration::from_secs(1)));
        assert_eq!(health.is_ready().unwrap_err(), "b: cannot be started\n");
        assert_eq!(health.is_alive(), Ok(()));
    }
}
