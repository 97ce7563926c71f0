//! Keys of run records. Pure.
//!
//! The key of a record contains its summary, so that a listing of keys is a listing of runs. No record has to be
//! read, and no index has to be updated by concurrent processes.
//!
//! ```text
//! runs/20261119/20261119T143656Z-openshift-namespaces-9f3c0a1b2c3d4e5f~1.1795876216512.real.held.2.1.0.0.3.1.0.1234.ah
//!      day      run                                                    summary
//! ```

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use qontract_access::Mode;
use qontract_runtime::RunState;

/// The key prefix of run records.
pub const RUNS_PREFIX: &str = "runs/";

/// Separates the run from its summary. The character is never part of a run id.
const SEPARATOR: char = '~';

/// The version of the summary. A key with another version is valid, but its record has to be read for the summary.
const SUMMARY_VERSION: &str = "1";

/// The id of a run: `TIME-INTEGRATION-SUFFIX`, such as `20261119T143656Z-openshift-namespaces-9f3c0a1b2c3d4e5f`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// Creates the id of a run that starts now. `random` makes it unique: two processes that start in the same
    /// second have different ids.
    pub fn new(integration: &str, start: Timestamp, random: u64) -> Self {
        Self(format!("{}-{integration}-{random:016x}", start.strftime("%Y%m%dT%H%M%SZ")))
    }

    /// Parses an id. Its characters are safe in file names and keys.
    pub fn parse(text: &str) -> Option<Self> {
        let is_allowed = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
        let (time, rest) = text.split_once('-')?;
        let (integration, _) = rest.rsplit_once('-')?;
        let is_time = time.len() == 16
            && time.bytes().enumerate().all(|(index, byte)| match index {
                8 => byte == b'T',
                15 => byte == b'Z',
                _ => byte.is_ascii_digit(),
            });
        (is_time && !integration.is_empty() && text.chars().all(is_allowed)).then(|| Self(text.to_owned()))
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The integration in the id.
    pub fn integration(&self) -> &str {
        self.0.split_once('-').and_then(|(_, rest)| rest.rsplit_once('-')).map_or("", |(name, _)| name)
    }

    /// The start time; `None` if the date in the id does not exist.
    pub fn start(&self) -> Option<Timestamp> {
        Timestamp::strptime("%Y%m%dT%H%M%S%z", format!("{}+0000", &self.0[..15])).ok()
    }

    /// The start time to the second, as in the id: `20261119T143656Z`.
    pub fn second(&self) -> &str {
        &self.0[..16]
    }

    /// The day on which the run started: `20261119`.
    pub fn day(&self) -> &str {
        &self.0[..8]
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of changes of each kind in the plan of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangesByKind {
    /// Created objects.
    pub add: usize,
    /// Updated objects.
    pub change: usize,
    /// Replaced objects.
    pub replace: usize,
    /// Removed objects.
    pub remove: usize,
}

impl ChangesByKind {
    /// The number of changes of all kinds.
    pub fn sum(self) -> usize {
        let Self { add, change, replace, remove } = self;
        add + change + replace + remove
    }
}

/// The summary of a run, which suffices to list and filter runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The time at which the record was stored, in milliseconds since 1970. It determines the order of runs that
    /// started in the same second.
    pub stored: i64,
    /// The mode of the run.
    pub mode: Mode,
    /// The state of the run.
    pub state: RunState,
    /// The planned changes of the run.
    pub changes: ChangesByKind,
    /// Number of changes that guards held.
    pub held: usize,
    /// Number of distinct errors.
    pub errors: usize,
    /// Number of changes of a real run that were not made.
    pub not_made: usize,
    /// The duration of the run.
    pub milliseconds: u64,
    /// Facts that listings filter by.
    pub facts: RunFacts,
}

/// Facts about a run that listings filter by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct RunFacts {
    /// Whether the record has the text of an approval.
    pub has_approval: bool,
    /// Whether guards held changes, in a run of any state.
    pub has_held: bool,
    /// Whether the run had nothing to do because the change of the data does not affect the integration.
    pub is_unaffected: bool,
    /// Whether earlier runs held removals that no run plans, because the data no longer declares their shards.
    pub has_unplanned_holds: bool,
}

/// Every state, with its name in keys.
const STATES: [(RunState, &str); 8] = [
    (RunState::Ok, "ok"),
    (RunState::Waiting, "waiting"),
    (RunState::Degraded, "degraded"),
    (RunState::Held, "held"),
    (RunState::NotKnown, "unknown"),
    (RunState::Failed, "failed"),
    (RunState::Interrupted, "interrupted"),
    (RunState::Running, "running"),
];

