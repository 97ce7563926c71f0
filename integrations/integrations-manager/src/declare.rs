//! Declares the workloads of each namespace.

use std::collections::{BTreeMap, BTreeSet};

use qontract_fleet::manifest::{self, Workload};
use qontract_fleet::model::{self, Inventory, InventoryNamespace};
use qontract_fleet::names::{is_object_name, shard_name};
use qontract_fleet::parameters::{ParameterSources, TemplateParameters};
use qontract_fleet::{Commands, FindingLevel, ShardingContext, ShardingError, Shards, strategy_of};
use qontract_objects::{Declared, LocatedNamespace, LocatedState, ShardBuilder};
use qontract_runtime::{Data, DeclaredAnswer, Fault, Options, PlanHint, SourceLocation, SourceLocations};

use crate::NAME;
use crate::convert::{self, own_sharding};
use crate::optional::integration_shards::ShardsOfIntegrations;
use crate::optional::labelled_namespaces::LabelledNamespaces;
use crate::optional::older_shards::OlderShards;
use crate::optional::older_strategies::OlderStrategies;
use crate::query::{self, Fleet};
use crate::settings::ManagerSettings;
use crate::state::{BalancedDeployment, BrokenDeployment, NamespaceFleet};

/// Default number of characters of a commit in image tags.
const DEFAULT_HASH_LENGTH: usize = 7;

/// A deployment of an integration, with its provenance.
struct Deployment {
    integration: String,
    spec: model::IntegrationSpec,
    sharding: Option<model::Sharding>,
    /// The entry of `managed`.
    place: Option<SourceLocation>,
    /// The sharding, if it is in a datafile of its own.
    sharding_place: Option<SourceLocation>,
}

/// A namespace with its deployments.
struct DeployedNamespace {
    namespace: LocatedNamespace,
    environment: Option<model::Environment>,
    /// Whether this caller declares the Service of the namespace.
    owns_service: bool,
    deployments: Vec<Deployment>,
}

/// The shardings of datafiles of their own.
struct OwnShardings {
    entries: Vec<OwnSharding>,
}

struct OwnSharding {
    integration: String,
    namespace: Option<String>,
    sharding: model::Sharding,
    place: SourceLocation,
}

/// Declares the fleet: a shard for each namespace to which integrations are deployed.
pub fn declare(
    data: &Data,
    options: &Options,
    commands: &Commands,
) -> Result<Declared<NamespaceFleet>, Fault> {
    let settings = ManagerSettings::of(options)?;
    let shardings = OwnShardings::of(data)?;
    let DeclaredAnswer { data: fleet, places } = data.query::<Fleet>()?;
    let older = OlderForms::of(data)?;
    let hash_length = fleet.app_interface_settings_v1.iter().flatten().next();
    let hash_length = hash_length.and_then(|settings| usize::try_from(settings.hash_length).ok());
    let declaration = Declaration {
        settings: &settings,
        inventory: inventory(data, &fleet, shardings.need_labels())?,
        commands,
        hash_length: hash_length.unwrap_or(DEFAULT_HASH_LENGTH),
        keys: KeyPlaces::of(&fleet, &places),
    };
    let mut shards = ShardBuilder::new(NAME).with_caller(settings.caller());
    for deployed in
        deployed_namespaces(fleet, &places, &settings, ShardingSources { own: &shardings, older: &older })
    {
        if deployed.namespace.target.is_marked_for_deletion() {
            shards.skip_deleted(deployed.namespace);
            continue;
        }
        let state = declaration.state(&deployed);
        shards.add(deployed.namespace, Ok(state));
    }
    Ok(shards.finish())
}

/// All repositories with integrations: the callers.
pub fn upstreams(data: &Data) -> Result<BTreeSet<String>, Fault> {
    let fleet = data.query::<Fleet>()?.data;
    Ok(fleet.integrations_v1.into_iter().flatten().filter_map(|integration| integration.upstream).collect())
}

impl OwnShardings {
    fn of(data: &Data) -> Result<Self, Fault> {
        let answer = data.query_if_known::<ShardsOfIntegrations>()?;
        let all = answer.and_then(|answer| answer.data.integration_shards_v1).unwrap_or_default();
        let entry = |one: crate::optional::integration_shards::IntegrationShards| OwnSharding {
            integration: one.integration.name.clone(),
            namespace: one.namespace.as_ref().map(|namespace| namespace.path.clone()),
            place: SourceLocation::datafile(&one.path, ""),
            sharding: own_sharding(one),
        };
        Ok(Self { entries: all.into_iter().map(entry).collect() })
    }

    /// Whether a strategy needs the labels of namespaces.
    fn need_labels(&self) -> bool {
        self.entries.iter().any(|entry| entry.sharding.strategy == "per-namespace-label")
    }

