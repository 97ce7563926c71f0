//! Assertion keywords: those that constrain a value itself, without subschemas.

use std::cmp::Ordering;

use qontract_bundle::{Map, Value};

use super::rule::{Counted, Others, Own};
use super::{equality, numbers};
use crate::failure::Wrong;
use crate::pattern::TooCostly;
use crate::words::show;

/// Bytes of text that count as one step.
const TEXT_PER_STEP: usize = 64;
/// Number of compared values, or name look-ups, that count as one step.
const VALUES_PER_STEP: usize = 16;

/// Number of additional steps to evaluate an assertion for `value`.
pub fn cost(own: &Own<'_>, value: &Value) -> usize {
    match own {
        Own::Enum(values, _) => count(value).saturating_mul(values.len()) / VALUES_PER_STEP,
        Own::Const(..) => count(value) / VALUES_PER_STEP,
        Own::Pattern(_)
        | Own::Format(..)
        | Own::Least(Counted::Characters, _)
        | Own::Most(Counted::Characters, _) => value.as_str().map_or(0, |text| text.len() / TEXT_PER_STEP),
        Own::Unique => value.as_list().map_or(0, |_| count(value)),
        Own::Required(names) => value.as_map().map_or(0, |_| names.len() / VALUES_PER_STEP),
        Own::Needs(needs) => value.as_map().map_or(0, |map| {
            let given = needs.iter().filter(|(name, _)| map.get(name).is_some());
            (needs.len() + given.map(|(_, needed)| needed.len()).sum::<usize>()) / VALUES_PER_STEP
        }),
        Own::Closed(others) => cost_of_others(others, value),
        _ => 0,
    }
}

/// Number of steps to find the fields that a schema does not define.
pub fn cost_of_others(others: &Others<'_>, value: &Value) -> usize {
    cost_of_names(others.patterns.len(), value)
}

/// Number of steps to match a number of patterns against the names of all fields.
pub fn cost_of_names(patterns: usize, value: &Value) -> usize {
    let names = value
        .as_map()
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, _)| 1 + name.as_str().len() / TEXT_PER_STEP);
    if patterns == 0 { 0 } else { names.sum::<usize>().saturating_mul(patterns) }
}

/// Number of values in `value`, including itself.
pub fn count(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Map(map) => 1 + map.iter().map(|(_, value)| count(value)).sum::<usize>(),
        _ => 1,
    }
}

/// Whether an assertion depends only on the keys of a map, and is worth caching.
pub fn is_told_by_keys(own: &Own<'_>) -> bool {
    matches!(own, Own::Required(_) | Own::Closed(_))
}

/// Whether an assertion holds for `value`.
pub fn keeps(own: &Own<'_>, value: &Value) -> Result<bool, TooCostly> {
    let is = |limit: &Value, wrong: &[Ordering]| {
        numbers::compare(value, limit).is_none_or(|ordering| !wrong.contains(&ordering))
    };
    Ok(match own {
        Own::Forbidden => false,
        Own::Type(types) => types.iter().any(|name| is_type(value, name)),
        Own::Enum(values, _) => values.iter().any(|allowed| equality::equal(value, allowed)),
        Own::Const(allowed, _) => equality::equal(value, allowed),
        Own::Pattern(pattern) => match value.as_str() {
            None => true,
            Some(text) => pattern.finds(text)?,
        },
        Own::Format(_, format) => value.as_str().is_none_or(|text| format.is_kept_by(text)),
        Own::Minimum(limit) => is(limit, &[Ordering::Less]),
        Own::Maximum(limit) => is(limit, &[Ordering::Greater]),
        Own::ExclusiveMinimum(limit) => is(limit, &[Ordering::Less, Ordering::Equal]),
        Own::ExclusiveMaximum(limit) => is(limit, &[Ordering::Greater, Ordering::Equal]),
        Own::MultipleOf(of) => numbers::is_multiple(value, of),
        Own::Least(counted, limit) => size(*counted, value).is_none_or(|size| size >= *limit),
        Own::Most(counted, limit) => size(*counted, value).is_none_or(|size| size <= *limit),
        Own::Unique => match value.as_list() {
            None => true,
            Some(items) => equality::first_repeated(items).is_none(),
        },
        Own::Required(names) => {
            value.as_map().is_none_or(|map| names.iter().all(|name| map.get(name).is_some()))
        }
        Own::Needs(needs) => value.as_map().is_none_or(|map| {
            needs.iter().all(|(name, needed)| {
                map.get(name).is_none() || needed.iter().all(|name| map.get(name).is_some())
            })
        }),
        Own::Closed(others) => match value.as_map() {
            None => true,
            Some(map) => {
                for (name, _) in map.iter() {
                    if is_other(others, name.as_str())? {
                        return Ok(false);
                    }
                }
                true
            }
        },
        Own::ClosedList(most) => value.as_list().is_none_or(|items| items.len() <= *most),
    })
}

