//! Rooms whose objects follow from the data alone: a request, and a function from its answer to objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qontract_client_kubernetes::{Kind, Kubernetes};
use qontract_runtime::{About, Data, Fault, Operation, Options, Read, Want};
use serde::Serialize;
use serde_json::Value;

use crate::Declared;
use crate::estate::{Estate, Item, Managed, Sensitivity};
use crate::flags::{NO_TAKE_OVER, with_cluster_flags};
use crate::keeper::{Keeper, Kept, Plot};

/// What is declared for a shard of such a room: the objects themselves. The place of the object at index 3 is that of `/objects/3`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Objects {
    /// Kinds that are looked after, as data names them.
    pub kinds: BTreeSet<String>,
    /// Names that are looked after; all of those kinds by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeSet<String>>,
    /// The objects.
    pub objects: Vec<Value>,
    /// From which day on an object is not wanted any more, by its name: `2030-06-30`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub until: BTreeMap<String, String>,
    /// Whether what nobody marked is looked after, too: if it is not wanted, it goes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub takes_over: bool,
}

impl Objects {
    /// All objects of a kind.
    pub fn of(kind: &str, objects: Vec<Value>) -> Self {
        Self { kinds: BTreeSet::from([kind.to_owned()]), objects, ..Self::default() }
    }
}

/// A room whose objects follow from the data alone.
pub struct Plain {
    about: About,
    declare: Declare,
}

/// What the data says, on a command line with these options.
type Declare = fn(&Data, &Options) -> Result<Declared<Objects>, Fault>;

impl Plain {
    /// The room that declares this, on these clusters.
    pub fn room(about: About, declare: Declare, kubernetes: Arc<dyn Kubernetes>) -> Kept<Self> {
        Kept::new(Self { about, declare }, kubernetes)
    }

    /// What such a room says about itself, if its shards are namespaces and it works through them one by one: what it declares of one depends on
    /// no other namespace of its own list.
    pub fn of_namespaces<Q: Operation>(name: &str, description: &str) -> About {
        let about = Self::of_clusters::<Q>(name, description).selects("namespace-name", "namespace");
        about.one_by_one("namespaces_v1", &["name"])
    }

    /// What such a room says about itself, if its shards are clusters.
    pub fn of_clusters<Q: Operation>(name: &str, description: &str) -> About {
        with_cluster_flags(About::new(name, description).query::<Q>())
    }
}

impl Keeper for Plain {
    type State = Objects;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<Objects>, Fault> {
        let mut declared = (self.declare)(data, options)?;
        if options.is_on(NO_TAKE_OVER) {
            declared.shards.values_mut().for_each(|shard| shard.state.takes_over = false);
        }
        Ok(declared)
    }

    fn estate(&self, plot: Plot<'_, Objects>) -> (Option<String>, Vec<Managed>) {
        let Objects { kinds, names, .. } = &plot.shard.state;
        let kinds = kinds.iter().filter_map(|kind| kind.parse::<Kind>().ok());
        let kinds = kinds.map(|kind| Managed { kind, names: names.clone() }).collect();
        (plot.key.get("namespace").map(str::to_owned), kinds)
    }

    fn takes_over(&self, plot: Plot<'_, Objects>) -> bool {
        plot.shard.state.takes_over
    }

    async fn wanted(
        &self,
        read: &Read,
        plot: Plot<'_, Objects>,
        estate: &Arc<Estate>,
    ) -> Result<Vec<Want<Item>>, Fault> {
        let (state, today) = (&plot.shard.state, read.today.to_string());
        let is_over = |body: &Value| {
            let name = body["metadata"]["name"].as_str().unwrap_or_default();
            state.until.get(name).is_some_and(|day| *day <= today)
        };
        let objects = state.objects.iter().enumerate().filter(|(_, body)| !is_over(body));
        let wants = objects.map(|(index, body)| {
            let place = plot.shard.place(&format!("/objects/{index}"));
            estate.want(body.clone(), Sensitivity::Public, place.cloned())
        });
        Ok(wants.collect())
    }
}