/// The modes, with their names in keys.
const MODES: [(Mode, &str); 2] = [(Mode::DryRun, "dry"), (Mode::Real, "real")];

impl RunFacts {
    /// The letter of each fact, and whether the fact is true.
    fn letters(self) -> [(char, bool); 4] {
        let Self { has_approval, has_held, is_unaffected, has_unplanned_holds } = self;
        [('a', has_approval), ('h', has_held), ('e', is_unaffected), ('u', has_unplanned_holds)]
    }

    fn parse(text: &str) -> Option<Self> {
        let facts = Self {
            has_approval: text.contains('a'),
            has_held: text.contains('h'),
            is_unaffected: text.contains('e'),
            has_unplanned_holds: text.contains('u'),
        };
        // Unknown, repeated and misplaced letters are refused.
        (facts.to_string() == text).then_some(facts)
    }
}

impl fmt::Display for RunFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.letters()
            .iter()
            .filter(|(_, is_true)| *is_true)
            .try_for_each(|(letter, _)| write!(f, "{letter}"))
    }
}

impl fmt::Display for RunSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stored, mode, state, changes, held, errors, not_made, milliseconds, facts } = self;
        let ChangesByKind { add, change, replace, remove } = changes;
        let mode = MODES.iter().find(|(one, _)| one == mode).map_or("", |(_, name)| name);
        let state = STATES.iter().find(|(one, _)| one == state).map_or("", |(_, name)| name);
        write!(f, "{SUMMARY_VERSION}.{stored}.{mode}.{state}.{add}.{change}.{replace}.{remove}")?;
        write!(f, ".{held}.{errors}.{not_made}.{milliseconds}.{facts}")
    }
}

impl RunSummary {
    /// Parses a summary; `None` if it has another version.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('.').collect();
        let [version, stored, mode, state, add, change, replace, remove, held, errors, not_made, took, facts] =
            fields[..]
        else {
            return None;
        };
        let name = |names: &'static [(RunState, &str)]| names.iter().find(|(_, name)| *name == state);
        (version == SUMMARY_VERSION).then_some(())?;
        Some(Self {
            stored: stored.parse().ok()?,
            mode: MODES.iter().find(|(_, name)| *name == mode)?.0,
            state: name(&STATES)?.0,
            changes: ChangesByKind {
                add: add.parse().ok()?,
                change: change.parse().ok()?,
                replace: replace.parse().ok()?,
                remove: remove.parse().ok()?,
            },
            held: held.parse().ok()?,
            errors: errors.parse().ok()?,
            not_made: not_made.parse().ok()?,
            milliseconds: took.parse().ok()?,
            facts: RunFacts::parse(facts)?,
        })
    }
}

/// The key of a run record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunKey {
    /// The id of the run.
    pub run: RunId,
    /// The summary; `None` if another version of this program wrote it.
    pub summary: Option<RunSummary>,
    /// The text of the key.
    text: String,
}

impl RunKey {
    /// Creates the key of a record with this summary.
    pub fn new(run: RunId, summary: RunSummary) -> Self {
        let text = format!("{}{summary}", Self::prefix(&run));
        Self { run, summary: Some(summary), text }
    }

    /// Parses a key; `None` if it is not the key of a record.
    pub fn parse(key: &str) -> Option<Self> {
        let (day, name) = key.strip_prefix(RUNS_PREFIX)?.split_once('/')?;
        let (run, summary) = name.split_once(SEPARATOR)?;
        let run = RunId::parse(run).filter(|run| run.day() == day)?;
        Some(Self { run, summary: RunSummary::parse(summary), text: key.to_owned() })
    }

    /// The prefix that only the keys of this run have.
    pub fn prefix(run: &RunId) -> String {
        format!("{RUNS_PREFIX}{}/{run}{SEPARATOR}", run.day())
    }

    /// The text of the key.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key by which runs are sorted: by start, and by end if several runs started in the same second.
    pub fn order(&self) -> (&str, i64, &str) {
        let stored = self.summary.as_ref().map_or(0, |summary| summary.stored);
        (self.run.second(), stored, self.run.as_str())
    }
}

/// Maximum number of days that are listed one by one.
const MAX_LISTED_DAYS: usize = 31;