/// The failures of a value for which an assertion does not hold.
pub fn wrong(own: &Own<'_>, value: &Value) -> Result<Vec<Wrong>, TooCostly> {
    let missing = |name: &&str| Wrong::Missing((*name).to_owned());
    let absent = |name: &&&str| value.get(name).is_none();
    Ok(vec![match own {
        Own::Forbidden => Wrong::Forbidden,
        Own::Type(types) => Wrong::Type(types.iter().map(|name| (*name).to_owned()).collect()),
        Own::Enum(_, allowed) | Own::Const(_, allowed) => Wrong::Enum(allowed.clone()),
        Own::Pattern(_) => Wrong::Pattern,
        Own::Format(name, _) => Wrong::Format((*name).to_owned()),
        Own::Minimum(limit) => Wrong::Range(format!("less than {}, the minimum", show(limit))),
        Own::Maximum(limit) => Wrong::Range(format!("more than {}, the maximum", show(limit))),
        Own::ExclusiveMinimum(limit) => Wrong::Range(format!("not more than {}, as required", show(limit))),
        Own::ExclusiveMaximum(limit) => Wrong::Range(format!("not less than {}, as required", show(limit))),
        Own::MultipleOf(of) => Wrong::Range(format!("not a multiple of {}", show(of))),
        Own::Least(Counted::Characters, limit) => {
            Wrong::Length(format!("shorter than the {limit} characters required"))
        }
        Own::Most(Counted::Characters, limit) => {
            Wrong::Length(format!("longer than the {limit} characters allowed"))
        }
        Own::Least(Counted::Items, limit) => Wrong::Count(format!("fewer items than the {limit} required")),
        Own::Most(Counted::Items, limit) => Wrong::Count(format!("more items than the {limit} allowed")),
        Own::Least(Counted::Fields, limit) => Wrong::Count(format!("fewer fields than the {limit} required")),
        Own::Most(Counted::Fields, limit) => Wrong::Count(format!("more fields than the {limit} allowed")),
        Own::Unique => Wrong::Repeated,
        Own::Required(names) => return Ok(names.iter().filter(absent).map(missing).collect()),
        Own::Needs(needs) => {
            let given = needs.iter().filter(|(name, _)| value.get(name).is_some());
            return Ok(given.flat_map(|(_, needed)| needed.iter().filter(absent).map(missing)).collect());
        }
        Own::Closed(others) => {
            let mut unknown = Vec::new();
            for (name, _) in value.as_map().into_iter().flat_map(Map::iter) {
                if is_other(others, name.as_str())? {
                    unknown.push(name.as_str().to_owned());
                }
            }
            Wrong::Unknown(unknown)
        }
        Own::ClosedList(most) => Wrong::Count(format!("more items than the {most} allowed")),
    }])
}

/// Whether a schema does not define a field, by name or by pattern.
pub fn is_other(others: &Others<'_>, name: &str) -> Result<bool, TooCostly> {
    if others.named.is_some_and(|named| named.get(name).is_some()) {
        return Ok(false);
    }
    for pattern in &others.patterns {
        if pattern.finds(name)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Int(_) | Value::BigInt(_) => matches!(name, "integer" | "number"),
        Value::Float(value) => name == "number" || name == "integer" && value.fract() == 0.0,
        Value::Str(_) => name == "string",
        Value::List(_) => name == "array",
        Value::Map(_) => name == "object",
    }
}

#[expect(clippy::cast_precision_loss, reason = "no document has so many parts")]
fn size(counted: Counted, value: &Value) -> Option<f64> {
    let size = match counted {
        Counted::Characters => value.as_str()?.chars().count(),
        Counted::Items => value.as_list()?.len(),
        Counted::Fields => value.as_map()?.len(),
    };
    Some(size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Allowed;

    #[test]
    fn comparisons_are_counted_as_steps() {
        let text = Value::Str("x".repeat(6_400).into());
        let list = Value::List(vec![Value::Int(1); 99].into());
        let values = vec![Value::Null; 160];
        let allowed = Allowed(Vec::new().into());
        let check = |own: Own<'_>, value: &Value, expect| assert_eq!(cost(&own, value), expect, "{own:?}");
        check(Own::Enum(&values, allowed.clone()), &Value::Null, 10);
        check(Own::Enum(&values, allowed.clone()), &list, 1_000);
        check(Own::Const(&list, allowed), &list, 6);
        check(Own::Least(Counted::Characters, 1.0), &text, 100);
        check(Own::Least(Counted::Items, 1.0), &list, 0);
        check(Own::Unique, &list, 100);
    }
}