    /// The shardings of a deployment.
    fn matching<'s>(
        &'s self,
        integration: &'s str,
        namespace: &'s str,
    ) -> impl Iterator<Item = &'s OwnSharding> {
        self.entries.iter().filter(move |entry| {
            entry.integration == integration
                && entry.namespace.as_deref().is_none_or(|path| path == namespace)
        })
    }
}

/// The older forms of sharding, by the indexes of the integration and of the entry of `managed`.
#[derive(Default)]
struct OlderForms {
    shards: BTreeMap<(usize, usize), i64>,
    strategies: BTreeMap<(usize, usize), String>,
}

impl OlderForms {
    fn of(data: &Data) -> Result<Self, Fault> {
        let mut older = Self::default();
        if let Some(answer) = data.query_if_known::<OlderShards>()? {
            for (index, integration) in answer.data.integrations_v1.into_iter().flatten().enumerate() {
                for (entry, managed) in integration.managed.into_iter().flatten().enumerate() {
                    older.shards.extend(managed.spec.shards.map(|shards| ((index, entry), shards.into())));
                }
            }
        }
        if let Some(answer) = data.query_if_known::<OlderStrategies>()? {
            for (index, integration) in answer.data.integrations_v1.into_iter().flatten().enumerate() {
                for (entry, managed) in integration.managed.into_iter().flatten().enumerate() {
                    let strategy = managed.spec.sharding_strategy;
                    older.strategies.extend(strategy.map(|strategy| ((index, entry), strategy)));
                }
            }
        }
        Ok(older)
    }
}

/// The objects by which integrations are sharded.
fn inventory(data: &Data, fleet: &Fleet, with_labels: bool) -> Result<Inventory, Fault> {
    let clusters = fleet.clusters_v1.iter().flatten().cloned().map(convert::cluster_item);
    let accounts = fleet.awsaccounts_v1.iter().flatten().cloned().map(convert::account_item);
    let organizations = fleet.ocm_instances_v1.iter().flatten().cloned().map(convert::organization);
    let labelled = if with_labels { data.query_if_known::<LabelledNamespaces>()? } else { None };
    let namespaces = labelled.and_then(|answer| answer.data.namespaces_v1).unwrap_or_default();
    let namespaces = namespaces.into_iter().filter(|namespace| namespace.delete != Some(true));
    let namespace = |one: crate::optional::labelled_namespaces::Namespace| InventoryNamespace {
        cluster: one.cluster.name,
        name: one.name,
        labels: convert::json(one.labels.as_deref())
            .and_then(|labels| serde_json::from_value(labels).ok())
            .unwrap_or_default(),
        disable: convert::disabled(one.cluster.disabled_integrations),
    };
    Ok(Inventory {
        clusters: clusters.collect(),
        aws_accounts: accounts.collect(),
        ocm_organizations: organizations.collect(),
        namespaces: namespaces.map(namespace).collect(),
    })
}

/// Shardings that are not part of the query result of the integrations.
#[derive(Clone, Copy)]
struct ShardingSources<'s> {
    own: &'s OwnShardings,
    older: &'s OlderForms,
}

/// The caller that declares the Service of each namespace, by the path of the namespace: the first caller by name, so
/// that callers that share a namespace agree without reading the objects of each other.
fn service_owners(fleet: &Fleet) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for integration in fleet.integrations_v1.iter().flatten() {
        let Some(upstream) = &integration.upstream else { continue };
        for managed in integration.managed.iter().flatten() {
            let owner = owners.entry(managed.namespace.path.clone()).or_insert_with(|| upstream.clone());
            if upstream < owner {
                owner.clone_from(upstream);
            }
        }
    }
    owners
}

/// The selected deployments by namespace, in order of first use.
fn deployed_namespaces(
    fleet: Fleet,
    places: &SourceLocations,
    settings: &ManagerSettings,
    sources: ShardingSources<'_>,
) -> Vec<DeployedNamespace> {
    let mut namespaces: Vec<(String, DeployedNamespace)> = Vec::new();
    let service_owners = service_owners(&fleet);
    for (index, integration) in fleet.integrations_v1.into_iter().flatten().enumerate() {
        let query::Integration { path: _, name, upstream, managed } = integration;
        if !settings.selects_upstream(upstream.as_deref()) {
            continue;
        }
        for (entry, managed) in managed.into_iter().flatten().enumerate() {
            let query::IntegrationManaged { namespace, spec, sharding } = managed;
            let query::Namespace { namespace_target, path, environment } = namespace;
            if !settings.selects_environment(&environment.name) {
                continue;
            }
            let pointer = format!("/integrations_v1/{index}/managed/{entry}");
            let position = namespaces.iter().position(|(other, _)| *other == path).unwrap_or_else(|| {
                let at = format!("{pointer}/namespace");
                let namespace = LocatedNamespace::new(namespace_target, places, &at);
                let environment = Some(environment.into());
                let owns_service =
                    settings.upstream.is_none() || settings.upstream.as_ref() == service_owners.get(&path);
                let deployments = Vec::new();
                let deployed = DeployedNamespace { namespace, environment, owns_service, deployments };
                namespaces.push((path.clone(), deployed));
                namespaces.len() - 1
            });
            let ShardingSources { own, older } = sources;
            let own = own.matching(&name, &path).last();
            let position_of_entry = (index, entry);
            let spec = model::IntegrationSpec {
                shards: older.shards.get(&position_of_entry).copied(),
                sharding_strategy: older.strategies.get(&position_of_entry).cloned(),
                ..spec.into()
            };
            let of_entry = sharding.map(model::Sharding::from);
            namespaces[position].1.deployments.push(Deployment {
                integration: name.clone(),
                spec,
                sharding: own.map(|own| own.sharding.clone()).or(of_entry),
                place: places.of(&pointer),
                sharding_place: own.map(|own| own.place.clone()),
            });
        }
    }
    namespaces.into_iter().map(|(_, namespace)| namespace).collect()
}

