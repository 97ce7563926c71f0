//! Tracks invalid data: when the data became invalid, which errors it has, and when it is logged next.
//!
//! Loops and servers continue with the last valid bundle, so changes to the data no longer reach the targets.
//! **Invariant:** invalid data is logged at least once an hour and is shown by the `up` table, by metrics, by the
//! health listener and by `/healthz` of a server that watches a data repo
//! (`invalid_data_is_reported_when_it_changes_and_then_hourly`).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use qontract_diagnostics::human;
use qontract_diagnostics::{Report, Severity, Sources, pluralize, position, sanitize};
use qontract_telemetry::data_validity::DataValidityGauges;
use qontract_telemetry::log::{Level, Log, LogLine};
use serde::Serialize;

pub use qontract_report::DataUse;

/// Interval at which invalid data is logged again.
const REPORT_INTERVAL: Duration = Duration::from_hours(1);

/// Maximum number of characters of a message that a log line quotes.
const MAX_MESSAGE_CHARS: usize = 200;

/// The errors of invalid data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataErrors {
    /// Number of errors.
    pub count: usize,
    /// Location of the first error, as `file:line:column`; `None` if the data cannot be read at all.
    pub place: Option<String>,
    /// Message of the first error.
    pub message: String,
}

impl DataErrors {
    /// The errors among the findings; `None` if no finding is an error.
    pub fn of(report: &Report, sources: &dyn Sources) -> Option<Self> {
        let first = report.findings().iter().find(|finding| finding.is_error())?;
        let file = sources.display(&first.location.file);
        let text = first.location.span.and_then(|span| Some((span, sources.text(&first.location.file)?)));
        let place = match text {
            Some((span, text)) => {
                let at = position(&text, span.start as usize);
                format!("{file}:{}:{}", at.line, at.column)
            }
            None => file.into_owned(),
        };
        let place = Some(place).filter(|place| !place.is_empty());
        Some(Self { count: report.count(Severity::Error), place, message: first.message.clone() })
    }

    /// Creates the error of data that cannot be read at all.
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self { count: 1, place: None, message: message.into() }
    }

    /// `3 errors, the first at data/a.yml:3:5: …`
    fn describe(&self) -> String {
        let Self { count, place, message } = self;
        let message: String = sanitize(message).chars().take(MAX_MESSAGE_CHARS).collect();
        let at = place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        match (count, at.is_empty()) {
            (1, _) => format!("{at}{message}"),
            (_, true) => format!("{}, the first: {message}", pluralize(*count, "error")),
            (_, false) => format!("{}, the first at {at}{message}", pluralize(*count, "error")),
        }
    }
}

/// Data that is invalid now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidData {
    /// The time at which the data became invalid.
    pub since: Timestamp,
    /// The errors of the data.
    pub errors: DataErrors,
    /// The bundle that is used instead; `None` if no bundle has been valid yet.
    pub bundle: Option<String>,
}

impl InvalidData {
    /// The time at which the data became invalid, and the number of errors: `data invalid since 14:02 UTC (3
    /// errors)`.
    pub fn title(&self, now: Timestamp) -> String {
        let (since, errors) = (clock_time(self.since, now), pluralize(self.errors.count, "error"));
        format!("data invalid since {since} ({errors})")
    }

    /// The title and the bundle that is used, without file names, because `/healthz` of a data server also shows this
    /// text to clients without a token.
    pub fn public_summary(&self, now: Timestamp, activity: DataUse) -> String {
        format!("{}; {}", self.title(now), activity.describe(self.bundle.as_deref()))
    }

    /// The title, the first error and the bundle that is used, in one line.
    pub fn summary(&self, now: Timestamp, activity: DataUse) -> String {
        let errors = self.errors.place.as_ref().map(|place| format!(", the first at {place}"));
        let bundle = activity.describe(self.bundle.as_deref());
        format!("{}{}; {bundle}", self.title(now), errors.unwrap_or_default())
    }
}

/// The time of day, with the date unless the date is that of `now`.
fn clock_time(at: Timestamp, now: Timestamp) -> String {
    let is_today = at.strftime("%F").to_string() == now.strftime("%F").to_string();
    at.strftime(if is_today { "%H:%M UTC" } else { "%F %H:%M UTC" }).to_string()
}

/// A change in the validity of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidityChange {
    /// The data became invalid, or its errors changed.
    Invalid,
    /// The data is still invalid and must be logged again.
    StillInvalid,
    /// The data is valid again, after it was invalid for this time.
    ValidAgain(Duration),
}

