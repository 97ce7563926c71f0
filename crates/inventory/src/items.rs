//! Matches the items of two lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// Lists whose named items run in sequence, so that the order of the items is compared as well.
pub const ORDERED_LISTS: [&str; 2] = ["initContainers", "steps"];

/// The identity of list items.
#[derive(Clone, Copy)]
enum ItemIdentity {
    Field(&'static str),
    Port,
    /// A Prometheus rule: its alert, or the metric that it records.
    Rule,
}

/// A declared item with its name, and the live items of that name.
pub struct ItemPair<'a> {
    /// The name of the item.
    pub name: String,
    /// The item as declared.
    pub desired: &'a Value,
    /// Positions and values of the live items; more than one if the live list has the name twice.
    pub live: Vec<(usize, &'a Value)>,
}

/// Pairs the items of two lists by name. `None` if a declared item has no unique name; in that case, items
/// are compared by position.
pub fn pairs<'a>(list: &str, desired: &'a [Value], live: &'a [Value]) -> Option<Vec<ItemPair<'a>>> {
    let identity = identity(list, desired)?;
    let mut by_name: BTreeMap<String, Vec<(usize, &Value)>> = BTreeMap::new();
    for (index, item) in live.iter().enumerate() {
        if let Some(name) = identity.of(item) {
            by_name.entry(name).or_default().push((index, item));
        }
    }
    let pair = |desired| {
        let name = identity.of(desired)?;
        let live = by_name.remove(&name).unwrap_or_default();
        Some(ItemPair { name, desired, live })
    };
    desired.iter().map(pair).collect()
}

/// The item names of two versions of a list, if names are unique in both.
pub fn item_names(list: &str, before: &[Value], after: &[Value]) -> Option<(Vec<String>, Vec<String>)> {
    let own = |identity: ItemIdentity, items: &[Value]| -> Option<Vec<String>> {
        let names: Vec<String> = items.iter().map(|item| identity.of(item)).collect::<Option<_>>()?;
        let distinct: BTreeSet<&String> = names.iter().collect();
        (distinct.len() == names.len()).then_some(names)
    };
    let mut candidates = candidates(list).iter().chain(&[ItemIdentity::Rule]);
    candidates.find_map(|identity| Some((own(*identity, before)?, own(*identity, after)?)))
}

/// The labels of list items: their names, or their positions.
pub fn item_labels(list: &str, items: &[Value]) -> Vec<String> {
    let positions = || (0..items.len()).map(|index| index.to_string()).collect();
    item_names(list, items, items).map_or_else(positions, |(names, _)| names)
}

/// An index of the items of one list by all their names.
pub struct ItemNames(HashMap<String, usize>);

impl ItemNames {
    /// Builds the index of a list.
    pub fn new(items: &[Value]) -> Self {
        const IDENTITIES: [ItemIdentity; 5] = [
            ItemIdentity::Field("name"),
            ItemIdentity::Field("mountPath"),
            ItemIdentity::Field("devicePath"),
            ItemIdentity::Field("ip"),
            ItemIdentity::Port,
        ];
        let mut positions = HashMap::with_capacity(items.len());
        for (position, item) in items.iter().enumerate() {
            for name in IDENTITIES.iter().filter_map(|identity| identity.of(item)) {
                positions.entry(name).or_insert(position);
            }
        }
        Self(positions)
    }

    /// The first item of the indexed list with this name, or the item at this position.
    pub fn find<'a>(&self, items: &'a [Value], name: &str) -> Option<&'a Value> {
        items.get(self.0.get(name).copied().or_else(|| name.parse().ok())?)
    }
}

/// The identities that items of a list may have.
fn candidates(list: &str) -> &'static [ItemIdentity] {
    match list {
        "volumeMounts" => &[ItemIdentity::Field("mountPath")],
        "volumeDevices" => &[ItemIdentity::Field("devicePath")],
        "hostAliases" => &[ItemIdentity::Field("ip")],
        "ports" => &[ItemIdentity::Field("name"), ItemIdentity::Port],
        _ => &[ItemIdentity::Field("name")],
    }
}

/// The first identity that is unique among all items.
fn identity(list: &str, items: &[Value]) -> Option<ItemIdentity> {
    candidates(list).iter().copied().find(|identity| {
        let names: Option<BTreeSet<String>> = items.iter().map(|item| identity.of(item)).collect();
        names.is_some_and(|names| names.len() == items.len())
    })
}

impl ItemIdentity {
    fn of(self, item: &Value) -> Option<String> {
        #[cfg(test)]
        tests::IDENTIFY_CALLS.with(|identified| identified.set(identified.get() + 1));
        match self {
            ItemIdentity::Field(name) => item.get(name)?.as_str().map(str::to_owned),
            ItemIdentity::Rule => {
                let name = item.get("alert").or_else(|| item.get("record"))?;
                name.as_str().map(str::to_owned)
            }
            ItemIdentity::Port => {
                let port = item.get("containerPort").or_else(|| item.get("port"))?;
                let port = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
                Some(format!("{port}/{}", item.get("protocol").and_then(Value::as_str).unwrap_or("TCP")))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::{ItemNames, pairs};
    use serde_json::{Value, json};

    thread_local! {
        /// Number of item names that this thread has computed.
        pub static IDENTIFY_CALLS: Cell<usize> = const { Cell::new(0) };
    }

    /// Checks the names of list items.
    fn check(list: &str, items: &Value, expect: Option<&[&str]>) {
        let found = pairs(list, items.as_array().unwrap(), &[]);
        let found: Option<Vec<&str>> =
            found.as_ref().map(|all| all.iter().map(|pair| pair.name.as_str()).collect());
        assert_eq!(found.as_deref(), expect, "{list} {items}");
    }

    #[test]
    fn items_are_identified_by_name_if_names_are_unique() {
        check("env", &json!([{"name": "B"}, {"name": "A"}]), Some(&["B", "A"]));
        check("env", &json!([{"name": "A"}, {"name": "A"}]), None);
        check("env", &json!([{"name": "A"}, {}]), None);
        check("args", &json!(["a"]), None);
        check(
            "volumeMounts",
            &json!([{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}]),
            Some(&["/a", "/b"]),
        );
    }

    #[test]
    fn ports_without_names_are_identified_by_number_and_protocol() {
        let ports = json!([{"containerPort": 53, "protocol": "UDP"}, {"port": 53}, {"port": "http"}]);
        check("ports", &ports, Some(&["53/UDP", "53/TCP", "http/TCP"]));
        check("ports", &json!([{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]), Some(&["a", "b"]));
        check("ports", &json!([{"port": 1}, {"port": 1, "protocol": "TCP"}]), None);
        check("other", &json!([{"port": 1}]), None);
    }

    #[test]
    fn an_item_is_found_by_any_of_its_names_or_by_its_position() {
        let items = json!([{"name": "a", "ip": "b"}, {"mountPath": "b"}, {"devicePath": "c"}, {"port": 1}, {"name": "0"}]);
        let items = items.as_array().unwrap();
        let check = |name: &str, expect: Option<usize>| {
            let found = ItemNames::new(items).find(items, name);
            assert_eq!(found, expect.map(|position| &items[position]), "{name}");
        };
        check("a", Some(0));
        check("b", Some(0));
        check("c", Some(2));
        check("1/TCP", Some(3));
        check("0", Some(4));
        check("1", Some(1));
        check("5", None);
        check("d", None);
    }
}
