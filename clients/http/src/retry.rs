//! Retry policy: the statuses that are transient, and exponential back-off (backoff) with jitter. Pure:
//! randomness and time are arguments.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::settings::Settings;

/// Whether a retry after this status may succeed.
pub fn is_transient(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}

/// The back-off after the attempt of this number, counted from 1. `chance` is a random number between 0 and 1
/// for the jitter; `retry_after` is the `Retry-After` of the target.
pub fn retry_delay(
    settings: &Settings,
    attempt: u32,
    chance: f64,
    retry_after: Option<Duration>,
) -> Duration {
    let doublings = attempt.saturating_sub(1).min(31);
    let full = settings.initial_backoff.saturating_mul(1 << doublings).min(settings.max_backoff);
    let pause = full / 2 + (full / 2).mul_f64(chance.clamp(0.0, 1.0));
    retry_after.map_or(pause, |retry_after| retry_after.max(pause))
}

/// The `Retry-After` of a response. A date is compared with the `Date` of the same response, so that only the
/// clock of the target is used.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let value = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(text(DATE)?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};

    use super::{retry_after, retry_delay};
    use crate::settings::Settings;

    fn check_back_off(attempt: u32, chance: f64, retry_after: Option<u64>, expect: u64) {
        let pause = retry_delay(&Settings::default(), attempt, chance, retry_after.map(Duration::from_secs));
        assert_eq!(pause, Duration::from_millis(expect));
    }

    #[test]
    fn the_back_off_doubles_up_to_its_maximum() {
        for (attempt, expect) in [(1, 500), (2, 1000), (3, 2000), (6, 10_000), (u32::MAX, 10_000)] {
            check_back_off(attempt, 1.0, None, expect);
        }
    }

    #[test]
    fn half_of_the_back_off_is_jitter() {
        check_back_off(2, 0.0, None, 500);
        check_back_off(2, 0.5, None, 750);
    }

    #[test]
    fn retry_after_is_the_minimum() {
        check_back_off(1, 0.0, Some(30), 30_000);
        check_back_off(3, 1.0, Some(0), 2000);
    }

    fn check_retry_after(retry: &'static str, date: Option<&'static str>, expect: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_static(date));
        }
        assert_eq!(retry_after(&headers), expect.map(Duration::from_secs), "{retry}");
    }

    #[test]
    fn retry_after_in_seconds_is_read() {
        check_retry_after("7", None, Some(7));
        check_retry_after("-7", None, None);
        check_retry_after("soon", None, None);
    }

    #[test]
    fn retry_after_as_a_date_is_read() {
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        check_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now, Some(60));
        check_retry_after("Sun, 06 Nov 1994 08:00:00 GMT", now, Some(0));
        check_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", None, None);
    }
}
