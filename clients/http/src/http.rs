//! The HTTP stack: handles a call from the permit to the response.

use std::sync::Arc;
use std::time::Duration;

use qontract_access::{AccessPermit, Mode, ReadPermit, WritePermit};
use qontract_telemetry::activity;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Identity};
use tokio::time::{Instant, sleep, timeout_at};

use crate::actions::ReadActions;
use crate::attempt::attempt;
use crate::call::origin;
use crate::error::HttpError;
use crate::guard::{RequestPolicy, SafePost};
use crate::rehearsal::SafeRehearsal;
use crate::request::{PreparedRequest, Request};
use crate::response::Response;
use crate::retry::retry_delay;
use crate::settings::{Proxies, Settings};

/// Idle timeout of pooled connections. It is less than five seconds, because Node servers close idle
/// connections after that time, and a request that is sent at that moment is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The HTTP stack of one run. Clones share it.
///
/// It stores the mode of its run: in a dry run it cannot write, regardless of the permit.
#[derive(Clone, Debug)]
pub struct Http {
    mode: Mode,
    guard: Arc<RequestPolicy>,
    shared: Arc<SharedStack>,
}

/// The state that the stacks of several runs share.
#[derive(Debug)]
struct SharedStack {
    client: reqwest::Client,
    /// Set if TLS is not available because the machine has no trusted certificates.
    tls_error: Option<Arc<reqwest::Error>>,
    settings: Settings,
}

impl Http {
    /// Creates a stack with the mode of the run that `permit` belongs to.
    pub fn new(permit: &ReadPermit, settings: Settings) -> Result<Self, HttpError> {
        let set_up = |error| HttpError::SetUp(Arc::new(error));
        let roots = roots(&settings).map_err(set_up)?;
        let identity = settings.identity.as_ref().map(|pem| Identity::from_pem(pem.expose().as_bytes()));
        let identity = identity.transpose().map_err(set_up)?;
        let builder = |settings: &Settings| match identity.clone() {
            Some(identity) => builder(settings).identity(identity),
            None => builder(settings),
        };
        let (client, untrusting) = match builder(&settings).tls_certs_merge(roots.clone()).build() {
            Ok(client) => (Ok(client), None),
            // Without trusted certificates on the machine, only the given certificates are trusted, and plain
            // HTTP still works.
            Err(error) => {
                let untrusting = roots.is_empty().then(|| Arc::new(error));
                (builder(&settings).tls_certs_only(roots).build(), untrusting)
            }
        };
        let client = client.map_err(set_up)?;
        let guard = Arc::new(RequestPolicy::new(settings.safe_posts.clone()));
        Ok(Self {
            mode: permit.mode(),
            guard,
            shared: Arc::new(SharedStack { client, tls_error: untrusting, settings }),
        })
    }

    /// Creates a stack for another run that shares connections, rate limits and allow-list with this stack.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { mode: permit.mode(), ..self.clone() }
    }

    /// Adds an endpoint where `POST` only reads.
    #[must_use]
    pub fn with_safe_post(&self, safe_post: SafePost) -> Self {
        Self { guard: Arc::new(RequestPolicy::clone(&self.guard).with(safe_post)), ..self.clone() }
    }

    /// Allows rehearsals on this target.
    #[must_use]
    pub fn with_safe_rehearsal(&self, rehearsal: SafeRehearsal) -> Self {
        Self { guard: Arc::new(RequestPolicy::clone(&self.guard).with_rehearsal(rehearsal)), ..self.clone() }
    }

    /// Judges requests to this API by their actions.
    #[must_use]
    pub fn with_read_actions(&self, actions: ReadActions) -> Self {
        Self { guard: Arc::new(RequestPolicy::clone(&self.guard).with_read_actions(actions)), ..self.clone() }
    }

    /// Sends a read: `GET`, `HEAD`, `OPTIONS`, a `POST` on the allow-list, a listed action, or a rehearsal.
    pub async fn read(&self, permit: &ReadPermit, request: Request) -> Result<Response, HttpError> {
        self.send(AccessPermit::Read(permit), request).await
    }

    /// Sends a write with any method. Every write is refused in a dry run, and so is a write outside of the
    /// bounds of the permit.
    pub async fn write(&self, permit: &WritePermit, request: Request) -> Result<Response, HttpError> {
        self.send(AccessPermit::Write(permit), request).await
    }

    /// Sends a read or a write, depending on the permit.
    pub async fn send(&self, permit: AccessPermit<'_>, request: Request) -> Result<Response, HttpError> {
        let access = permit.access();
        self.guard.check_request(self.mode, &request, access)?;
        if let AccessPermit::Write(permit) = permit
            && let Some(bounds) = permit.bounds()
        {
            self.guard.check_bounds(&request, bounds)?;
        }
        let prepared = request.prepare(access)?;
        if let Some(error) = &self.shared.tls_error
            && prepared.request.url().scheme() == "https"
        {
            return Err(HttpError::SetUp(Arc::clone(error)));
        }
        let doing = activity::begin(prepared.call.to_string());
        let deadline = self.shared.settings.deadline;
        let (end, mut last) = (Instant::now() + deadline, None);
        let outcome = match timeout_at(end, self.shared.attempts(&prepared, end, &mut last)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(HttpError::Deadline { call: prepared.call, deadline, last: last.map(Box::new) }),
        };
        let status = match &outcome {
            Ok(response) => Some(response.status),
            Err(error) => error.status(),
        };
        doing.finish(status.map_or_else(|| "no response".to_owned(), |status| status.to_string()));
        outcome
    }
}

fn roots(settings: &Settings) -> Result<Vec<Certificate>, reqwest::Error> {
    let roots = settings.roots.iter().map(|pem| Certificate::from_pem_bundle(pem));
    Ok(roots.collect::<Result<Vec<_>, _>>()?.concat())
}

fn builder(settings: &Settings) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("qontract/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .pool_idle_timeout(IDLE_TIMEOUT);
    match settings.proxies {
        Proxies::Environment => builder,
        Proxies::Never => builder.no_proxy(),
    }
}

impl SharedStack {
    /// Retries until there is a response, a permanent failure, or no time for another attempt. `last` is set
    /// to the failure of the previous attempt.
    async fn attempts(
        &self,
        prepared: &PreparedRequest,
        end: Instant,
        last: &mut Option<HttpError>,
    ) -> Result<Response, HttpError> {
        let Settings { retries, deadline, per_second, .. } = self.settings;
        let spacing = per_second.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.get());
        let origin = origin(prepared.request.url());
        let target = self.settings.limiters.for_origin(origin, self.settings.concurrency);
        let mut number = 0;
        loop {
            number += 1;
            let permit = target.acquire(spacing, end).await;
            let permit = permit.map_err(|rest| HttpError::BackOff { call: prepared.call.clone(), rest })?;
            let failure = match attempt(&self.client, &self.settings, prepared).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            drop(permit);
            let retry_after = match &failure {
                HttpError::Status { retry_after, .. } if failure.is_transient() => *retry_after,
                _ => None,
            };
            if let Some(retry_after) = retry_after {
                // The back-off is limited to the deadline, so that a wrong `Retry-After` does not block the
                // target forever.
                target.back_off(retry_after.min(deadline));
            }
            let pause = retry_delay(&self.settings, number, fastrand::f64(), retry_after);
            let hopeless = !prepared.repeatable || !failure.is_transient() || number > retries;
            if hopeless || Instant::now() + pause >= end {
                return Err(failure);
            }
            *last = Some(failure);
            sleep(pause).await;
        }
    }
}
