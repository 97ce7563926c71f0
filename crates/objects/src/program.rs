//! Object programs: process integrations that only declare Kubernetes objects. qontract observes, plans and
//! applies these objects, with the same ownership rules, callers and guards as for other objects.

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::Kind;
use qontract_diagnostics::suggest::nearest;
use qontract_inventory::Callers;
use qontract_runtime::process::{LocatedShard, ProcessIntegration, ProgramDeclaration, ShardFault};
use qontract_runtime::state::Shard;
use qontract_runtime::{CALLER_DIMENSION, Data, Fault, IntegrationMeta, ManagedKinds, Options, ShardKey};

use crate::integration::ObjectIntegration;
use crate::namespaces::LocatedNamespace;
use crate::{Declared, DeclaredObjects};

mod query;
mod wire;

use query::ProgramNamespaces;
use wire::WireObjectShard;

/// A program that declares Kubernetes objects.
pub struct ObjectProgram {
    program: ProcessIntegration,
}

impl ObjectProgram {
    /// The integration of a program that [declares objects](ProcessIntegration::declares_objects).
    pub fn new(program: ProcessIntegration) -> Self {
        Self { program }
    }

    fn declaration(
        &self,
        data: &Data,
        options: &Options,
    ) -> Result<ProgramDeclaration<WireObjectShard>, Fault> {
        self.program.declare_shards(data, options)
    }
}

impl ObjectIntegration for ObjectProgram {
    type State = DeclaredObjects;

    fn meta(&self) -> IntegrationMeta {
        // Restarts are planned from the notes that an earlier round wrote.
        self.program.meta().clone().query::<ProgramNamespaces>().rounds(3)
    }

    fn managed_kinds(&self) -> ManagedKinds {
        ManagedKinds::Declared
    }

    fn declare(&self, data: &Data, options: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
        let answer = data.query::<ProgramNamespaces>()?;
        let mut namespaces: BTreeMap<(String, String), LocatedNamespace> = BTreeMap::new();
        for (index, target) in answer.data.namespaces_v1.into_iter().flatten().enumerate() {
            let id = (target.cluster.name.clone(), target.name.clone());
            let pointer = format!("/namespaces_v1/{index}");
            namespaces.insert(id, LocatedNamespace::new(target, &answer.places, &pointer));
        }
        let name = &self.program.meta().name;
        let declaration = self.declaration(data, options)?;
        let mut declared = Declared::new(());
        let mut keys = BTreeSet::new();
        for shard in declaration.shards {
            let key = shard_key(&shard.shard);
            if !keys.insert(key.clone()) {
                let text = format!("the response of the program contains the shard `{key}` more than once");
                let fault = Fault::author(text).hint("return each shard once, with all of its objects");
                declared.add_fault(key, fault.at(shard.place.clone()));
                continue;
            }
            let id = (shard.shard.cluster.clone(), shard.shard.namespace.clone());
            let namespace = namespaces.get(&id);
            if let Some(LocatedNamespace { target, .. }) = namespace {
                declared.target_keys.insert(key.clone(), target.cluster.target_key(&key));
            }
            let shard = match namespace {
                Some(namespace) => namespace.object_shard(name, shard),
                None => Err(undeclared(&shard, &namespaces)),
            };
            match shard {
                Ok(shard) => declared.add(key, shard),
                Err(fault) => declared.add_fault(key, fault),
            }
        }
        for ShardFault { key, fault } in declaration.faults {
            declared.add_fault(key, fault);
        }
        Ok(declared)
    }

    fn has_callers(&self) -> bool {
        true
    }

    fn callers(&self, data: &Data) -> Result<Callers, Fault> {
        let declaration = self.declaration(data, &Options::default())?;
        let mut callers = BTreeSet::new();
        for ShardFault { key, .. } in &declaration.faults {
            // A caller whose declaration has an error still exists.
            let Some(caller) = key.get(CALLER_DIMENSION) else { return Ok(Callers::Unknown) };
            callers.insert(caller.to_owned());
        }
        callers.extend(declaration.shards.into_iter().filter_map(|located| located.shard.caller));
        Ok(Callers::Whole(callers))
    }
}

fn shard_key(shard: &WireObjectShard) -> ShardKey {
    let caller = shard.caller.as_deref().map(|caller| (CALLER_DIMENSION, caller));
    let namespace = [("cluster", shard.cluster.as_str()), ("namespace", shard.namespace.as_str())];
    ShardKey::new(namespace.into_iter().chain(caller))
}

/// The error about a namespace that the data does not declare, with the nearest namespace of the cluster as a
/// hint.
fn undeclared(
    located: &LocatedShard<WireObjectShard>,
    namespaces: &BTreeMap<(String, String), LocatedNamespace>,
) -> Fault {
    let WireObjectShard { cluster, namespace, .. } = &located.shard;
    let text = format!("the data does not declare the namespace `{namespace}` of the cluster `{cluster}`");
    let fault = Fault::author(text).at(located.place.clone());
    let declared = namespaces.keys().filter(|(other, _)| other == cluster);
    match nearest(namespace, declared.map(|(_, name)| name.as_str())) {
        Some(nearest) => fault.hint(format!("did you mean `{nearest}`?")),
        None => fault,
    }
}

impl LocatedNamespace {
    /// The shard of an object program in this namespace.
    fn object_shard(
        &self,
        integration: &str,
        located: LocatedShard<WireObjectShard>,
    ) -> Result<Shard<qontract_client_kubernetes::Cluster, DeclaredObjects>, Fault> {
        let LocatedShard { shard: WireObjectShard { kinds, objects, caller, may_remove, .. }, place } =
            located;
        if caller.as_deref() == Some("") {
            return Err(Fault::author("the caller is empty").at(place));
        }
        let mut parsed = BTreeSet::new();
        for kind in &kinds {
            let kind: Kind = kind
                .parse()
                .map_err(|_| Fault::author(format!("`{kind}` is not a kind")).at(place.clone()))?;
            parsed.insert(kind);
        }
        let cluster = self.target.cluster().map_err(|why| Fault::author(why).at(self.place.clone()))?;
        let state = DeclaredObjects { kinds: parsed, objects, ..DeclaredObjects::default() };
        let disabled = self.disabled(integration);
        let shard = Shard::new(cluster, state, place.or_else(|| self.place.clone()));
        Ok(Shard { disabled, ..shard.consent_to_removals(may_remove) })
    }
}
