//! The declared state of shards whose objects follow from the data alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use qontract_client_kubernetes::Kind;
use qontract_runtime::guard::Date;
use qontract_runtime::{DesiredItem, Fault};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::integration::{DeclaredObject, ObjectShardView, ObjectState, ScopeSpec};
use crate::scope::{DesiredObject, ManagedKind, ManagedScope, Sensitivity};

/// The declared objects of a shard. The object at index 3 has its provenance under `/objects/3`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeclaredObjects {
    /// The managed kinds, as the data names them.
    pub kinds: BTreeSet<Kind>,
    /// The names of the managed objects; by default, all objects of the managed kinds are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeSet<String>>,
    /// The declared objects.
    pub objects: Vec<Value>,
    /// Expiry dates: from this day on, the object is no longer desired.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub until: BTreeMap<ObjectName, Date>,
    /// Whether unmarked objects are managed as well. If so, unmarked objects that are not declared are
    /// removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adopts_unmarked: bool,
}

/// The identity of a declared object within its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The kind, as the object names it.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl ObjectName {
    /// The kind and the name of an object.
    pub fn of(body: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self { kind: text(&body["kind"]), name: text(&body["metadata"]["name"]) }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}

impl Serialize for ObjectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl DeclaredObjects {
    /// Declares these objects, and manages all objects of their kind.
    pub fn of(kind: Kind, objects: Vec<Value>) -> Self {
        Self { kinds: BTreeSet::from([kind]), objects, ..Self::default() }
    }
}

impl ObjectState for DeclaredObjects {
    fn scope_spec(shard: ObjectShardView<'_, Self>) -> ScopeSpec {
        let Self { kinds, names, adopts_unmarked, .. } = &shard.shard.state;
        let kinds = kinds.iter().cloned();
        ScopeSpec {
            namespace: shard.key.get("namespace").map(str::to_owned),
            kinds: kinds.map(|kind| ManagedKind { kind, names: names.clone() }).collect(),
            adopts_unmarked: *adopts_unmarked,
            ..ScopeSpec::default()
        }
    }

    fn declared_objects(shard: ObjectShardView<'_, Self>) -> Vec<Option<DeclaredObject>> {
        shard.shard.state.objects.iter().map(DeclaredObject::of).collect()
    }

    fn desired(
        shard: ObjectShardView<'_, Self>,
        scope: &Arc<ManagedScope>,
        today: Date,
    ) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
        let state = &shard.shard.state;
        let has_expired =
            |body: &Value| state.until.get(&ObjectName::of(body)).is_some_and(|day| *day <= today);
        let objects = state.objects.iter().enumerate().filter(|(_, body)| !has_expired(body));
        let wants = objects.map(|(index, body)| {
            let place = shard.shard.place(&format!("/objects/{index}")).cloned();
            match scope.kind_of(body) {
                Some(_) => scope.desired_item(body.clone(), Sensitivity::Public, place),
                // Integrations that are compiled in list all their kinds, but a program may omit a kind by
                // mistake.
                None => scope.unmanaged_item(body, place, "add it to `kinds` in the response of the program"),
            }
        });
        Ok(wants.collect())
    }
}
