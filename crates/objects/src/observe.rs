//! What is there: one list per kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_client_kubernetes::{
    Address, Cluster, Fields, Kind, KindVersion, KubernetesError, Object, Ownership, Version,
};
use qontract_inventory::{Live, Mark};
use qontract_runtime::{Fault, Observed, Read, Want, Wanted, World};
use qontract_telemetry::activity;
use qontract_telemetry::measure::{Measure, Side};
use tokio::time::Instant;

use crate::Steward;
use crate::estate::{Estate, Item, Managed};
use crate::fault::fault;

/// How many kinds of one estate are listed at once.
const WIDTH: usize = 4;

/// What was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where it is looked after.
    pub estate: Arc<Estate>,
    /// Where it is.
    pub address: Address,
    /// The version that was read.
    pub version: Version,
    /// Who owns its fields, as far as it matters to the next write.
    pub fields: Fields,
    /// Who owns which of its fields.
    pub ownership: Ownership,
    /// All of it.
    pub live: Live,
}

impl Seen {
    fn new(estate: &Arc<Estate>, object: Object) -> Self {
        let Object { address, version, fields, ownership, body } = object;
        Self { estate: Arc::clone(estate), address, version, fields, ownership, live: Live::new(body) }
    }
}

impl Steward {
    /// All that concerns us in an estate: what carries the mark of our integration, and what is wanted.
    pub async fn observe(&self, read: &Read, estate: &Arc<Estate>, wanted: &[Want<Item>]) -> World<Seen> {
        let mut world = World::new();
        if let Err(why) = self.reach(read, estate).await {
            let scopes = estate.kinds.iter().map(|managed| estate.scope(&managed.kind));
            world.extend(scopes.map(|scope| (scope, Observed::Unknown(why.clone()))));
            return world;
        }
        let wrong = self.wrong_kinds(read, estate).await;
        let mut lists: Vec<BoxFuture<'_, _>> = Vec::new();
        for managed in &estate.kinds {
            let scope = estate.scope(&managed.kind);
            if let Some(why) = wrong.get(&managed.kind) {
                world.insert(scope, Observed::Unknown(why.clone()));
                continue;
            }
            let listing = self.list(read, estate, managed, wanted);
            lists.push(listing.map(move |listed| (scope, managed, listed)).boxed());
        }
        let lists: Vec<_> = futures_util::stream::iter(lists).buffer_unordered(WIDTH).collect().await;
        for (scope, managed, listed) in lists {
            let observed = match listed {
                Ok(objects) => {
                    let desired = wanted.iter().filter(|want| want.thing.scope == scope).count();
                    count(estate, managed, Side::Current, objects.len());
                    count(estate, managed, Side::Desired, desired);
                    Observed::Known(objects.into_iter().map(|object| Seen::new(estate, object)).collect())
                }
                Err(why) => Observed::Unknown(why),
            };
            world.insert(scope, observed);
        }
        self.add_workloads(read, estate, wanted, &mut world).await;
        world
    }

    /// Whether the cluster answers at all: asked once per round, so that one that does not costs its deadline once.
    async fn reach(&self, read: &Read, estate: &Estate) -> Result<(), Fault> {
        let cluster = &estate.cluster;
        let ask = async {
            let served = self.kubernetes.served(&read.permit, cluster, &Kind::namespace()).await;
            match served {
                Err(
                    error @ (KubernetesError::Unreachable { .. }
                    | KubernetesError::Credentials { .. }
                    | KubernetesError::Denied { .. }),
                ) => Err(fault(&error)),
                // Whatever else is wrong is told where it matters.
                Ok(_) | Err(_) => Ok(()),
            }
        };
        let answer = read.memo.once(format!("reach {}", known_by(cluster)), ask).await;
        Result::clone(&answer)
    }

    /// Kinds that cannot be looked after here: named twice, or in namespaces where the estate is not, and the reverse.
    async fn wrong_kinds(&self, read: &Read, estate: &Estate) -> BTreeMap<Kind, Fault> {
        let mut wrong = BTreeMap::new();
        let mut known: BTreeMap<(String, String), Kind> = BTreeMap::new();
        for Managed { kind, names } in &estate.kinds {
            // Whatever else is wrong with a kind is told when it is listed.
            let Ok(served) = self.kubernetes.served(&read.permit, &estate.cluster, kind).await else {
                continue;
            };
            let group = served.api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
            if let Some(other) = known.insert((group, kind.name.clone()), kind.clone()) {
                let why = Fault::author(format!("`{other}` and `{kind}` are the same kind: name it once"));
                wrong.insert(other, why.clone());
                wrong.insert(kind.clone(), why);
            }
            let why = match (served.is_namespaced, &estate.namespace) {
                (false, Some(_)) if names.is_none() => {
                    format!("{kind} is not in namespaces: name those that are looked after from this one")
                }
                (true, None) => format!("{kind} is in namespaces, and none is named"),
                (true | false, _) => continue,
            };
            wrong.insert(kind.clone(), Fault::author(why));
        }
        wrong
    }