/// The places of the names that become parts of the names of objects; `None` for a name that several objects have.
struct KeyPlaces(BTreeMap<String, Option<SourceLocation>>);

impl KeyPlaces {
    fn of(fleet: &Fleet, places: &SourceLocations) -> Self {
        let mut keys = BTreeMap::new();
        let mut add = |list: &str, index: usize, key: &str, field: &str| {
            let place = places.of(&format!("/{list}/{index}")).map(|place| place.below(field));
            let is_unique = !keys.contains_key(key);
            keys.insert(key.to_owned(), place.filter(|_| is_unique));
        };
        for (index, one) in fleet.clusters_v1.iter().flatten().enumerate() {
            add("clusters_v1", index, &one.name, "/name");
        }
        for (index, one) in fleet.awsaccounts_v1.iter().flatten().enumerate() {
            add("awsaccounts_v1", index, &one.name, "/name");
        }
        for (index, one) in fleet.ocm_instances_v1.iter().flatten().enumerate() {
            add("ocm_instances_v1", index, &one.org_id, "/orgId");
        }
        Self(keys)
    }
}

/// What the declarations of all namespaces share.
struct Declaration<'d> {
    settings: &'d ManagerSettings,
    inventory: Inventory,
    commands: &'d Commands,
    hash_length: usize,
    keys: KeyPlaces,
}

impl Declaration<'_> {
    /// The declared state of a namespace.
    fn state(&self, deployed: &DeployedNamespace) -> LocatedState<NamespaceFleet> {
        let environment = deployed.environment.as_ref();
        let sources = ParameterSources {
            names: self.settings.parameters.keys().cloned().collect(),
            variables: self.settings.parameters.clone(),
            upstream: &self.settings.caller(),
            image: self.settings.image.as_deref().unwrap_or_default(),
            tag_from_ref: self.settings.tag_from_ref.clone(),
        };
        let mut namespace = NamespaceBuilder {
            state: NamespaceFleet {
                parameters: TemplateParameters::of(environment, &sources),
                environment: environment.map(|environment| environment.name.clone()),
                manager: self.settings.variables(),
                owns_service: deployed.owns_service,
                hash_length: self.hash_length,
                ..NamespaceFleet::default()
            },
            ..NamespaceBuilder::default()
        };
        for deployment in &deployed.deployments {
            self.add(&mut namespace, deployment);
        }
        namespace.finish()
    }

    /// Adds the shards of a deployment.
    fn add(&self, namespace: &mut NamespaceBuilder, deployment: &Deployment) {
        let Deployment { integration, spec, sharding, place, .. } = deployment;
        let context =
            ShardingContext { integration, spec, inventory: &self.inventory, commands: self.commands };
        let strategy = match strategy_of(spec, sharding.as_ref()) {
            Ok(strategy) => strategy,
            Err(error) => return namespace.break_deployment(deployment, sharding_fault(&error, deployment)),
        };
        let mut findings = strategy.findings(&context);
        findings.extend(qontract_fleet::check_spec(spec));
        let mut is_broken = false;
        for finding in findings {
            let place = deployment.place_of(&finding.pointer);
            match finding.level {
                FindingLevel::Warning => namespace.state.hints.push(PlanHint { text: finding.text, place }),
                FindingLevel::Error => {
                    is_broken = true;
                    let fault = Fault::author(finding.text).at(place);
                    let fault = finding.hint.into_iter().fold(fault, Fault::hint);
                    namespace.break_deployment(deployment, fault);
                }
            }
        }
        if is_broken {
            return;
        }
        match strategy.shards(&context) {
            Err(error) => namespace.break_deployment(deployment, sharding_fault(&error, deployment)),
            Ok(Shards::Measured(sharding)) => {
                let (integration, spec) = (integration.clone(), spec.clone());
                let grace_seconds = self.commands.grace_seconds(&integration);
                let index = namespace.state.balanced.len();
                namespace.places.extend(place.clone().map(|place| (format!("/balanced/{index}"), place)));
                let balanced = BalancedDeployment { integration, spec, sharding, grace_seconds };
                namespace.state.balanced.push(balanced);
            }
            Ok(Shards::Fixed(shards)) => {
                for shard in shards {
                    let key = shard.shard_key.clone();
                    // The whole name: the part that is cut off is also part of the arguments.
                    let name = shard_name(integration, &shard.shard_name_suffix);
                    let workload = Workload::new(integration, spec, shard, self.commands);
                    if is_object_name(&name) && !name.contains('.') {
                        namespace.workloads.push(LocatedWorkload { workload, place: place.clone() });
                        continue;
                    }
                    let text =
                        format!("`{}` is not a valid name of a {}", workload.name, workload.kind.as_str());
                    let hint = "names of pods consist of lower-case letters, digits and hyphens";
                    let key_place = self.keys.0.get(&key).cloned().flatten();
                    let fault = Fault::author(text).hint(hint).at(key_place).at(place.clone());
                    namespace.state.broken.push(BrokenDeployment { name: workload.name, fault });
                }
            }
        }
    }
}

