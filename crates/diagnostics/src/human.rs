//! Formats durations, digests and long strings for people.

use std::time::Duration;

use crate::pluralize;

/// Formats a duration as one word: `34ms`, `1.2s`, `2m05s`, `1h02m`, `3d04h`.
pub fn duration(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0 => format!("{millis}ms"),
        1..10 => format!("{seconds}.{}s", millis % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Abbreviates a SHA or commit.
pub fn short_sha(sha: &str) -> String {
    sha.chars().take(7).collect()
}

/// The first `max` characters of a string, followed by the number of omitted characters.
///
/// **Invariant:** the number refers to the original string, even if the string was already shortened.
///
/// ```
/// use qontract_diagnostics::human::shortened;
/// assert_eq!(shortened("abcdef", 4), "abcd… (2 more characters)");
/// assert_eq!(shortened(&shortened("abcdef", 4), 3), "abc… (3 more characters)");
/// ```
pub fn shortened(text: &str, max: usize) -> String {
    let (shown, omitted) = split_omitted(text);
    match shown.char_indices().nth(max) {
        Some((end, _)) => {
            let omitted = omitted.saturating_add(shown[end..].chars().count());
            format!("{}… ({})", &shown[..end], pluralize(omitted, "more character"))
        }
        None => text.to_owned(),
    }
}

/// The shown part of a string, and the number of characters that [`shortened`] omitted from it.
fn split_omitted(text: &str) -> (&str, usize) {
    let parse = || {
        let (shown, rest) = text.rsplit_once("… (")?;
        let count =
            rest.strip_suffix(" more characters)").or_else(|| rest.strip_suffix(" more character)"))?;
        Some((shown, count.parse().ok()?))
    };
    parse().unwrap_or((text, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_people_would_choose() {
        for (millis, expect) in [
            (0, "0ms"),
            (34, "34ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (1_290, "1.2s"),
            (9_999, "9.9s"),
            (10_000, "10s"),
            (59_999, "59s"),
            (60_000, "1m00s"),
            (125_000, "2m05s"),
            (3_599_000, "59m59s"),
            (3_600_000, "1h00m"),
            (86_399_000, "23h59m"),
            (86_400_000, "1d00h"),
            (273_600_000, "3d04h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), expect);
        }
    }

    #[test]
    fn a_string_that_is_shortened_twice_has_the_count_of_the_original() {
        let check = |text: &str, expect: &str| assert_eq!(shortened(text, 3), expect);
        check("äbc", "äbc");
        check("äbcd", "äbc… (1 more character)");
        check("äbc… (1 more character)", "äbc… (1 more character)");
        check("äbcd… (1 more character)", "äbc… (2 more characters)");
        check("äbcd… (997 more characters)", "äbc… (998 more characters)");
        check("ab… (x more characters)", "ab…… (20 more characters)");
    }
}
