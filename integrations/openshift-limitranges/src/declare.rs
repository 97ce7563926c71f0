//! Declares the `LimitRanges` of namespaces.

use qontract_objects::fragments::ComputeResources;
use qontract_objects::{
    Declared, DeclaredObjects, Kind, NO_TAKE_OVER, ObjectSet, in_namespaces, without_nulls,
};
use qontract_runtime::{Data, Fault, Options};
use serde_json::{Value, json};

use crate::NAME;
use crate::query::{LimitRange, LimitRangeItem, LimitRanges};

/// Declares the limit ranges of all namespaces.
pub fn declare(data: &Data, options: &Options) -> Result<Declared<DeclaredObjects>, Fault> {
    let answer = data.query::<LimitRanges>()?;
    Ok(in_namespaces(
        NAME,
        answer.data.namespaces_v1,
        &answer.places,
        |namespace| &namespace.namespace_target,
        |namespace, pointer| {
            let all = ObjectSet::of(Kind::named("LimitRange"));
            let Some(range) = &namespace.limit_ranges else { return Ok(all.finish()) };
            // Unmarked limit ranges are managed as well, because all limit ranges of a namespace apply
            // together and a leftover limit range would still take effect.
            let mut all = if options.is_on(NO_TAKE_OVER) { all } else { all.adopting_unmarked() };
            let place = answer.places.of(&format!("{pointer}/limitRanges"));
            if range.limits.is_empty() {
                let why = format!("the limit range `{}` limits nothing", range.name);
                return Err(Fault::author(why).hint("remove `limitRanges`").at(place));
            }
            all.add(object(range), place)?;
            Ok(all.finish())
        },
    ))
}

fn object(range: &LimitRange) -> Value {
    let limits: Vec<Value> = range.limits.iter().map(limit).collect();
    let metadata = json!({"name": range.name});
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}})
}

fn limit(item: &LimitRangeItem) -> Value {
    let LimitRangeItem { r#type, default, default_request, max, max_limit_request_ratio, min } = item;
    let of = |values: &Option<ComputeResources>| {
        values.as_ref().map(|values| json!({"cpu": values.cpu, "memory": values.memory}))
    };
    without_nulls(json!({
        "type": r#type,
        "default": of(default),
        "defaultRequest": of(default_request),
        "max": of(max),
        "maxLimitRequestRatio": of(max_limit_request_ratio),
        "min": of(min),
    }))
}
