//! The values of an integration's flags.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use qontract_diagnostics::suggest::nearest;

use crate::flag::{ArgumentKind, Flag, FlagKind};
use crate::key::ShardKey;

/// A value of a selecting or excluding flag that matches no shard. It is usually a typo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedSelector {
    /// The flag, without dashes.
    pub flag: &'static str,
    /// The value of the flag.
    pub value: String,
    /// The environment variable that provided the value, if the value does not come from the flag itself.
    pub variable: Option<String>,
    /// Whether the flag excludes shards. An excluding value that matches no shard is harmless.
    pub excludes: bool,
    /// The most similar name, if any.
    pub nearest: Option<String>,
}

impl fmt::Display for UnmatchedSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`--{} {}`", self.flag, self.value)?;
        if let Some(variable) = &self.variable {
            write!(f, " from `${variable}`")?;
        }
        f.write_str(" matches nothing in the data")?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// The value of an environment variable that is not valid for its flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`${variable}` sets `{flag}` to `{value}`; expected {expected}")]
pub struct InvalidVariable {
    /// The name of the variable.
    pub variable: String,
    /// The flag, as written on the command line.
    pub flag: String,
    /// The value of the variable.
    pub value: String,
    /// The values that are valid.
    pub expected: &'static str,
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
pub struct Options {
    values: BTreeMap<String, Vec<String>>,
    /// The environment variables that provided values, by flag.
    variables: BTreeMap<String, String>,
}

impl Options {
    /// Adds a value of a flag.
    pub fn add(&mut self, flag: &str, value: impl Into<String>) {
        self.values.entry(flag.to_owned()).or_default().push(value.into());
    }

    /// Takes the values of flags that are not given from their environment variables; `lookup` returns the
    /// value of a variable. An empty variable counts as unset. A switch whose opposite is given stays off.
    ///
    /// ```
    /// use qontract_runtime::{IntegrationMeta, Options};
    ///
    /// let meta = IntegrationMeta::new("x", "").selects("env-name", "env").variable("INTEGRATION_NAME");
    /// let mut options = Options::default();
    /// options.fill_from_environment(&meta.flags, |_| Some("stage prod".to_owned())).unwrap();
    /// assert_eq!(options.values("env-name"), ["stage", "prod"]);
    /// assert_eq!(options.variable_of("env-name"), Some("INTEGRATION_NAME"));
    /// ```
    pub fn fill_from_environment(
        &mut self,
        flags: &[Flag],
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<(), InvalidVariable> {
        for flag in flags {
            let Some(variable) = flag.variable else { continue };
            if self.is_on(flag.name) || flag.opposite.is_some_and(|opposite| self.is_on(opposite)) {
                continue;
            }
            let Some(value) = lookup(variable).filter(|value| !value.is_empty()) else { continue };
            let invalid = |expected| InvalidVariable {
                variable: variable.to_owned(),
                flag: flag.spelling(),
                value: value.clone(),
                expected,
            };
            let values = if flag.kind.is_switch() {
                match value.to_lowercase().as_str() {
                    "true" | "1" => vec!["true".to_owned()],
                    "false" | "0" => continue,
                    _ => return Err(invalid("`true` or `false`")),
                }
            } else if flag.kind == FlagKind::Concurrency && !value.parse().is_ok_and(|number: u16| number > 0)
            {
                return Err(invalid("a number from 1 to 65535"));
            } else if flag.kind.takes_several() {
                value.split_whitespace().map(str::to_owned).collect()
            } else {
                vec![value.clone()]
            };
            if !values.is_empty() {
                self.values.insert(flag.name.to_owned(), values);
                self.variables.insert(flag.name.to_owned(), variable.to_owned());
            }
        }
        Ok(())
    }

    /// The environment variable that provided the values of a flag, if the flag was not given.
    pub fn variable_of(&self, flag: &str) -> Option<&str> {
        self.variables.get(flag).map(String::as_str)
    }

    /// The flags whose values come from an environment variable, with the variable, sorted by flag.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(flag, variable)| (flag.as_str(), variable.as_str()))
    }

