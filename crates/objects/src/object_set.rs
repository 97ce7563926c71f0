//! A set of declared objects for a shard, each with its provenance.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::civil::Date;
use qontract_client_kubernetes::Kind;
use qontract_runtime::{Fault, SourceLocation};
use serde_json::Value;

use crate::declared::{DeclaredObjects, ObjectName};
use crate::namespaces::LocatedState;

/// A set of objects for a shard, keyed by kind and name.
///
/// ```
/// use qontract_objects::{Kind, ObjectSet};
/// use serde_json::json;
///
/// let mut objects = ObjectSet::of(Kind::named("ConfigMap"));
/// let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
/// objects.add(body.clone(), None)?;
/// objects.add(body, None)?;
/// let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {}});
/// let fault = objects.add(other, None).unwrap_err();
/// assert_eq!(fault.text, "ConfigMap `settings` is declared twice with different content");
///
/// let declared = objects.finish().state;
/// assert_eq!((declared.objects.len(), declared.adopts_unmarked), (1, false));
/// # Ok::<_, qontract_runtime::Fault>(())
/// ```
#[derive(Debug, Default)]
pub struct ObjectSet {
    declared: DeclaredObjects,
    entries: BTreeMap<ObjectName, ObjectEntry>,
}

#[derive(Debug)]
struct ObjectEntry {
    body: Value,
    until: Option<Date>,
    place: Option<SourceLocation>,
}

impl ObjectSet {
    /// An empty set for one kind; all objects of this kind with our mark are managed.
    pub fn of(kind: Kind) -> Self {
        Self { declared: DeclaredObjects::of(kind, Vec::new()), entries: BTreeMap::new() }
    }

    /// Makes the shard manage unmarked objects as well: those that are not declared are removed.
    #[must_use]
    pub fn adopting_unmarked(mut self) -> Self {
        self.declared.adopts_unmarked = true;
        self
    }

    /// Adds an object.
    pub fn add(&mut self, body: Value, place: Option<SourceLocation>) -> Result<(), Fault> {
        self.add_until(body, None, place)
    }

    /// Adds an object that expires on a day. Adding an equal object again keeps the later expiry; two
    /// different objects of one name are a fault.
    pub fn add_until(
        &mut self,
        body: Value,
        until: Option<Date>,
        place: Option<SourceLocation>,
    ) -> Result<(), Fault> {
        match self.entries.entry(ObjectName::of(&body)) {
            Entry::Vacant(free) => drop(free.insert(ObjectEntry { body, until, place })),
            Entry::Occupied(taken) if taken.get().body != body => {
                let object = taken.key();
                let mut fault = Fault::author(format!("{object} is declared twice with different content"));
                fault.places.extend(taken.get().place.clone());
                return Err(fault.at(place));
            }
            Entry::Occupied(mut same) => {
                let same = same.get_mut();
                same.until = same.until.zip(until).map(|(one, other)| one.max(other));
            }
        }
        Ok(())
    }

    /// The declared state of the shard, and the provenance of its parts.
    pub fn finish(self) -> LocatedState<DeclaredObjects> {
        let (mut state, mut places) = (self.declared, BTreeMap::new());
        for (index, (object, found)) in self.entries.into_iter().enumerate() {
            state.objects.push(found.body);
            state.until.extend(found.until.map(|day| (object, day)));
            places.extend(found.place.map(|place| (format!("/objects/{index}"), place)));
        }
        LocatedState { state, places }
    }
}

/// Removes null values from a map, at any depth, so that they are not written.
///
/// ```
/// use serde_json::json;
/// let set = qontract_objects::without_nulls(json!({"a": null, "b": {"c": null, "d": 1}}));
/// assert_eq!(set, json!({"b": {"d": 1}}));
/// ```
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let set = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::{Kind, ObjectName, ObjectSet};

    #[test]
    fn each_object_expires_by_itself() {
        let body = |kind: &str| json!({"kind": kind, "metadata": {"name": "a"}});
        let mut all = ObjectSet::default();
        for (kind, day) in [("K", date(2026, 1, 1)), ("L", date(2026, 2, 1))] {
            all.add_until(body(kind), Some(day), None).expect("objects of two kinds");
        }
        let state = all.finish().state;
        let dates: Vec<_> = state.until.values().copied().collect();
        assert_eq!(dates, [date(2026, 1, 1), date(2026, 2, 1)]);
        let written = serde_json::to_value(&state).expect("the state is JSON");
        assert_eq!(written["until"], json!({"K `a`": "2026-01-01", "L `a`": "2026-02-01"}));
    }

    #[test]
    fn the_same_object_twice_holds_for_as_long_as_either() {
        let body = json!({"kind": "K", "metadata": {"name": "a"}});
        let until = |days: &[Option<jiff::civil::Date>]| {
            let mut all = ObjectSet::of(Kind::named("K"));
            for day in days {
                all.add_until(body.clone(), *day, None).expect("the same");
            }
            all.finish().state.until.remove(&ObjectName::of(&body))
        };
        let (early, late) = (Some(date(2026, 1, 1)), Some(date(2026, 2, 1)));
        assert_eq!(until(&[late, early]), late);
        assert_eq!(until(&[early, None]), None);
        assert_eq!(until(&[None, early]), None);
    }

    #[test]
    fn two_different_objects_of_one_name_are_a_fault() {
        let mut all = ObjectSet::of(Kind::named("K"));
        all.add(json!({"kind": "K", "metadata": {"name": "a"}}), None).expect("the first");
        let other = all.add(json!({"kind": "K", "metadata": {"name": "a"}, "data": {}}), None);
        assert!(other.is_err_and(|fault| fault.to_string().contains("declared twice")));
    }
}
