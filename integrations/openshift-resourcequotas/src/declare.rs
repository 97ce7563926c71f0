//! Declares the `ResourceQuotas` of namespaces.

use qontract_objects::{Declared, DeclaredObjects, Kind, ObjectSet, in_namespaces, without_nulls};
use qontract_runtime::{Data, Fault};
use serde_json::{Value, json};

use crate::NAME;
use crate::query::{Quotas, ResourceQuotaItem};

/// Declares the quotas of all namespaces.
pub fn declare(data: &Data) -> Result<Declared<DeclaredObjects>, Fault> {
    let answer = data.query::<Quotas>()?;
    Ok(in_namespaces(
        NAME,
        answer.data.namespaces_v1,
        &answer.places,
        |namespace| &namespace.namespace_target,
        |namespace, pointer| {
            let mut all = ObjectSet::of(Kind::named("ResourceQuota"));
            let quotas = namespace.quota.iter().flat_map(|quota| &quota.quotas).enumerate();
            for (index, quota) in quotas {
                all.add(object(quota), answer.places.of(&format!("{pointer}/quota/quotas/{index}")))?;
            }
            Ok(all.finish())
        },
    ))
}

fn object(quota: &ResourceQuotaItem) -> Value {
    let (limits, requests) = (&quota.resources.limits, &quota.resources.requests);
    let hard = without_nulls(json!({
        "limits.cpu": limits.as_ref().map(|limits| &limits.cpu),
        "limits.memory": limits.as_ref().map(|limits| &limits.memory),
        "requests.cpu": requests.as_ref().map(|requests| &requests.cpu),
        "requests.memory": requests.as_ref().map(|requests| &requests.memory),
        "pods": quota.resources.pods.map(|pods| pods.to_string()),
    }));
    // As in qontract-reconcile, the object has an empty list if there are no scopes, because the list is part
    // of the hash.
    let scopes = quota.scopes.as_deref().unwrap_or_default();
    let metadata = json!({"name": quota.name});
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, "scopes": scopes}})
}
