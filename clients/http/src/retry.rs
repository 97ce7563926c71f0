//! When to try again, and after which pause. Pure: chance and time come in as arguments.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::settings::Settings;

/// Whether an answer of this status may well be another one later.
pub fn is_transient(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}

/// The pause after the attempt of this number, counted from 1. `chance` is between 0 and 1; `asked` is what the
/// target asks for.
pub fn pause(settings: &Settings, attempt: u32, chance: f64, asked: Option<Duration>) -> Duration {
    let doublings = attempt.saturating_sub(1).min(31);
    let full = settings.pause.saturating_mul(1 << doublings).min(settings.longest_pause);
    let pause = full / 2 + (full / 2).mul_f64(chance.clamp(0.0, 1.0));
    asked.map_or(pause, |asked| asked.max(pause))
}

/// How long the target asks to be left alone. A date counts from the `Date` of the same answer, so that nobody's clock
/// matters but the target's.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let asked = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(DATE)?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};

    use super::{pause, retry_after};
    use crate::settings::Settings;

    fn paused(attempt: u32, chance: f64, asked: Option<u64>, expect: u64) {
        let pause = pause(&Settings::default(), attempt, chance, asked.map(Duration::from_secs));
        assert_eq!(pause, Duration::from_millis(expect));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        for (attempt, expect) in [(1, 500), (2, 1000), (3, 2000), (6, 10_000), (u32::MAX, 10_000)] {
            paused(attempt, 1.0, None, expect);
        }
    }

    #[test]
    fn half_of_a_pause_is_chance() {
        paused(2, 0.0, None, 500);
        paused(2, 0.5, None, 750);
    }

    #[test]
    fn what_the_target_asks_for_is_the_least() {
        paused(1, 0.0, Some(30), 30_000);
        paused(3, 1.0, Some(0), 2000);
    }

    fn asked(retry: &'static str, date: Option<&'static str>, expect: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_static(date));
        }
        assert_eq!(retry_after(&headers), expect.map(Duration::from_secs), "{retry}");
    }

    #[test]
    fn the_target_asks_in_seconds() {
        asked("7", None, Some(7));
        asked("-7", None, None);
        asked("soon", None, None);
    }

    #[test]
    fn the_target_asks_by_a_date() {
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        asked("Sun, 06 Nov 1994 08:50:37 GMT", now, Some(60));
        asked("Sun, 06 Nov 1994 08:00:00 GMT", now, Some(0));
        asked("Sun, 06 Nov 1994 08:50:37 GMT", None, None);
    }
}