impl Deployment {
    /// The place of a value below the entry of `managed`.
    fn place_of(&self, pointer: &str) -> Option<SourceLocation> {
        match (&self.sharding_place, pointer.strip_prefix("/sharding")) {
            (Some(place), Some(pointer)) => Some(place.below(pointer)),
            _ => self.place.as_ref().map(|place| place.below(pointer)),
        }
    }
}

/// The fault of a deployment whose shards are not known.
fn sharding_fault(error: &ShardingError, deployment: &Deployment) -> Fault {
    let strategy = deployment.place_of("/sharding/strategy");
    let fault = Fault::author(error.to_string());
    match error {
        ShardingError::UnknownStrategy(_) => {
            let is_older = deployment.sharding.is_none();
            let place = if is_older { deployment.place_of("/spec/shardingStrategy") } else { strategy };
            let names = qontract_fleet::STRATEGIES.map(|name| format!("`{name}`")).join(", ");
            fault.at(place).hint(format!("write one of {names}"))
        }
        ShardingError::MissingFlag { .. } => {
            let hint =
                "use the strategy `static`, or list the flag under `[fleet.commands]` in the configuration";
            fault.at(strategy).hint(hint)
        }
        ShardingError::MissingSetting { .. } | ShardingError::InvalidKey(_) => fault.at(strategy),
    }
}

/// Collects the workloads of a namespace.
#[derive(Default)]
struct NamespaceBuilder {
    /// The state, without the workloads.
    state: NamespaceFleet,
    /// The workloads, each with the entry that declares it.
    workloads: Vec<LocatedWorkload>,
    places: BTreeMap<String, SourceLocation>,
}

struct LocatedWorkload {
    workload: Workload,
    place: Option<SourceLocation>,
}

impl NamespaceBuilder {
    /// Leaves the objects of a deployment as they are.
    fn break_deployment(&mut self, deployment: &Deployment, fault: Fault) {
        let name = qontract_fleet::names::app_name(&deployment.integration);
        self.state.broken.push(BrokenDeployment { name, fault });
    }

    /// The declared state. Workloads with an object of the same name are not declared.
    fn finish(self) -> LocatedState<NamespaceFleet> {
        let Self { mut state, workloads, mut places } = self;
        let mut declared: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
        for (index, one) in workloads.iter().enumerate() {
            for object in manifest::object_names(&one.workload) {
                declared.entry(object).or_default().push(index);
            }
        }
        let mut duplicates = BTreeSet::new();
        for ((kind, name), indexes) in declared.into_iter().filter(|(_, indexes)| indexes.len() > 1) {
            let is_reported = indexes.iter().all(|index| duplicates.contains(index));
            duplicates.extend(indexes.iter().copied());
            if is_reported {
                continue;
            }
            let fault = Fault::author(format!("{} entries declare the same {kind}", indexes.len()))
                .hint("remove all of these entries of `managed` but one");
            let fault = indexes.iter().fold(fault, |fault, index| fault.at(workloads[*index].place.clone()));
            state.broken.push(BrokenDeployment { name, fault });
        }
        let unique = workloads.into_iter().enumerate().filter(|(index, _)| !duplicates.contains(index));
        for (index, (_, LocatedWorkload { workload, place })) in unique.enumerate() {
            places.extend(place.map(|place| (format!("/workloads/{index}"), place)));
            state.workloads.push(workload);
        }
        LocatedState { state, places }
    }
}
