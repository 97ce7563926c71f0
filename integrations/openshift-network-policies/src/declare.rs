//! Declares the `NetworkPolicies` of namespaces.

use qontract_objects::{Declared, DeclaredObjects, Kind, ObjectSet, in_namespaces};
use qontract_runtime::{Data, Fault};
use serde_json::{Value, json};

use crate::NAME;
use crate::query::NetworkPolicies;

/// Declares the policies of all namespaces: one policy for each allowed namespace.
pub fn declare(data: &Data) -> Result<Declared<DeclaredObjects>, Fault> {
    let answer = data.query::<NetworkPolicies>()?;
    Ok(in_namespaces(
        NAME,
        answer.data.namespaces_v1,
        &answer.places,
        |namespace| &namespace.namespace_target,
        |namespace, pointer| {
            let mut all = ObjectSet::of(Kind::in_group("NetworkPolicy", "networking.k8s.io"));
            for source in namespace.network_policies_allow.iter().flatten() {
                let place = answer.places.of(pointer);
                if source.cluster.name != namespace.namespace_target.cluster.name {
                    let (name, cluster) = (&source.name, &source.cluster.name);
                    let why =
                        format!("`networkPoliciesAllow` names `{name}` of another cluster, `{cluster}`");
                    return Err(Fault::author(why)
                        .hint("only namespaces of the same cluster can be allowed")
                        .at(place));
                }
                all.add(object(&source.name), place)?;
            }
            Ok(all.finish())
        },
    ))
}

fn object(source: &str) -> Value {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": source}});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": format!("allow-from-{source}-namespace")},
        "spec": {
            "ingress": [{"from": [{"namespaceSelector": selector}]}],
            "podSelector": {},
            "policyTypes": ["Ingress"],
        },
    })
}
