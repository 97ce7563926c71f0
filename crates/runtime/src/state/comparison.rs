//! Compares two declared states: lists the shards that differ, and the differing paths in each shard. This
//! compares base and head; it does not detect drift between data and target.

use std::collections::{BTreeMap, BTreeSet};

use qontract_bundle::Value;
use qontract_bundle::diff::fields;
use qontract_bundle::json::JsonParser;
use serde::Serialize;

use super::{DeclaredState, Digests, Shard, digest};
use crate::key::ShardKey;
use crate::source_location::SourceLocation;

/// Maximum number of differing paths that are listed for each shard.
pub const MAX_DIFFERENCES: usize = 20;

/// A path at which two declared states differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// JSON pointer into the state; empty for the whole state.
    pub path: String,
    /// The source location in head or, for a value that head does not have, in base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
}

/// The differences between the declared states of base and head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Whether the common state differs.
    pub common: bool,
    /// Shards that differ, with the differing paths.
    pub shards: BTreeMap<ShardKey, Vec<Difference>>,
    /// Shards that only base has.
    pub gone: BTreeSet<ShardKey>,
    /// The known source locations in base of the shards that only base has.
    #[serde(skip)]
    pub gone_places: BTreeMap<ShardKey, SourceLocation>,
}

impl Comparison {
    /// Whether the declared states are equal.
    pub fn is_empty(&self) -> bool {
        let Self { common, shards, gone, gone_places: _ } = self;
        !common && shards.is_empty() && gone.is_empty()
    }

    /// Whether a shard of head must run.
    pub fn affects(&self, key: &ShardKey) -> bool {
        self.common || self.shards.contains_key(key)
    }
}

/// Compares the declared states of base and head. Only shards whose digests differ are compared in detail.
pub fn compare<C, T, S>(base: &DeclaredState<C, T, S>, head: &DeclaredState<C, T, S>) -> Comparison
where
    C: Serialize + Sync,
    T: Serialize + Sync,
    S: Serialize + Sync,
{
    // Both digests are computed concurrently, because both states are serialised and hashed completely.
    let (old, new) = std::thread::scope(|scope| {
        let old = scope.spawn(|| base.digests());
        let new = head.digests();
        (old.join(), new)
    });
    let old = old.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let Digests { common, shards } = &new;
    let differs = |key: &ShardKey| old.shards.get(key) != shards.get(key);
    let keys = shards.keys().filter(|key| differs(key)).cloned();
    let shards = keys.map(|key| {
        let differences = differences(base.shards.get(&key), head.shards.get(&key));
        (key, differences)
    });
    let gone: BTreeSet<ShardKey> =
        old.shards.keys().filter(|key| !new.shards.contains_key(*key)).cloned().collect();
    let place = |key: &ShardKey| Some((key.clone(), base.shards.get(key)?.places.get("")?.clone()));
    let gone_places = gone.iter().filter_map(place).collect();
    Comparison { common: *common != old.common, shards: shards.collect(), gone, gone_places }
}

fn differences<T: Serialize, S: Serialize>(
    base: Option<&Shard<T, S>>,
    head: Option<&Shard<T, S>>,
) -> Vec<Difference> {
    let (Some(old), Some(new)) = (base, head) else {
        let place = head.or(base).and_then(|shard| shard.places.get("").cloned());
        return vec![Difference { path: String::new(), place }];
    };
    let (before, after) = (value(&old.state), value(&new.state));
    let mut differences: Vec<Difference> = fields(&before, &after)
        .into_iter()
        .take(MAX_DIFFERENCES)
        .map(|change| {
            let shard = if change.change.after().is_some() { new } else { old };
            let place = shard.place(&change.pointer).cloned();
            Difference { path: change.pointer, place }
        })
        .collect();
    // A changed address is listed even if there are other differences, so that the cause of the change is reported.
    if differences.is_empty() || digest(&old.target) != digest(&new.target) {
        // Only the target address or the disabled state differs.
        let place =
            new.disabled.as_ref().or(old.disabled.as_ref()).and_then(|disabled| disabled.place.clone());
        let place = place.or_else(|| new.places.get("").cloned());
        differences.push(Difference { path: String::new(), place });
    }
    differences
}

fn value<S: Serialize>(state: &S) -> Value {
    let text = serde_json::to_string(state).expect("states are plain data");
    JsonParser::new(&text).parse().expect("serialised state is valid JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(states: &[(&str, &[&str])]) -> DeclaredState<(), String, Vec<String>> {
        let mut declared = DeclaredState::new(());
        for (name, items) in states {
            let place = SourceLocation::datafile(&format!("/{name}.yml"), "");
            let items = items.iter().map(|item| (*item).to_owned()).collect();
            declared.add(ShardKey::new([("name", *name)]), Shard::new("here".to_owned(), items, Some(place)));
        }
        declared
    }

    #[test]
    fn equal_states_have_no_difference_whatever_their_provenance() {
        let base = declared(&[("a", &["x"]), ("b", &[])]);
        let mut head = declared(&[("a", &["x"]), ("b", &[])]);
        for shard in head.shards.values_mut() {
            shard.places.clear();
        }
        assert!(compare(&base, &head).is_empty());
    }

    #[test]
    fn differences_are_reported_by_shard_and_path_with_their_locations() {
        let base = declared(&[("a", &["x"]), ("b", &["y", "z"]), ("gone", &[])]);
        let head = declared(&[("a", &["x"]), ("b", &["z", "y"]), ("new", &[])]);
        let comparison = compare(&base, &head);
        let lines: Vec<String> = comparison
            .shards
            .iter()
            .flat_map(|(key, all)| {
                all.iter().map(move |one| format!("{key} {} {}", one.path, one.place.as_ref().unwrap().path))
            })
            .collect();
        assert_eq!(lines, ["name=b /0 /b.yml", "name=b /1 /b.yml", "name=new  /new.yml"]);
        assert_eq!(comparison.gone.iter().map(ToString::to_string).collect::<Vec<_>>(), ["name=gone"]);
    }

    #[test]
    fn a_shard_that_is_declared_twice_is_left_out_and_the_others_stay() {
        let head = declared(&[("a", &["x"]), ("b", &[]), ("a", &["y"]), ("a", &["z"])]);
        assert_eq!(head.shards.len(), 1);
        let faults = &head.faults[&ShardKey::new([("name", "a")])];
        assert_eq!((faults.len(), faults[0].places.len()), (1, 3));
    }
}
