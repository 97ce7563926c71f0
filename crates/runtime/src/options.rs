//! What was asked of an integration on the command line.

use std::collections::BTreeMap;
use std::sync::Arc;

use qontract_diagnostics::suggest::did_you_mean;

use crate::about::{Flag, FlagKind};
use crate::data::{Data, Source, Terms};
use crate::key::ShardKey;
use crate::room::Room;

/// Values of an integration's flags, by name.
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

    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Flags and values, in order of flags.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(flag, values)| (flag.as_str(), values.as_slice()))
    }

    /// Values of selecting flags that no key has, each with the nearest that one has: typing errors, most likely.
    pub fn idle(&self, flags: &[Flag], keys: &[&ShardKey]) -> Vec<String> {
        let mut idle = Vec::new();
        for flag in flags {
            let (FlagKind::Selects(dimension) | FlagKind::Excludes(dimension)) = flag.kind else { continue };
            for value in self.values(flag.name) {
                if keys.iter().all(|key| key.get(dimension) != Some(value.as_str())) {
                    let known = keys.iter().filter_map(|key| key.get(dimension));
                    let near = did_you_mean(value, known).map_or(String::new(), |near| format!("; {near}"));
                    idle.push(format!("`--{} {value}` matches nothing in the data{near}", flag.name));
                }
            }
        }
        idle
    }

    /// Values of an integration's selecting flags that name nothing in any of these bundles. Empty if the integration has no shards,
    /// or cannot be declared, which its run reports.
    pub fn unknown_selectors(&self, room: &Room, bundles: &[Arc<dyn Source>]) -> Vec<String> {
        let about = room.about();
        let selects =
            |flag: &Flag| !matches!(flag.kind, FlagKind::Value) && !self.values(flag.name).is_empty();
        if !about.flags.iter().any(selects) {
            return Vec::new();
        }
        let mut declarations = Vec::new();
        for bundle in bundles {
            let data = Data::new(Arc::clone(bundle), Terms::of(about));
            match room.declare(&data, self) {
                Ok(Some(declared)) => declarations.push(declared),
                Ok(None) | Err(_) => return Vec::new(),
            }
        }
        let keys = |declared| {
            let declared: &crate::Declaration = declared;
            declared.keys().into_iter().chain(declared.faults().keys()).collect::<Vec<_>>()
        };
        self.idle(&about.flags, &declarations.iter().flat_map(keys).collect::<Vec<_>>())
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
                FlagKind::Value => true,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::about::About;
    use crate::key::ShardKey;

    fn check(given: &[(&str, &str)], expected: &[&str]) {
        let about =
            About::new("x", "").selects("cluster-name", "cluster").excludes("exclude-cluster", "cluster");
        let mut options = Options::default();
        for (flag, value) in given {
            options.add(flag, *value);
        }
        let keys = ["prod-01", "prod-01-eu", "stage"].map(|name| ShardKey::new([("cluster", name)]));
        let selected: Vec<&str> = keys
            .iter()
            .filter(|key| options.select(&about.flags, key))
            .filter_map(|key| key.get("cluster"))
            .collect();
        assert_eq!(selected, expected);
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