/// The key prefixes of the days since a time, below `prefix`, the newest first. Without a time, or if there would be
/// too many days, only `prefix` itself is returned.
pub fn days_since(prefix: &str, since: Option<Timestamp>, now: Timestamp) -> Vec<String> {
    let Some(since) = since else { return vec![prefix.to_owned()] };
    let date = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
    let (first, last) = (date(since), date(now));
    let mut prefixes = Vec::new();
    let mut day = last;
    while day >= first {
        if prefixes.len() == MAX_LISTED_DAYS {
            return vec![prefix.to_owned()];
        }
        prefixes.push(format!("{prefix}{}/", day.strftime("%Y%m%d")));
        let Ok(before) = day.yesterday() else { break };
        day = before;
    }
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> RunSummary {
        RunSummary {
            stored: 1_795_876_216_512,
            mode: Mode::Real,
            state: RunState::Held,
            changes: ChangesByKind { add: 2, change: 1, replace: 0, remove: 4 },
            held: 3,
            errors: 1,
            not_made: 0,
            milliseconds: 1234,
            facts: RunFacts { has_approval: true, has_held: true, ..RunFacts::default() },
        }
    }

    fn id(text: &str) -> RunId {
        RunId::parse(text).expect("an id")
    }

    #[test]
    fn a_key_is_parsed_into_what_it_was_made_of() {
        let run = RunId::new("openshift-namespaces", "2026-11-19T14:36:56.9Z".parse().unwrap(), 0x9f3c);
        assert_eq!(run.as_str(), "20261119T143656Z-openshift-namespaces-0000000000009f3c");
        assert_eq!((run.integration(), run.day()), ("openshift-namespaces", "20261119"));
        assert_eq!(run.start(), Some("2026-11-19T14:36:56Z".parse().unwrap()));
        assert_eq!(id("20269919T143656Z-a-b").start(), None);
        let key = RunKey::new(run.clone(), summary());
        assert_eq!(
            key.as_str(),
            format!("runs/20261119/{run}~1.1795876216512.real.held.2.1.0.4.3.1.0.1234.ah")
        );
        assert_eq!(RunKey::parse(key.as_str()), Some(key));
    }

    #[test]
    fn every_state_mode_and_fact_is_parsed_again() {
        for (state, _) in STATES {
            for (mode, _) in MODES {
                for bits in 0..16 {
                    let facts = RunFacts {
                        has_approval: bits & 1 > 0,
                        has_held: bits & 2 > 0,
                        is_unaffected: bits & 4 > 0,
                        has_unplanned_holds: bits & 8 > 0,
                    };
                    let summary = RunSummary { mode, state, facts, ..summary() };
                    assert_eq!(RunSummary::parse(&summary.to_string()), Some(summary));
                }
            }
        }
    }

    #[test]
    fn a_key_of_another_version_has_no_summary() {
        for text in [
            "2.1.real.held",
            "",
            "1.x.real.held.2.1.0.4.3.1.0.1234.ah",
            "1.1.real.held.2.1.0.4.3.1.0.1234.ha",
        ] {
            let key = RunKey::parse(&format!("runs/20261119/20261119T143656Z-a-b~{text}")).expect("a key");
            assert_eq!((key.run.as_str(), key.summary), ("20261119T143656Z-a-b", None), "{text}");
        }
    }

    #[test]
    fn other_keys_are_not_records() {
        for text in [
            "runs/20261119/20261119T143656Z-a-b",
            "runs/20261118/20261119T143656Z-a-b~1",
            "runs/20261119T143656Z-a-b~1",
            "rounds/20261119/20261119T143656Z-a-b~1",
            "runs/2026111_/2026111_T143656Z-a-b~1",
            "runs/20261119/20261119T143656Z-b~1",
            "runs/20261119/20261119T143656Z-a/b-c~1",
        ] {
            assert_eq!(RunKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn no_prefix_of_a_run_matches_another_run() {
        let (short, long) = (id("20261119T143656Z-a-b"), id("20261119T143656Z-a-bc"));
        assert!(!RunKey::new(long, summary()).as_str().starts_with(&RunKey::prefix(&short)));
    }

    #[test]
    fn the_last_day_is_listed_by_two_prefixes_and_a_year_by_one() {
        let now: Timestamp = "2026-03-01T09:00:00Z".parse().unwrap();
        let since = |text: &str| days_since(RUNS_PREFIX, Some(text.parse().unwrap()), now);
        assert_eq!(since("2026-02-28T09:00:00Z"), ["runs/20260301/", "runs/20260228/"]);
        assert_eq!(since("2026-03-01T08:00:00Z"), ["runs/20260301/"]);
        assert_eq!(since("2025-03-01T08:00:00Z"), ["runs/"]);
        assert_eq!(since("2026-03-02T00:00:00Z"), [""; 0]);
        assert_eq!(days_since("rounds/", None, now), ["rounds/"]);
    }
}
