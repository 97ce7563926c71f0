//! The client and its calls.

use crate::answer::{self, Sample, Series};
use crate::error::PrometheusError;
use crate::login::PrometheusLogin;
use qontract_access::ReadPermit;
use qontract_client_http::{Http, Request, Secret, StatusCode, Url};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum size of a response. Our queries aggregate, so their results are small.
const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// Maximum number of steps of a range query; that of the server.
const MAX_STEPS: u64 = 11_000;

/// A client of a Prometheus server.
#[derive(Clone, Debug)]
pub struct Prometheus {
    http: Http,
    url: Url,
    authorization: Option<Secret>,
}

/// The times of a range query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryRange {
    /// The time of the first value, in seconds since 1970.
    pub start: u64,
    /// The number of values; at least one.
    pub steps: u64,
    /// The time between two values; at least a second.
    pub step: Duration,
}

impl QueryRange {
    /// The times of the values, in seconds since 1970.
    fn times(self) -> impl Iterator<Item = u64> {
        (0..self.steps.clamp(1, MAX_STEPS)).map(move |step| self.start + step * self.step_seconds())
    }

    fn step_seconds(self) -> u64 {
        self.step.as_secs().max(1)
    }
}

impl Prometheus {
    /// A client of the server at this URL.
    pub fn new(http: &Http, url: Url, login: &PrometheusLogin) -> Self {
        Self { http: http.clone(), url, authorization: login.authorization() }
    }

    /// The values of all series of a query at a time in seconds since 1970, or at the time of the server.
    pub async fn query(
        &self,
        permit: &ReadPermit,
        query: &str,
        time: Option<u64>,
    ) -> Result<Vec<Sample>, PrometheusError> {
        let mut parameters = BTreeMap::from([("query", query.to_owned())]);
        parameters.extend(time.map(|time| ("time", time.to_string())));
        answer::samples(&self.get(permit, "query", &parameters).await?)
    }

    /// The values of all series of a query at several times.
    pub async fn query_range(
        &self,
        permit: &ReadPermit,
        query: &str,
        range: QueryRange,
    ) -> Result<Vec<Series>, PrometheusError> {
        let end = range.times().last().unwrap_or(range.start);
        let parameters = BTreeMap::from([
            ("query", query.to_owned()),
            ("start", range.start.to_string()),
            ("end", end.to_string()),
            ("step", range.step_seconds().to_string()),
        ]);
        answer::series(&self.get(permit, "query_range", &parameters).await?)
    }

    /// The run time in seconds of each value of a label, at the time of the server.
    pub async fn run_seconds(
        &self,
        permit: &ReadPermit,
        query: &str,
        label: &str,
    ) -> Result<BTreeMap<String, f64>, PrometheusError> {
        let samples = self.query(permit, query, None).await?;
        answer::run_seconds(samples.iter().map(|sample| (&sample.labels, sample.value)), label)
    }

    /// The run time in seconds of each value of a label, for each time of a range, oldest first. The map of a time
    /// without data is empty.
    pub async fn run_seconds_by_window(
        &self,
        permit: &ReadPermit,
        query: &str,
        label: &str,
        range: QueryRange,
    ) -> Result<Vec<BTreeMap<String, f64>>, PrometheusError> {
        let series = self.query_range(permit, query, range).await?;
        let window = |time: u64| {
            let values = series.iter().filter_map(|one| {
                let point = one.points.iter().find(|point| is_at(point.time, time))?;
                Some((&one.labels, point.value))
            });
            answer::run_seconds(values, label)
        };
        range.times().map(window).collect()
    }

    /// The body of the response of an endpoint.
    async fn get(
        &self,
        permit: &ReadPermit,
        endpoint: &str,
        parameters: &BTreeMap<&str, String>,
    ) -> Result<Vec<u8>, PrometheusError> {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/api/v1/{endpoint}", self.url.path().trim_end_matches('/')));
        url.query_pairs_mut().clear().extend_pairs(parameters);
        // These statuses have a body with the reason.
        let request = Request::get(url)
            .max_body(MAX_RESPONSE_BYTES)
            .accept_status(StatusCode::BAD_REQUEST)
            .accept_status(StatusCode::UNPROCESSABLE_ENTITY);
        let request = match &self.authorization {
            Some(authorization) => request.secret_header("authorization", authorization),
            None => request,
        };
        let response = self.http.read(permit, request).await;
        let response =
            response.map_err(|error| PrometheusError::from_call(error, self.authorization.is_some()))?;
        Ok(response.body)
    }
}

/// Whether a time of a response is that of a step, which is a whole second.
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact")]
fn is_at(time: f64, step: u64) -> bool {
    (time - step as f64).abs() < 0.5
}
