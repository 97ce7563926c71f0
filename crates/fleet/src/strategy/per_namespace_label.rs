//! The strategy `per-namespace-label`: one shard for each value of a label of the namespaces.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{ShardSpec, ShardingContext, ShardingError, ShardingStrategy, Shards};
use crate::commands::SHARD;
use crate::finding::Finding;
use crate::model::{InventoryItem, InventoryNamespace};
use crate::names::{MAX_LABEL_VALUE, is_argument};

const STRATEGY: &str = "per-namespace-label";

/// The suffix of the shard of all namespaces without the label. No label value begins with a hyphen, so no other
/// shard has this suffix.
const UNLABELLED_SUFFIX: &str = "--unlabelled";

/// One shard for each value of a label, and one for the namespaces without the label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerNamespaceLabel {
    /// The name of the label.
    pub label: String,
}

impl PerNamespaceLabel {
    /// The enabled namespaces by the value of the label.
    fn namespaces<'c>(
        &self,
        context: &ShardingContext<'c>,
    ) -> BTreeMap<Option<&'c str>, Vec<&'c InventoryNamespace>> {
        let mut by_value: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for namespace in &context.inventory.namespaces {
            let cluster = InventoryItem { name: String::new(), disable: namespace.disable.clone() };
            if !cluster.disables(context.integration) {
                let value = namespace.labels.get(&self.label).map(String::as_str);
                by_value.entry(value.filter(|value| !value.is_empty())).or_default().push(namespace);
            }
        }
        by_value
    }
}

impl ShardingStrategy for PerNamespaceLabel {
    fn shards(&self, context: &ShardingContext<'_>) -> Result<Shards, ShardingError> {
        if self.label.is_empty() {
            return Err(ShardingError::MissingSetting { strategy: STRATEGY, setting: "label" });
        }
        context.require(SHARD, STRATEGY)?;
        let names = context.inventory.namespaces.iter().flat_map(|one| [&one.cluster, &one.name]);
        if let Some(name) = names.into_iter().find(|name| !is_argument(name)) {
            return Err(ShardingError::InvalidKey(name.clone()));
        }
        let shard = |(value, namespaces): (Option<&str>, Vec<&InventoryNamespace>)| {
            let mut selection = String::new();
            for InventoryNamespace { cluster, name, .. } in namespaces {
                let _ = write!(selection, " {SHARD} cluster={cluster},namespace={name}");
            }
            ShardSpec {
                shard_key: value.unwrap_or("unlabelled").to_owned(),
                shard_name_suffix: value.map_or(UNLABELLED_SUFFIX.to_owned(), |value| format!("-{value}")),
                extra_args: context.arguments(&selection),
                ..ShardSpec::default()
            }
        };
        Ok(Shards::Fixed(self.namespaces(context).into_iter().map(shard).collect()))
    }

    fn findings(&self, context: &ShardingContext<'_>) -> Vec<Finding> {
        let label = &self.label;
        if !is_label_name(label) {
            let text = format!("`{label}` is not a valid label name");
            return vec![Finding::error("/sharding/label", text)];
        }
        if !self.namespaces(context).keys().any(Option::is_some) {
            let text = format!("no namespace has the label `{label}`: one shard runs all namespaces");
            return vec![Finding::warning("/sharding/label", text)];
        }
        Vec::new()
    }
}

/// Whether a string is the name of a label: letters and digits, with `-`, `_` and `.` between them, optionally after
/// a DNS prefix.
fn is_label_name(name: &str) -> bool {
    let (prefix, name) = name.rsplit_once('/').map_or((None, name), |(prefix, name)| (Some(prefix), name));
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let is_name = bytes.len() <= MAX_LABEL_VALUE
        && bytes.iter().copied().all(is_inner)
        && is_end(bytes.first())
        && is_end(bytes.last());
    is_name && prefix.is_none_or(crate::names::is_object_name)
}

#[cfg(test)]
mod tests {
    use super::{PerNamespaceLabel, is_label_name};
    use crate::commands::{Commands, SHARD};
    use crate::model::{DisabledIntegrations, IntegrationSpec, Inventory, InventoryNamespace};
    use crate::strategy::{ShardingContext, ShardingStrategy, Shards};

    fn namespace(cluster: &str, name: &str, label: Option<&str>) -> InventoryNamespace {
        let labels = label.map(|value| ("team".to_owned(), value.to_owned())).into_iter().collect();
        InventoryNamespace { cluster: cluster.to_owned(), name: name.to_owned(), labels, disable: None }
    }

    #[test]
    fn each_label_value_has_a_shard_and_no_namespace_is_lost() {
        let mut disabled = namespace("c3", "n5", Some("core"));
        disabled.disable = Some(DisabledIntegrations { integrations: Some(vec!["quotas".to_owned()]) });
        let namespaces = vec![
            namespace("c1", "n1", Some("shop")),
            namespace("c2", "n1", Some("core")),
            namespace("c1", "n2", None),
            namespace("c1", "n3", Some("")),
            namespace("c1", "n4", Some("shop")),
            disabled,
        ];
        let inventory = Inventory { namespaces, ..Inventory::default() };
        let commands: Commands = [("quotas", vec![SHARD])].into_iter().collect();
        let spec = IntegrationSpec { extra_args: Some("--x".to_owned()), ..IntegrationSpec::default() };
        let context = ShardingContext {
            integration: "quotas",
            spec: &spec,
            inventory: &inventory,
            commands: &commands,
        };
        let strategy = PerNamespaceLabel { label: "team".to_owned() };
        let Ok(Shards::Fixed(shards)) = strategy.shards(&context) else { panic!("fixed shards") };
        let shards: Vec<_> = shards.iter().map(|one| (&*one.shard_name_suffix, &*one.extra_args)).collect();
        let unlabelled = "--x --shard cluster=c1,namespace=n2 --shard cluster=c1,namespace=n3";
        let shop = "--x --shard cluster=c1,namespace=n1 --shard cluster=c1,namespace=n4";
        let core = "--x --shard cluster=c2,namespace=n1";
        assert_eq!(shards, [("--unlabelled", unlabelled), ("-core", core), ("-shop", shop)]);
        assert_eq!(strategy.findings(&context), []);
        let other = PerNamespaceLabel { label: "tier".to_owned() }.findings(&context);
        assert_eq!(other[0].text, "no namespace has the label `tier`: one shard runs all namespaces");
        let wrong = PerNamespaceLabel { label: "te am".to_owned() }.findings(&context);
        assert_eq!((wrong[0].is_error(), &*wrong[0].text), (true, "`te am` is not a valid label name"));
    }

    #[test]
    fn label_names_are_checked() {
        for name in ["team", "example.com/team", "a_b.c-d", "T"] {
            assert!(is_label_name(name), "{name}");
        }
        for name in ["", "-a", "a/b/c", "Example.com/a", "a b", "/a", "a/", &"a".repeat(64)] {
            assert!(!is_label_name(name), "{name}");
        }
    }
}