    async fn list(
        &self,
        read: &Read,
        estate: &Estate,
        managed: &Managed,
        wanted: &[Want<Item>],
    ) -> Result<Vec<Object>, Fault> {
        let scope = estate.scope(&managed.kind);
        let names: BTreeSet<&str> = wanted
            .iter()
            .filter(|want| want.thing.scope == scope)
            .map(|want| want.thing.name.as_str())
            .collect();
        let concerns = |object: &Object| {
            let name = object.address.name.as_str();
            let is_ours = || {
                let mark = Mark::of(&object.body);
                mark.map_or(estate.takes_over, |mark| mark.integration == estate.owner.integration())
                    && managed.names.as_ref().is_none_or(|names| names.contains(name))
            };
            names.contains(name) || is_ours()
        };
        // As the data has them: another version of the kind may lack what the data says.
        let version = wanted.iter().find_map(|want| match &want.wanted {
            Wanted::Present(item) if want.thing.scope == scope => Some(item.desired.api_version()),
            Wanted::Present(_) | Wanted::Delete | Wanted::Unresolved(_) => None,
        });
        let kind = KindVersion { kind: &managed.kind, api_version: version };
        if estate.namespace.is_some() {
            let all = self.list_all(read, estate, kind).await?;
            return Ok(all.into_iter().filter(concerns).collect());
        }
        // Many shards may look after the objects of one cluster.
        let shown = version.unwrap_or_default();
        let name = format!("list {} {} {shown}", known_by(&estate.cluster), managed.kind);
        let all = read.memo.once(name, self.list_all(read, estate, kind)).await;
        let all = all.as_ref().as_ref().map_err(Fault::clone)?;
        Ok(all.iter().filter(|object| concerns(object)).cloned().collect())
    }

    async fn list_all(
        &self,
        read: &Read,
        estate: &Estate,
        kind: KindVersion<'_>,
    ) -> Result<Vec<Object>, Fault> {
        let begun = Instant::now();
        let listed =
            self.kubernetes.list_as(&read.permit, &estate.cluster, kind, estate.namespace.as_deref()).await;
        activity::measured(Measure::Listed {
            cluster: estate.cluster.name.clone(),
            kind: kind.kind.to_string(),
            took: begun.elapsed(),
        });
        match listed {
            Ok(objects) => Ok(objects),
            // The kind may come with this very change; until then there is nothing of it.
            Err(KubernetesError::Unserved { .. }) => Ok(Vec::new()),
            Err(error) => Err(fault(&error)),
        }
    }

    /// Adds workloads to the world, if something that they use is to be recycled.
    async fn add_workloads(
        &self,
        read: &Read,
        estate: &Arc<Estate>,
        wanted: &[Want<Item>],
        world: &mut World<Seen>,
    ) {
        if estate.namespace.is_none() || !crate::recycle::may_restart(wanted, world) {
            return;
        }
        let mut workloads = BTreeMap::new();
        for kind in crate::recycle::kinds() {
            let listed = self.list_all(read, estate, KindVersion { kind: &kind, api_version: None }).await;
            let observed = match listed {
                Ok(objects) => {
                    Observed::Known(objects.into_iter().map(|object| Seen::new(estate, object)).collect())
                }
                Err(why) => Observed::Unknown(why),
            };
            workloads.insert(crate::recycle::scope(estate, &kind), observed);
        }
        world.extend(workloads);
    }
}

/// What tells who is asked, and as whom: another token may be told other things.
fn known_by(cluster: &Cluster) -> String {
    let Cluster { name, server, token } = cluster;
    format!("{name} {server} {token:?}")
}

fn count(estate: &Estate, managed: &Managed, state: Side, count: usize) {
    activity::measured(Measure::Objects {
        cluster: estate.cluster.name.clone(),
        namespace: estate.namespace.clone().unwrap_or_default(),
        kind: managed.kind.to_string(),
        shard: activity::shard(),
        state,
        count,
    });
}
