//! The values of an integration's flags.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_diagnostics::suggest::nearest;

use crate::key::ShardKey;
use crate::meta::{Flag, FlagKind};

/// A value of a selecting flag that matches no shard, usually a typo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedSelector {
    /// The flag, without dashes.
    pub flag: &'static str,
    /// The value of the flag.
    pub value: String,
    /// Whether the flag excludes shards. Excluding a shard that does not exist is harmless.
    pub excludes: bool,
    /// The most similar name, if any.
    pub nearest: Option<String>,
}

impl fmt::Display for UnmatchedSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`--{} {}` matches nothing in the data", self.flag, self.value)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// Values of an integration's flags, by name.
///
/// ```
/// use qontract_runtime::{IntegrationMeta, Options, ShardKey};
///
/// let meta = IntegrationMeta::new("groups", "Manages groups").selects("cluster-name", "cluster");
/// let keys = ["prod", "stage"].map(|name| ShardKey::new([("cluster", name)]));
///
/// let mut options = Options::default();
/// options.add("cluster-name", "stage");
/// assert_eq!(keys.each_ref().map(|key| options.select(&meta.flags, key)), [false, true]);
///
/// options.add("cluster-name", "prd");
/// let unmatched = options.unmatched(&meta.flags, &keys.each_ref());
/// let expect = "`--cluster-name prd` matches nothing in the data; did you mean `prod`?";
/// assert_eq!(unmatched[0].to_string(), expect);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, Vec<String>>);

impl Options {
    /// Adds a value of a flag.
    pub fn add(&mut self, flag: &str, value: impl Into<String>) {
        self.0.entry(flag.to_owned()).or_default().push(value.into());
    }

    /// The values of a flag, in order.
    pub fn values(&self, flag: &str) -> &[String] {
        self.0.get(flag).map_or(&[], Vec::as_slice)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, flag: &str) -> bool {
        self.0.contains_key(flag)
    }

    /// The number of shards to process concurrently, if a flag sets it.
    pub fn concurrency(&self, flags: &[Flag]) -> Option<usize> {
        let mut flags = flags.iter().filter(|flag| flag.kind == FlagKind::Concurrency);
        flags.find_map(|flag| self.values(flag.name).last()?.parse().ok())
    }

    /// A warning for each switch that is on and has no effect.
    pub fn ignored(&self, flags: &[Flag]) -> Vec<String> {
        let ignored = flags.iter().filter_map(|flag| match flag.kind {
            FlagKind::Ignored(why) if self.is_on(flag.name) => {
                Some(format!("`--{}` has no effect: {why}", flag.name))
            }
            _ => None,
        });
        ignored.collect()
    }

    /// Whether a shard is selected by its labels.
    pub fn select_labelled(&self, flags: &[Flag], has_label: impl Fn(&str) -> bool) -> bool {
        flags.iter().all(|flag| match flag.kind {
            FlagKind::Label { label, has } if self.is_on(flag.name) => has_label(label) == has,
            _ => true,
        })
    }