/// Tracks whether data is valid.
#[derive(Debug, Default)]
pub struct DataValidity {
    invalid: Option<InvalidData>,
    /// The time at which the invalid data was last logged.
    logged: Option<Timestamp>,
}

impl DataValidity {
    /// The data, if it is invalid.
    pub fn invalid(&self) -> Option<&InvalidData> {
        self.invalid.as_ref()
    }

    /// Records that the data has these errors, and that `bundle` is used instead.
    pub fn fail(&mut self, errors: DataErrors, bundle: Option<String>, now: Timestamp) -> ValidityChange {
        let since = self.invalid.as_ref().map_or(now, |invalid| invalid.since);
        self.invalid = Some(InvalidData { since, errors, bundle });
        self.logged = Some(now);
        ValidityChange::Invalid
    }

    /// Records that the data is valid. Returns a change if the data was invalid.
    pub fn recover(&mut self, now: Timestamp) -> Option<ValidityChange> {
        self.logged = None;
        self.invalid.take().map(|invalid| ValidityChange::ValidAgain(elapsed(invalid.since, now)))
    }

    /// Whether the invalid data must be logged again.
    pub fn due_report(&mut self, now: Timestamp) -> Option<ValidityChange> {
        let logged = self.logged?;
        // A clock that was set back must not suppress the log line.
        let is_due = now < logged || elapsed(logged, now) >= REPORT_INTERVAL;
        is_due.then(|| {
            self.logged = Some(now);
            ValidityChange::StillInvalid
        })
    }
}

/// The time between two timestamps; zero if the clock was set back.
fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Logs whether data is valid and sets metrics about its validity.
pub struct DataReporter {
    /// The log to which changes in validity are written.
    pub log: Arc<Log>,
    /// The gauges of invalid data.
    pub gauges: DataValidityGauges,
    /// The use of the last valid bundle while the data is invalid.
    pub activity: DataUse,
}

impl DataReporter {
    /// Reports a change; `invalid` is the data after the change, if it is invalid, and `bundle` is in use.
    pub fn report(
        &self,
        change: &ValidityChange,
        invalid: Option<&InvalidData>,
        bundle: Option<&str>,
        now: Timestamp,
    ) {
        self.gauges.set(invalid.map(|invalid| invalid.since.as_second()));
        if let Some(line) = line(change, invalid, self.activity, bundle, now) {
            self.log.write(&line);
        }
    }
}

/// The log line about a change in validity.
fn line(
    change: &ValidityChange,
    invalid: Option<&InvalidData>,
    activity: DataUse,
    bundle: Option<&str>,
    now: Timestamp,
) -> Option<LogLine> {
    let text = match (change, invalid) {
        (ValidityChange::ValidAgain(lasted), _) => {
            let (lasted, bundle) = (human::duration(*lasted), activity.describe(bundle));
            let text = format!("data is valid again after {lasted}; {bundle}");
            return Some(LogLine::new(Level::Info, text));
        }
        (_, None) => return None,
        (ValidityChange::Invalid, Some(invalid)) => {
            let bundle = activity.describe(invalid.bundle.as_deref());
            let still = if invalid.bundle.is_some() { "still " } else { "" };
            format!("data is invalid: {}; {still}{bundle}", invalid.errors.describe())
        }
        (ValidityChange::StillInvalid, Some(invalid)) => {
            let bundle = activity.describe(invalid.bundle.as_deref());
            let still = if invalid.bundle.is_some() { "still " } else { "" };
            let age = human::duration(elapsed(invalid.since, now));
            format!("data has been invalid for {age}: {}; {still}{bundle}", invalid.errors.describe())
        }
    };
    let mut line = LogLine::new(Level::Error, text);
    if let Some(InvalidData { since, errors, .. }) = invalid {
        line = line
            .with_detail("invalid_since", since.strftime("%FT%TZ").to_string())
            .with_detail("errors", errors.count);
    }
    Some(line)
}

/// The validity of data, as JSON.
#[derive(Debug, Serialize)]
pub struct DataStatus {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
    bundle: Option<String>,
}

impl DataStatus {
    /// Whether the data is valid.
    #[cfg(test)]
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Creates the status of data; `bundle` is the bundle in use.
    pub fn new(invalid: Option<&InvalidData>, bundle: Option<String>) -> Self {
        Self {
            valid: invalid.is_none(),
            invalid_since: invalid.map(|invalid| invalid.since.strftime("%FT%TZ").to_string()),
            errors: invalid.map(|invalid| invalid.errors.count),
            first_error: invalid.and_then(|invalid| invalid.errors.place.clone()),
            bundle,
        }
    }
}

