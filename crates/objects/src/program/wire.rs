//! The wire format of the shards of an object program.

use qontract_runtime::process::{ProgramShard, ResultPointer, ShownTexts};
use qontract_runtime::state::RemovalConsent;
use serde::Deserialize;
use serde_json::Value;

/// The objects that a program declares in a namespace, for one caller.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireObjectShard {
    /// The cluster, which the data must declare.
    pub cluster: String,
    /// The namespace, which the data must declare.
    pub namespace: String,
    /// The instance of the integration that owns the objects, if the integration has several instances.
    pub caller: Option<String>,
    /// The managed kinds. Objects of these kinds that are not declared are removed.
    pub kinds: Vec<String>,
    /// The objects.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// The removals that the data approves as a whole.
    #[serde(default)]
    pub may_remove: RemovalConsent,
    /// The location of the shard's provenance in the query results.
    place: Option<ResultPointer>,
}

impl ShownTexts for WireObjectShard {
    fn for_each_text<'a>(&'a self, see: &mut dyn FnMut(&'a str)) {
        let Self { cluster, namespace, caller, kinds, objects: _, may_remove: _, place: _ } = self;
        see(cluster);
        see(namespace);
        caller.iter().chain(kinds).for_each(|text| see(text));
    }
}

impl ProgramShard for WireObjectShard {
    fn pointer(&self) -> Option<&ResultPointer> {
        self.place.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{RemovalConsent, ShownTexts as _, WireObjectShard};

    fn parse(shard: Value) -> Result<WireObjectShard, serde_json::Error> {
        serde_json::from_value(shard)
    }

    #[test]
    fn every_text_that_is_shown_counts() {
        let shard =
            json!({"cluster": "a", "namespace": "b", "caller": "c", "kinds": ["d", "e"], "objects": [{}]});
        let (shard, mut texts) = (parse(shard).expect("a shard"), Vec::new());
        shard.for_each_text(&mut |text| texts.push(text));
        assert_eq!(texts, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn removals_are_approved_as_a_whole_only_on_request() {
        let check = |may_remove: Value, expect: Option<RemovalConsent>| {
            let mut shard = json!({"cluster": "", "namespace": "", "kinds": []});
            if !may_remove.is_null() {
                shard["may_remove"] = may_remove.clone();
            }
            assert_eq!(parse(shard).ok().map(|shard| shard.may_remove), expect, "{may_remove}");
        };
        check(Value::Null, Some(RemovalConsent::Named));
        check(json!("any"), Some(RemovalConsent::Any));
        check(json!(["Secret"]), Some(RemovalConsent::kinds(["Secret"])));
        for wrong in [json!("all"), json!("Any"), json!(true), json!({"kinds": []}), json!([1])] {
            check(wrong, None);
        }
    }

    #[test]
    fn unknown_and_missing_fields_are_refused() {
        assert!(parse(json!({"cluster": "", "namespace": "", "kinds": []})).is_ok());
        assert!(parse(json!({"cluster": "", "namespace": ""})).is_err());
        assert!(parse(json!({"cluster": "", "namespace": "", "kinds": [], "other": 1})).is_err());
    }
}