    /// Whether no flag was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Flags and their values, sorted by flag.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(flag, values)| (flag.as_str(), values.as_slice()))
    }

    /// Values of selecting flags that no key has.
    pub fn unmatched(&self, flags: &[Flag], keys: &[&ShardKey]) -> Vec<UnmatchedSelector> {
        let mut unmatched = Vec::new();
        for flag in flags {
            let (dimension, excludes) = match flag.kind {
                FlagKind::Selects(dimension) => (dimension, false),
                FlagKind::Excludes(dimension) => (dimension, true),
                FlagKind::Value
                | FlagKind::Switch
                | FlagKind::Label { .. }
                | FlagKind::Concurrency
                | FlagKind::Ignored(_) => continue,
            };
            let existing: BTreeSet<&str> = keys.iter().filter_map(|key| key.get(dimension)).collect();
            for value in self.values(flag.name).iter().filter(|value| !existing.contains(value.as_str())) {
                let nearest = nearest(value, existing.iter().copied()).map(str::to_owned);
                unmatched.push(UnmatchedSelector {
                    flag: flag.name,
                    value: value.clone(),
                    excludes,
                    nearest,
                });
            }
        }
        unmatched
    }

    /// Whether a shard is selected by the flags.
    pub fn select(&self, flags: &[Flag], key: &ShardKey) -> bool {
        flags.iter().all(|flag| {
            let values = self.values(flag.name);
            let named =
                |dimension| key.get(dimension).is_some_and(|is| values.iter().any(|value| value == is));
            match flag.kind {
                FlagKind::Selects(dimension) => values.is_empty() || named(dimension),
                FlagKind::Excludes(dimension) => !named(dimension),
                FlagKind::Value
                | FlagKind::Switch
                | FlagKind::Label { .. }
                | FlagKind::Concurrency
                | FlagKind::Ignored(_) => true,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::key::ShardKey;
    use crate::meta::{FlagKind, IntegrationMeta, Switch};

    fn check(given: &[(&str, &str)], expected: &[&str]) {
        let meta = IntegrationMeta::new("x", "")
            .selects("cluster-name", "cluster")
            .excludes("exclude-cluster", "cluster");
        let mut options = Options::default();
        for (flag, value) in given {
            options.add(flag, *value);
        }
        let keys = ["prod-01", "prod-01-eu", "stage"].map(|name| ShardKey::new([("cluster", name)]));
        let selected: Vec<&str> = keys
            .iter()
            .filter(|key| options.select(&meta.flags, key))
            .filter_map(|key| key.get("cluster"))
            .collect();
        assert_eq!(selected, expected);
    }

    fn with_switches(given: &[(&str, &str)]) -> (IntegrationMeta, Options) {
        let kind = |has| FlagKind::Label { label: "internal", has };
        let meta = IntegrationMeta::new("x", "")
            .switches(
                Switch { name: "internal", help: "", kind: kind(true) },
                Switch { name: "external", help: "", kind: kind(false) },
            )
            .flag("use-jump-host", "", FlagKind::Ignored("no jump host is used"))
            .flag("thread-pool-size", "", FlagKind::Concurrency);
        let mut options = Options::default();
        for (flag, value) in given {
            options.add(flag, *value);
        }
        (meta, options)
    }

    #[test]
    fn switches_select_by_labels() {
        let check = |given: &[(&str, &str)], internal: bool, external: bool| {
            let (meta, options) = with_switches(given);
            let select =
                |labels: &[&str]| options.select_labelled(&meta.flags, |label| labels.contains(&label));
            assert_eq!((select(&["internal"]), select(&[])), (internal, external), "{given:?}");
        };
        check(&[], true, true);
        check(&[("internal", "")], true, false);
        check(&[("external", "")], false, true);
    }

    #[test]
    fn the_last_concurrency_wins_and_ignored_switches_are_reported() {
        let (meta, options) = with_switches(&[("thread-pool-size", "3"), ("thread-pool-size", "7")]);
        assert_eq!(options.concurrency(&meta.flags), Some(7));
        assert_eq!(options.ignored(&meta.flags), [""; 0]);
        let (meta, options) = with_switches(&[("use-jump-host", "")]);
        assert_eq!(options.concurrency(&meta.flags), None);
        assert_eq!(options.ignored(&meta.flags), ["`--use-jump-host` has no effect: no jump host is used"]);
    }

    #[test]
    fn a_mistyped_name_is_reported_with_the_nearest() {
        let meta = IntegrationMeta::new("x", "").selects("cluster-name", "cluster");
        let keys = ["cliffs-stage", "harbor-prod"].map(|name| ShardKey::new([("cluster", name)]));
        let unmatched = |value: &str| {
            let mut options = Options::default();
            options.add("cluster-name", value);
            let selectors = options.unmatched(&meta.flags, &keys.each_ref());
            selectors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(unmatched("cliffs-stage"), [""; 0]);
        let expect = "`--cluster-name clifs-stage` matches nothing in the data; did you mean `cliffs-stage`?";
        assert_eq!(unmatched("clifs-stage"), [expect]);
        assert_eq!(unmatched("q"), ["`--cluster-name q` matches nothing in the data"]);
        let meta = meta.excludes("exclude-cluster", "cluster");
        let mut options = Options::default();
        options.add("cluster-name", "q");
        options.add("exclude-cluster", "q");
        let selectors = options.unmatched(&meta.flags, &keys.each_ref());
        assert_eq!(selectors.iter().map(|one| one.excludes).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn flags_select_by_whole_values() {
        check(&[], &["prod-01", "prod-01-eu", "stage"]);
        check(&[("cluster-name", "prod-01-eu")], &["prod-01-eu"]);
        check(&[("cluster-name", "prod-01"), ("cluster-name", "stage")], &["prod-01", "stage"]);
        check(&[("exclude-cluster", "stage")], &["prod-01", "prod-01-eu"]);
        check(&[("cluster-name", "nope")], &[]);
    }
}
