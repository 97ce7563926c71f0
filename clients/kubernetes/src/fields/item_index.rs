//! An index over the items of one list: finds an item by the path part that names it (`k:{"name":"web"}`,
//! `v:"a"`) without a scan of the list.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::lists::key_value;

/// The positions of the items that have a value, in ascending order.
type Positions<K> = HashMap<K, Vec<usize>>;

/// The items of one list, indexed by the path parts that identify them.
///
/// Each table is built lazily, by one scan of the list at the first lookup. **Invariant:** as long as the
/// items keep their identifying fields and their positions, a lookup has the same result as a comparison of
/// the part with every item (`an_index_finds_what_a_scan_finds`).
#[derive(Default)]
pub(super) struct ItemIndex {
    /// One table for each set of key fields.
    by_keys: BTreeMap<Vec<String>, Positions<Vec<Value>>>,
    by_value: Option<Positions<Value>>,
}

impl ItemIndex {
    /// The positions of the items that `part` identifies; more than one if a list has an item twice.
    pub fn positions(&mut self, items: &[Value], part: &str) -> &[usize] {
        let positions = match part.split_once(':') {
            Some(("k", keys)) => serde_json::from_str(keys).ok().and_then(|keys| self.with_keys(items, keys)),
            Some(("v", value)) => {
                serde_json::from_str(value).ok().and_then(|value| self.with_value(items, &value))
            }
            _ => None,
        };
        positions.map_or(&[], Vec::as_slice)
    }

    /// The first item that `part` identifies.
    pub fn find<'a>(&mut self, items: &'a [Value], part: &str) -> Option<&'a Value> {
        let position = self.positions(items, part).first()?;
        items.get(*position)
    }

    fn with_keys(&mut self, items: &[Value], keys: Map<String, Value>) -> Option<&Vec<usize>> {
        let (keys, values): (Vec<String>, Vec<Value>) = keys.into_iter().unzip();
        let key_values =
            |item: &Value| keys.iter().map(|key| key_value(item, key)).collect::<Option<Vec<_>>>();
        let table = self.by_keys.entry(keys.clone()).or_insert_with(|| table(items, key_values));
        table.get(&values)
    }

    fn with_value(&mut self, items: &[Value], value: &Value) -> Option<&Vec<usize>> {
        self.by_value.get_or_insert_with(|| table(items, |item| Some(item.clone()))).get(value)
    }
}

/// The positions of all items by identity.
fn table<K: std::hash::Hash + Eq>(items: &[Value], identity: impl Fn(&Value) -> Option<K>) -> Positions<K> {
    let mut positions: Positions<K> = HashMap::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        #[cfg(test)]
        tests::SCANNED_ITEMS.with(|scanned| scanned.set(scanned.get() + 1));
        if let Some(identity) = identity(item) {
            positions.entry(identity).or_default().push(position);
        }
    }
    positions
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::ItemIndex;
    use crate::fields::reference::position;

    thread_local! {
        /// Number of items that all indexes of this thread have scanned.
        pub static SCANNED_ITEMS: Cell<usize> = const { Cell::new(0) };
    }

    #[track_caller]
    fn check(items: &Value, part: &str, expect: &[usize]) {
        let items = items.as_array().unwrap();
        assert_eq!(ItemIndex::default().positions(items, part), expect, "{part}");
        assert_eq!(position(items, part), expect.first().copied(), "{part}");
    }

    #[test]
    fn an_index_finds_what_a_scan_finds() {
        let ports = json!([{"port": 80}, {"port": 80, "protocol": "UDP"}, {"port": 80, "name": "twice"}, "no map", null]);
        check(&ports, r#"k:{"port":80,"protocol":"TCP"}"#, &[0, 2]);
        check(&ports, r#"k:{"protocol":"UDP"}"#, &[1]);
        check(&ports, r#"k:{"port":80}"#, &[0, 1, 2]);
        check(&ports, r#"k:{"port":"80"}"#, &[]);
        check(&ports, r#"k:{"port":null}"#, &[]);
        check(&ports, "k:{}", &[0, 1, 2, 3, 4]);
        check(&ports, "v:\"no map\"", &[3]);
        check(&ports, "v:null", &[4]);
        check(&json!([0.0, -0.0, 0, {"a": [1]}]), "v:0.0", &[0, 1]);
        check(&json!([0.0, -0.0, 0, {"a": [1]}]), "v:{ \"a\": [1] }", &[3]);
        for part in ["i:0", "f:port", "k:[]", "k:", "v:", "port"] {
            check(&ports, part, &[]);
        }
    }

    #[test]
    fn a_list_is_scanned_once_for_each_set_of_keys() {
        let items: Vec<Value> = (0..100).map(|number| json!({"name": number, "port": number})).collect();
        let mut index = ItemIndex::default();
        SCANNED_ITEMS.set(0);
        for number in 0..100 {
            assert_eq!(index.positions(&items, &format!("k:{{\"name\":{number}}}")), [number]);
            assert_eq!(index.positions(&items, &format!("k:{{\"port\":{number}}}")), [number]);
            assert_eq!(index.find(&items, &format!("v:{}", items[number])), Some(&items[number]));
        }
        assert_eq!(SCANNED_ITEMS.get(), 300);
    }
}