    /// The first required argument that is not given.
    pub fn missing<'f>(&self, flags: &'f [Flag]) -> Option<&'f Flag> {
        let is_required = |flag: &&Flag| flag.kind == FlagKind::Argument(ArgumentKind::Required);
        flags.iter().filter(is_required).find(|flag| !self.is_on(flag.name))
    }

    /// Whether a switch that prints the desired state is on.
    pub fn prints(&self, flags: &[Flag]) -> bool {
        flags.iter().any(|flag| flag.kind == FlagKind::Print && self.is_on(flag.name))
    }

    /// Whether the integration declares only a part of its shards because of a flag.
    pub fn restrict(&self, flags: &[Flag]) -> bool {
        flags.iter().any(|flag| flag.restricts && self.is_on(flag.name))
    }

    /// The values of a flag, in order.
    pub fn values(&self, flag: &str) -> &[String] {
        self.values.get(flag).map_or(&[], Vec::as_slice)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, flag: &str) -> bool {
        self.values.contains_key(flag)
    }

    /// The number of shards to process concurrently, if a flag sets it.
    pub fn concurrency(&self, flags: &[Flag]) -> Option<usize> {
        let mut flags = flags.iter().filter(|flag| flag.kind == FlagKind::Concurrency);
        flags.find_map(|flag| self.values(flag.name).last()?.parse().ok())
    }

    /// A warning for each switch that is on although it has no effect.
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
        self.values.is_empty()
    }

    /// Flags and their values, sorted by flag.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.values.iter().map(|(flag, values)| (flag.as_str(), values.as_slice()))
    }

    /// Values of selecting and excluding flags that occur in none of the keys.
    pub fn unmatched(&self, flags: &[Flag], keys: &[&ShardKey]) -> Vec<UnmatchedSelector> {
        let mut unmatched = Vec::new();
        for flag in flags {
            let (dimension, excludes) = match flag.kind {
                FlagKind::Selects(dimension) => (dimension, false),
                FlagKind::Excludes(dimension) => (dimension, true),
                FlagKind::Value
                | FlagKind::Argument(_)
                | FlagKind::Switch
                | FlagKind::Print
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
                    variable: self.variable_of(flag.name).map(str::to_owned),
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
                | FlagKind::Argument(_)
                | FlagKind::Switch
                | FlagKind::Print
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
    use crate::flag::{ArgumentKind, Flag, FlagKind, Switch};
    use crate::key::ShardKey;
    use crate::meta::IntegrationMeta;

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

    #[test]
    fn a_flag_that_restricts_the_declared_shards_counts_only_if_it_is_given() {
        let meta = IntegrationMeta::new("x", "")
            .flag("upstream", "", FlagKind::Value)
            .restricts_shards()
            .flag("image", "", FlagKind::Value);
        let mut options = Options::default();
        options.add("image", "i");
        assert!(!options.restrict(&meta.flags));
        options.add("upstream", "u");
        assert!(options.restrict(&meta.flags));
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

    fn from_environment(
        given: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Result<(IntegrationMeta, Options), String> {
        let (meta, mut options) = with_switches(given);
        let flags = meta.flags.iter().map(|flag| Flag {
            variable: Some(match flag.name {
                "internal" => "INTERNAL",
                "external" => "EXTERNAL",
                "thread-pool-size" => "THREADS",
                _ => "OTHER",
            }),
            ..*flag
        });
        let flags: Vec<_> = flags.collect();
        let lookup = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        options.fill_from_environment(&flags, lookup).map_err(|error| error.to_string())?;
        Ok((meta, options))
    }

    #[test]
    fn a_flag_that_is_given_comes_before_its_variable() {
        let threads = |given: &[(&str, &str)], variables: &[(&str, &str)]| {
            let (meta, options) = from_environment(given, variables).unwrap();
            let variable = options.variable_of("thread-pool-size").map(str::to_owned);
            (options.concurrency(&meta.flags), variable)
        };
        assert_eq!(threads(&[], &[]), (None, None));
        assert_eq!(threads(&[], &[("THREADS", "")]), (None, None));
        assert_eq!(threads(&[], &[("THREADS", "3")]), (Some(3), Some("THREADS".to_owned())));
        assert_eq!(threads(&[("thread-pool-size", "7")], &[("THREADS", "3")]), (Some(7), None));
    }

    #[test]
    fn a_switch_that_is_given_turns_off_the_variable_of_its_opposite() {
        let on = |given: &[(&str, &str)], variables: &[(&str, &str)]| {
            let (_, options) = from_environment(given, variables).unwrap();
            (options.is_on("internal"), options.is_on("external"))
        };
        assert_eq!(on(&[], &[("INTERNAL", "true")]), (true, false));
        assert_eq!(on(&[], &[("INTERNAL", "0")]), (false, false));
        assert_eq!(on(&[("external", "true")], &[("INTERNAL", "true")]), (false, true));
    }

    #[test]
    fn an_invalid_variable_is_named() {
        let error = |variables| from_environment(&[], variables).unwrap_err();
        let expect = "`$THREADS` sets `--thread-pool-size` to `many`; expected a number from 1 to 65535";
        assert_eq!(error(&[("THREADS", "many")]), expect);
        let expect = "`$INTERNAL` sets `--internal` to `maybe`; expected `true` or `false`";
        assert_eq!(error(&[("INTERNAL", "maybe")]), expect);
    }

    #[test]
    fn a_value_of_a_variable_that_matches_nothing_is_reported_with_the_variable() {
        let meta = IntegrationMeta::new("x", "").selects("cluster-name", "cluster").variable("CLUSTER");
        let mut options = Options::default();
        options.fill_from_environment(&meta.flags, |_| Some("stge".to_owned())).unwrap();
        let keys = ["stage"].map(|name| ShardKey::new([("cluster", name)]));
        let unmatched = options.unmatched(&meta.flags, &keys.each_ref());
        let expect =
            "`--cluster-name stge` from `$CLUSTER` matches nothing in the data; did you mean `stage`?";
        assert_eq!(unmatched[0].to_string(), expect);
    }

    #[test]
    fn a_required_argument_may_come_from_a_variable() {
        let required = ArgumentKind::Required;
        let meta = IntegrationMeta::new("x", "").argument("project", "", required).variable("PROJECT");
        let mut options = Options::default();
        assert_eq!(options.missing(&meta.flags).map(Flag::spelling).as_deref(), Some("PROJECT"));
        options.fill_from_environment(&meta.flags, |_| Some("a b".to_owned())).unwrap();
        assert_eq!(options.missing(&meta.flags), None);
        assert_eq!(options.values("project"), ["a b"]);
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