#[cfg(test)]
mod tests {
    use qontract_diagnostics::NoSources;
    use qontract_telemetry::log::LineFormat;

    use super::*;

    const START: i64 = 1_800_000_000;
    const SHA: &str = "ecc2860aaa1c1111";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(START + seconds).unwrap()
    }

    fn errors(count: usize) -> DataErrors {
        let place = Some("data/a.yml:3:5".to_owned());
        DataErrors { count, place, message: "`$ref` points to nothing".to_owned() }
    }

    #[test]
    fn invalid_data_is_reported_when_it_changes_and_then_hourly() {
        let mut validity = DataValidity::default();
        assert_eq!(validity.due_report(at(0)), None);
        assert_eq!(validity.recover(at(0)), None);
        let bundle = || Some(SHA.to_owned());
        assert_eq!(validity.fail(errors(1), bundle(), at(0)), ValidityChange::Invalid);
        assert_eq!(validity.due_report(at(3_599)), None);
        assert_eq!(validity.due_report(at(3_600)), Some(ValidityChange::StillInvalid));
        assert_eq!(validity.due_report(at(3_601)), None);
        assert_eq!(validity.due_report(at(7_199)), None);
        assert_eq!(validity.due_report(at(7_200)), Some(ValidityChange::StillInvalid));
        // Other errors are reported immediately and do not reset the start time.
        assert_eq!(validity.fail(errors(2), bundle(), at(7_300)), ValidityChange::Invalid);
        assert_eq!(validity.due_report(at(10_800)), None);
        assert_eq!(validity.invalid().map(|invalid| invalid.since), Some(at(0)));
        // A clock that is set back does not suppress the report.
        assert_eq!(validity.due_report(at(-10)), Some(ValidityChange::StillInvalid));
        let lasted = ValidityChange::ValidAgain(Duration::from_secs(10_900));
        assert_eq!(validity.recover(at(10_900)), Some(lasted));
        assert_eq!((validity.due_report(at(99_999)), validity.invalid()), (None, None));
    }

    #[test]
    fn lines_name_the_errors_the_age_and_the_bundle_in_use() {
        let check = |change: ValidityChange, errors: DataErrors, bundle: Option<&str>, expect: &str| {
            let invalid = InvalidData { since: at(0), errors, bundle: bundle.map(str::to_owned) };
            let line = line(&change, Some(&invalid), DataUse::Reconcile, bundle, at(3_725)).unwrap();
            let text = line.format(LineFormat::Levelled, at(0));
            assert_eq!(text, expect);
        };
        check(
            ValidityChange::Invalid,
            errors(1),
            Some(SHA),
            "[ERROR] data is invalid: data/a.yml:3:5: `$ref` points to nothing; still reconciling bundle ecc2860",
        );
        check(
            ValidityChange::StillInvalid,
            errors(3),
            Some(SHA),
            "[ERROR] data has been invalid for 1h02m: 3 errors, the first at data/a.yml:3:5: `$ref` points to nothing; still reconciling bundle ecc2860",
        );
        check(
            ValidityChange::Invalid,
            DataErrors::unreadable("cannot list `data`"),
            None,
            "[ERROR] data is invalid: cannot list `data`; no valid bundle to reconcile yet",
        );
        check(
            ValidityChange::ValidAgain(Duration::from_secs(125)),
            errors(1),
            Some("abcdef0123"),
            "[INFO] data is valid again after 2m05s; reconciling bundle abcdef0",
        );
        assert!(line(&ValidityChange::Invalid, None, DataUse::Serve, None, at(0)).is_none());
    }

    #[test]
    fn a_title_contains_the_date_unless_it_is_today() {
        let invalid = InvalidData { since: at(0), errors: errors(2), bundle: Some(SHA.to_owned()) };
        assert_eq!(invalid.title(at(60)), "data invalid since 08:00 UTC (2 errors)");
        assert_eq!(invalid.title(at(86_400)), "data invalid since 2027-01-15 08:00 UTC (2 errors)");
        assert_eq!(
            invalid.summary(at(60), DataUse::Serve),
            "data invalid since 08:00 UTC (2 errors), the first at data/a.yml:3:5; serving bundle ecc2860"
        );
        assert_eq!(
            invalid.public_summary(at(60), DataUse::Serve),
            "data invalid since 08:00 UTC (2 errors); serving bundle ecc2860"
        );
    }

    #[test]
    fn warnings_alone_are_not_errors() {
        assert_eq!(DataErrors::of(&Report::new(Vec::new()), &NoSources), None);
    }
}
