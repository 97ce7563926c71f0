//! Manages the declared labels of namespaces.

mod declare;
mod observe;
mod plan;
mod plan_inputs;
mod query;

use std::sync::Arc;

use qontract_client_kubernetes::{Cluster, Kubernetes, Object};
use qontract_objects::{apply_result, namespace_integration, rehearsal_result};
use qontract_runtime::replay::{Fingerprints, PlanInputs};
use qontract_runtime::{
    ApplyResult, ClusterPermissions, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    Fault, IntegrationMeta, ManagedKinds, Options, Plan, ReadContext, RehearsalResult, StagedIntegration,
    WriteContext,
};

pub use declare::DeclaredLabels;
pub use plan::{DesiredLabels, LabelAction};

/// The name of the integration.
pub const NAME: &str = "openshift-namespace-labels";

/// The field manager that owns the labels of namespaces, including namespaces that another party created.
pub const MANAGER: &str = "qontract-namespace-labels";

/// The integration.
pub struct OpenshiftNamespaceLabels {
    meta: IntegrationMeta,
    kubernetes: Arc<dyn Kubernetes>,
}

/// Metadata of the integration.
pub fn meta() -> IntegrationMeta {
    let permissions =
        ClusterPermissions { kinds: ManagedKinds::Fixed("Namespace"), verbs: &["list", "get", "patch"] };
    namespace_integration::<query::NamespaceLabels>(NAME, "Manages labels of namespaces")
        .permissions(permissions)
}

impl OpenshiftNamespaceLabels {
    /// Creates the integration on these clusters.
    pub fn new(kubernetes: Arc<dyn Kubernetes>) -> Self {
        Self { meta: meta(), kubernetes }
    }
}

impl StagedIntegration for OpenshiftNamespaceLabels {
    type Common = ();
    type Target = Cluster;
    type State = DeclaredLabels;
    type Desired = DesiredLabels;
    type Current = Object;
    type Action = LabelAction;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, data: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        declare::declare(data)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), Cluster, DeclaredLabels>,
    ) -> Result<Vec<DesiredItem<DesiredLabels>>, Fault> {
        Ok(vec![observe::desired_labels(&view)])
    }

    async fn observe(
        &self,
        read: &ReadContext,
        view: DeclaredShardView<'_, (), Cluster, DeclaredLabels>,
        _: &[DesiredItem<DesiredLabels>],
    ) -> Result<CurrentState<Object>, Fault> {
        Ok(observe::observe(&*self.kubernetes, read, &view).await)
    }

    fn plan(
        &self,
        wanted: &[DesiredItem<DesiredLabels>],
        current: &CurrentState<Object>,
    ) -> Plan<LabelAction> {
        plan::plan(wanted, current)
    }

    fn record_inputs(
        &self,
        wanted: &[DesiredItem<DesiredLabels>],
        current: &CurrentState<Object>,
        _: &Fingerprints,
    ) -> Option<serde_json::Value> {
        plan_inputs::record(wanted, current)
    }

    fn restore_inputs(&self, recorded: &serde_json::Value) -> Option<PlanInputs<DesiredLabels, Object>> {
        plan_inputs::restore(recorded)
    }

    async fn rehearse(&self, read: &ReadContext, step: &LabelAction) -> Result<RehearsalResult, Fault> {
        match step {
            LabelAction::Put(put) => {
                let rehearsed = self.kubernetes.rehearse(&read.permit, &put.cluster, MANAGER, &put.draft);
                rehearsal_result(rehearsed.await, put.conflict.as_ref())
            }
            LabelAction::Await(name) => {
                Ok(RehearsalResult::NotValidated(format!("Namespace `{name}` does not exist yet")))
            }
        }
    }

    async fn apply(&self, write: &WriteContext<'_>, step: &LabelAction) -> Result<ApplyResult, Fault> {
        match step {
            LabelAction::Put(put) => {
                apply_result(self.kubernetes.put(write.permit, &put.cluster, MANAGER, &put.draft).await)
            }
            // The fault is temporary: a later run succeeds, once the namespace exists.
            LabelAction::Await(name) => Err(Fault::remote(format!("Namespace `{name}` does not exist yet"))),
        }
    }
}
