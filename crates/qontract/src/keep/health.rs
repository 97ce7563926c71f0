//! What others can ask a process over HTTP: is it alive, is it ready, and its metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use qontract_telemetry::metrics::Metrics;

use crate::keep::voice::Voice;

/// What is asked.
#[derive(Clone)]
pub struct Health {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The loops.
    pub voices: Arc<dyn Fn() -> Vec<Arc<Voice>> + Send + Sync>,
    /// How long nothing may be heard of a loop that runs.
    pub budget: Duration,
}

impl Health {
    /// Whether something was heard of every loop within the budget, or it sleeps for a known time.
    fn is_alive(&self) -> Result<(), String> {
        for voice in (self.voices)() {
            let status = voice.status();
            let quiet = status.heard.elapsed();
            let is_late = status.next.is_some_and(|next| next.elapsed() > self.budget);
            if is_late || status.next.is_none() && quiet > self.budget {
                let waits = status.waits_for.map_or_else(String::new, |activity| format!(": {activity}"));
                return Err(format!(
                    "{}: nothing was heard for {} s{waits}\n",
                    voice.integration(),
                    quiet.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// Whether there are loops, and every one has run once.
    fn is_ready(&self) -> bool {
        let voices = (self.voices)();
        !voices.is_empty() && voices.iter().all(|voice| voice.status().last.is_some())
    }

    /// Answers until the process ends.
    pub async fn serve(self, address: SocketAddr) -> anyhow::Result<SocketAddr> {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let bound = listener.local_addr()?;
        let router = Router::new()
            .route("/healthz", get(alive))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(bound)
    }
}

async fn alive(State(health): State<Health>) -> (StatusCode, String) {
    match health.is_alive() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

async fn ready(State(health): State<Health>) -> (StatusCode, &'static str) {
    if health.is_ready() { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not yet\n") }
}

async fn metrics(State(health): State<Health>) -> ([(&'static str, &'static str); 1], String) {
    ([("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")], health.metrics.print())
}
