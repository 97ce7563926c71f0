//! Parses points in time on the command line: an age, a day, or a timestamp.

use jiff::{SignedDuration, Timestamp};
use qontract_config::UsageError;

/// Parses a time: `30m`, `2h` or `7d` before `now`, a day, or an RFC 3339 timestamp.
pub fn parse(text: &str, now: Timestamp) -> Result<Timestamp, UsageError> {
    let at = ago(text)
        .and_then(|ago| now.checked_sub(ago).ok())
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(|| {
            let day = text.parse::<jiff::civil::Date>().ok()?;
            Some(day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
        });
    let wrong = || {
        UsageError(format!(
            "`{text}` is not a time: use `30m`, `2h`, `7d`, `2026-11-17` or `2026-11-17T13:00:00Z`"
        ))
    };
    at.ok_or_else(wrong)
}

/// A number of seconds, minutes, hours or days.
fn ago(text: &str) -> Option<SignedDuration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = is_number.then(|| digits.parse().ok()).flatten()?;
    Some(SignedDuration::from_secs(number.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<i64>) {
        let at = parse(text, Timestamp::constant(1_800_000_000, 0)).ok();
        assert_eq!(at.map(Timestamp::as_second), expect, "{text}");
    }

    #[test]
    fn a_time_is_an_age_a_day_or_a_timestamp() {
        check("5s", Some(1_799_999_995));
        check("30m", Some(1_799_998_200));
        check("2h", Some(1_799_992_800));
        check("7d", Some(1_799_395_200));
        check("2027-01-15", Some(1_799_971_200));
        check("2027-01-15T08:00:00Z", Some(1_800_000_000));
        check("2027-01-15T09:00:00+01:00", Some(1_800_000_000));
        for wrong in [
            "",
            "h",
            "2",
            "2w",
            "-2h",
            "+2h",
            "99999999999999999999h",
            "9999999999999999h",
            "yesterday",
            "2027-13-01",
        ] {
            check(wrong, None);
        }
    }
}
