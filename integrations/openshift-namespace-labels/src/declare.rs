//! Declares the labels of namespaces.

use std::collections::BTreeMap;

use qontract_objects::{Declared, LocatedState, check_label, in_namespaces};
use qontract_runtime::{Data, Fault};
use serde::Serialize;
use serde_json::Value;

use crate::NAME;
use crate::query::NamespaceLabels;

/// The desired labels of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeclaredLabels(pub BTreeMap<String, String>);

/// Declares the labels of all namespaces.
pub fn declare(data: &Data) -> Result<Declared<DeclaredLabels>, Fault> {
    let answer = data.query::<NamespaceLabels>()?;
    Ok(in_namespaces(
        NAME,
        answer.data.namespaces_v1,
        &answer.places,
        |namespace| &namespace.namespace_target,
        |namespace, _| {
            let labels = labels(namespace.labels.as_deref()).map_err(Fault::author)?;
            Ok(LocatedState { state: DeclaredLabels(labels), places: BTreeMap::new() })
        },
    ))
}

/// Parses the labels of a namespace: a JSON map of strings.
fn labels(json: Option<&str>) -> Result<BTreeMap<String, String>, String> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let map = match serde_json::from_str(json) {
        Ok(Value::Null) => return Ok(BTreeMap::new()),
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => return Err("`labels` is not a map".to_owned()),
    };
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => check_label(&name, &text).map(|()| (name, text)),
        _ => Err(format!("the label `{name}` is not a string")),
    };
    map.into_iter().map(text).collect()
}
