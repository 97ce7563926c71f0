//! Rooms whose objects follow from the data alone: a request, and a function from its answer to objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{Kind, Kubernetes};
use qontract_runtime::{About, Data, Fault, Options, Read, Want};
use serde::Serialize;
use serde_json::Value;

use crate::Declared;
use crate::estate::{Estate, Item, Managed};
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
}

impl Objects {
    /// All objects of a kind.
    pub fn of(kind: &str, objects: Vec<Value>) -> Self {
        Self { kinds: BTreeSet::from([kind.to_owned()]), names: None, objects }
    }
}

/// A room whose objects follow from the data alone.
pub struct Plain {
    about: About,
    declare: fn(&Data) -> Result<Declared<Objects>, Fault>,
}

impl Plain {
    /// The room that declares this, on these clusters.
    pub fn room(
        about: About,
        declare: fn(&Data) -> Result<Declared<Objects>, Fault>,
        kubernetes: Arc<dyn Kubernetes>,
    ) -> Kept<Self> {
        Kept::new(Self { about, declare }, kubernetes)
    }
}

impl Keeper for Plain {
    type State = Objects;

    fn about(&self) -> &About {
        &self.about
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<Declared<Objects>, Fault> {
        (self.declare)(data)
    }

    fn estate(&self, plot: Plot<'_, Objects>) -> (Option<String>, Vec<Managed>) {
        let Objects { kinds, names, objects: _ } = &plot.shard.state;
        let kinds = kinds.iter().filter_map(|kind| kind.parse::<Kind>().ok());
        let kinds = kinds.map(|kind| Managed { kind, names: names.clone() }).collect();
        (plot.key.get("namespace").map(str::to_owned), kinds)
    }

    async fn wanted(
        &self,
        _: &Read,
        plot: Plot<'_, Objects>,
        estate: &Arc<Estate>,
    ) -> Result<Vec<Want<Item>>, Fault> {
        let objects = plot.shard.state.objects.iter().enumerate();
        let wants = objects.map(|(index, body)| {
            let place = plot.shard.place(&format!("/objects/{index}"));
            estate.want(body.clone(), false, place.cloned())
        });
        Ok(wants.collect())
    }
}
