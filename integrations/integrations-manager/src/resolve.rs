//! The desired objects of a namespace: manifests, with the tags of images that are commits of refs.

use qontract_fleet::manifest::{self, PodSettings, Workload};
use qontract_fleet::names::app_name;
use qontract_fleet::parameters::RepositoryRef;
use qontract_objects::{DesiredObject, ObjectShardView, ResolveContext, Sensitivity};
use qontract_runtime::{DesiredItem, DesiredState, Fault, PlanHint, SourceLocation};

use crate::balance::{self, BalancedWorkload, RunTimes};
use crate::state::{BrokenDeployment, NamespaceFleet, kinds};

/// The desired objects of a namespace.
pub async fn resolve(
    context: ResolveContext<'_>,
    run_times: &RunTimes,
    shard: ObjectShardView<'_, NamespaceFleet>,
) -> Result<Vec<DesiredItem<DesiredObject>>, Fault> {
    let state = &shard.shard.state;
    let mut items = Vec::new();
    for BrokenDeployment { name, fault } in &state.broken {
        items.extend(unresolved(context, name, fault, None));
    }
    let tag = match &state.parameters.tag_of_ref {
        None => Ok(None),
        Some(RepositoryRef { repository, git_ref }) => {
            let commit = context.lookups.commit(context.read, repository, git_ref).await;
            commit.map(|commit| Some(commit.chars().take(state.hash_length).collect::<String>()))
        }
    };
    let settings = tag.map(|tag| PodSettings {
        parameters: state.parameters.clone(),
        tag,
        environment: state.environment.clone(),
        manager: state.manager.clone(),
    });
    for (index, workload) in state.workloads.iter().enumerate() {
        let place = shard.shard.place(&format!("/workloads/{index}")).cloned();
        match &settings {
            Ok(settings) => items.extend(objects(context, workload, settings, place.as_ref())),
            Err(fault) => items.extend(unresolved(context, &workload.name, fault, place.as_ref())),
        }
    }
    let mut hints = state.hints.clone();
    for (index, deployment) in state.balanced.iter().enumerate() {
        let place = shard.shard.place(&format!("/balanced/{index}")).cloned();
        let balanced = balance::workloads(context, run_times, deployment).await;
        match (&settings, balanced) {
            (Ok(settings), Ok(balanced)) => {
                let hint = |text| PlanHint { text, place: place.clone() };
                hints.extend(balanced.remarks.into_iter().map(hint));
                for BalancedWorkload { workload, is_draining } in balanced.workloads {
                    let mut objects = objects(context, &workload, settings, place.as_ref());
                    for object in &mut objects {
                        if let DesiredState::Present(object) = &mut object.state {
                            object.awaits_rollout = is_draining;
                        }
                    }
                    items.extend(objects);
                }
            }
            (Err(fault), _) => {
                let name = app_name(&deployment.integration);
                items.extend(unresolved(context, &name, fault, place.as_ref()));
            }
            (_, Err(fault)) => {
                let name = app_name(&deployment.integration);
                items.extend(unresolved(context, &name, &fault, place.as_ref()));
            }
        }
    }
    if state.has_service() {
        let place = shard.shard.place("").cloned();
        items.push(context.scope.desired_item(manifest::service(), Sensitivity::Public, place));
    }
    // The remarks concern the whole namespace; each is reported once.
    for item in &mut items {
        if let DesiredState::Present(object) = &mut item.state {
            object.hints = hints;
            break;
        }
    }
    Ok(items)
}

/// The objects of a workload.
fn objects(
    context: ResolveContext<'_>,
    workload: &Workload,
    settings: &PodSettings,
    place: Option<&SourceLocation>,
) -> Vec<DesiredItem<DesiredObject>> {
    let objects = manifest::objects(workload, settings).into_iter();
    objects.map(|body| context.scope.desired_item(body, Sensitivity::Public, place.cloned())).collect()
}

/// Unresolved items for an object whose kind is not known: one for each kind, so that nothing is removed.
fn unresolved(
    context: ResolveContext<'_>,
    name: &str,
    fault: &Fault,
    place: Option<&SourceLocation>,
) -> Vec<DesiredItem<DesiredObject>> {
    let item = |kind| DesiredItem {
        object: context.scope.object_key(&kind, name),
        place: place.cloned(),
        state: DesiredState::Unresolved(fault.clone()),
    };
    kinds().map(item).collect()
}
