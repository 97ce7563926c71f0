//! Pushes metrics to a Pushgateway after each run, for processes that may end before they are scraped.

use std::sync::Arc;

use qontract_access::{Mode, ReadPermit};
use qontract_client_http::{Http, Secret, Settings, Url};
use qontract_client_pushgateway::Pushgateway;
use qontract_runtime::reconcile_loop::{LoopEvent, LoopObserver};
use qontract_telemetry::log::{Level, Log, LogLine};
use qontract_telemetry::metrics::{Metrics, ProcessLabels};
use tokio::sync::Notify;

use crate::reporter::LoopReporter;

/// A Pushgateway and its credentials.
#[derive(Clone, Debug)]
pub struct PushgatewayConfig {
    /// The URL of the Pushgateway.
    pub url: Url,
    /// The user name.
    pub user: String,
    /// The password of the user.
    pub password: Secret,
}

/// Pushes the metrics of one process.
pub struct MetricsPusher {
    gateway: Pushgateway,
    permit: ReadPermit,
    process: ProcessLabels,
    metrics: Arc<Metrics>,
    log: Arc<Log>,
}

impl MetricsPusher {
    /// Creates a pusher for this gateway.
    pub fn new(
        push: &PushgatewayConfig,
        process: ProcessLabels,
        metrics: Arc<Metrics>,
        log: Arc<Log>,
    ) -> anyhow::Result<Self> {
        // Metrics of dry runs are also pushed, so the permit does not depend on the mode of a run.
        let permit = ReadPermit::for_targets(Mode::DryRun);
        let http = Http::new(&permit, Settings::default())?;
        let gateway = Pushgateway::new(&http, push.url.clone(), &push.user, &push.password);
        Ok(Self { gateway, permit, process, metrics, log })
    }

    /// Pushes the metrics; a failure is only logged.
    pub async fn push(&self) {
        let ProcessLabels { integration, shards, shard_id } = &self.process;
        let labels = [("integration", &**integration), ("shards", shards), ("shard_id", shard_id)];
        if let Err(error) = self.gateway.push(&self.permit, &labels, &self.metrics.encode()).await {
            let error = anyhow::Error::new(error);
            let line = LogLine::new(Level::Warning, format!("{error:#}"));
            self.log.write(&line.with("integration", integration.as_str()));
        }
    }
}

/// Forwards loop events to a reporter and sends a notification when a run has ended.
pub struct NotifyOnEnd {
    /// The reporter to which events are forwarded.
    pub reporter: Arc<LoopReporter>,
    /// Receives the notification when a run has ended.
    pub ended: Arc<Notify>,
}

impl LoopObserver for NotifyOnEnd {
    fn observe(&self, event: LoopEvent) {
        let is_end = matches!(event, LoopEvent::Ended(..) | LoopEvent::Measured(..));
        self.reporter.observe(event);
        if is_end {
            self.ended.notify_one();
        }
    }
}
