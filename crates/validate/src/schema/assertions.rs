//! Assertion keywords: those that constrain a value itself, without subschemas.

use std::cmp::Ordering;

use qontract_bundle::{Map, Value};

use super::rule::{AdditionalFields, Assertion, CountedUnit};
use super::{equality, numbers};
use crate::display::show;
use crate::failure::FailureKind;
use crate::pattern::BacktrackLimitError;

/// Number of bytes of a string that count as one step.
const TEXT_PER_STEP: usize = 64;
/// Number of compared values, or name lookups, that count as one step.
const VALUES_PER_STEP: usize = 16;

/// Number of additional steps to evaluate an assertion for `value`.
pub fn cost(own: &Assertion<'_>, value: &Value) -> usize {
    match own {
        Assertion::Enum(values, _) => count(value).saturating_mul(values.len()) / VALUES_PER_STEP,
        Assertion::Const(..) => count(value) / VALUES_PER_STEP,
        Assertion::Pattern(_)
        | Assertion::Format(..)
        | Assertion::Min(CountedUnit::Characters, _)
        | Assertion::Max(CountedUnit::Characters, _) => {
            value.as_str().map_or(0, |text| text.len() / TEXT_PER_STEP)
        }
        Assertion::Unique => value.as_list().map_or(0, |_| count(value)),
        Assertion::Required(names) => value.as_map().map_or(0, |_| names.len() / VALUES_PER_STEP),
        Assertion::DependentRequired(needs) => value.as_map().map_or(0, |map| {
            let given = needs.iter().filter(|(name, _)| map.get(name).is_some());
            (needs.len() + given.map(|(_, needed)| needed.len()).sum::<usize>()) / VALUES_PER_STEP
        }),
        Assertion::NoAdditionalFields(others) => additional_fields_cost(others, value),
        _ => 0,
    }
}

/// Number of steps to find the fields that a schema does not define.
pub fn additional_fields_cost(others: &AdditionalFields<'_>, value: &Value) -> usize {
    field_names_cost(others.patterns.len(), value)
}

/// Number of steps to match a number of patterns against the names of all fields.
pub fn field_names_cost(patterns: usize, value: &Value) -> usize {
    let names = value
        .as_map()
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, _)| 1 + name.as_str().len() / TEXT_PER_STEP);
    if patterns == 0 { 0 } else { names.sum::<usize>().saturating_mul(patterns) }
}

/// Number of values in `value`, including `value` itself.
pub fn count(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Map(map) => 1 + map.iter().map(|(_, value)| count(value)).sum::<usize>(),
        _ => 1,
    }
}

/// Whether an assertion depends only on the keys of a map, and is worth caching.
pub fn depends_on_keys_only(own: &Assertion<'_>) -> bool {
    matches!(own, Assertion::Required(_) | Assertion::NoAdditionalFields(_))
}

/// Whether an assertion is true for `value`.
pub fn holds(own: &Assertion<'_>, value: &Value) -> Result<bool, BacktrackLimitError> {
    let is = |limit: &Value, wrong: &[Ordering]| {
        numbers::compare(value, limit).is_none_or(|ordering| !wrong.contains(&ordering))
    };
    Ok(match own {
        Assertion::Forbidden => false,
        Assertion::Type(types) => types.iter().any(|name| is_type(value, name)),
        Assertion::Enum(values, _) => values.iter().any(|allowed| equality::equal(value, allowed)),
        Assertion::Const(allowed, _) => equality::equal(value, allowed),
        Assertion::Pattern(pattern) => match value.as_str() {
            None => true,
            Some(text) => pattern.is_match(text)?,
        },
        Assertion::Format(_, format) => value.as_str().is_none_or(|text| format.is_match(text)),
        Assertion::Minimum(limit) => is(limit, &[Ordering::Less]),
        Assertion::Maximum(limit) => is(limit, &[Ordering::Greater]),
        Assertion::ExclusiveMinimum(limit) => is(limit, &[Ordering::Less, Ordering::Equal]),
        Assertion::ExclusiveMaximum(limit) => is(limit, &[Ordering::Greater, Ordering::Equal]),
        Assertion::MultipleOf(of) => numbers::is_multiple(value, of),
        Assertion::Min(counted, limit) => size(*counted, value).is_none_or(|size| size >= *limit),
        Assertion::Max(counted, limit) => size(*counted, value).is_none_or(|size| size <= *limit),
        Assertion::Unique => match value.as_list() {
            None => true,
            Some(items) => equality::first_repeated(items).is_none(),
        },
        Assertion::Required(names) => {
            value.as_map().is_none_or(|map| names.iter().all(|name| map.get(name).is_some()))
        }
        Assertion::DependentRequired(needs) => value.as_map().is_none_or(|map| {
            needs.iter().all(|(name, needed)| {
                map.get(name).is_none() || needed.iter().all(|name| map.get(name).is_some())
            })
        }),
        Assertion::NoAdditionalFields(others) => match value.as_map() {
            None => true,
            Some(map) => {
                for (name, _) in map.iter() {
                    if is_additional(others, name.as_str())? {
                        return Ok(false);
                    }
                }
                true
            }
        },
        Assertion::NoAdditionalItems(most) => value.as_list().is_none_or(|items| items.len() <= *most),
    })
}

/// The failures of a value for which an assertion is not true.
pub fn assertion_failures(
    own: &Assertion<'_>,
    value: &Value,
) -> Result<Vec<FailureKind>, BacktrackLimitError> {
    let missing = |name: &&str| FailureKind::MissingField((*name).to_owned());
    let absent = |name: &&&str| value.get(name).is_none();
    Ok(vec![match own {
        Assertion::Forbidden => FailureKind::Forbidden,
        Assertion::Type(types) => FailureKind::Type(types.iter().map(|name| (*name).to_owned()).collect()),
        Assertion::Enum(_, allowed) | Assertion::Const(_, allowed) => FailureKind::Enum(allowed.clone()),
        Assertion::Pattern(_) => FailureKind::Pattern,
        Assertion::Format(name, _) => FailureKind::Format((*name).to_owned()),
        Assertion::Minimum(limit) => FailureKind::Range(format!("less than {}, the minimum", show(limit))),
        Assertion::Maximum(limit) => FailureKind::Range(format!("more than {}, the maximum", show(limit))),
        Assertion::ExclusiveMinimum(limit) => {
            FailureKind::Range(format!("not more than {}, as required", show(limit)))
        }
        Assertion::ExclusiveMaximum(limit) => {
            FailureKind::Range(format!("not less than {}, as required", show(limit)))
        }
        Assertion::MultipleOf(of) => FailureKind::Range(format!("not a multiple of {}", show(of))),
        Assertion::Min(CountedUnit::Characters, limit) => {
            FailureKind::Length(format!("shorter than the {limit} characters required"))
        }
        Assertion::Max(CountedUnit::Characters, limit) => {
            FailureKind::Length(format!("longer than the {limit} characters allowed"))
        }
        Assertion::Min(CountedUnit::Items, limit) => {
            FailureKind::Count(format!("fewer items than the {limit} required"))
        }
        Assertion::Max(CountedUnit::Items, limit) => {
            FailureKind::Count(format!("more items than the {limit} allowed"))
        }
        Assertion::Min(CountedUnit::Fields, limit) => {
            FailureKind::Count(format!("fewer fields than the {limit} required"))
        }
        Assertion::Max(CountedUnit::Fields, limit) => {
            FailureKind::Count(format!("more fields than the {limit} allowed"))
        }
        Assertion::Unique => FailureKind::DuplicateItem,
        Assertion::Required(names) => return Ok(names.iter().filter(absent).map(missing).collect()),
        Assertion::DependentRequired(needs) => {
            let given = needs.iter().filter(|(name, _)| value.get(name).is_some());
            return Ok(given.flat_map(|(_, needed)| needed.iter().filter(absent).map(missing)).collect());
        }
        Assertion::NoAdditionalFields(others) => {
            let mut unknown = Vec::new();
            for (name, _) in value.as_map().into_iter().flat_map(Map::iter) {
                if is_additional(others, name.as_str())? {
                    unknown.push(name.as_str().to_owned());
                }
            }
            FailureKind::UnknownFields(unknown)
        }
        Assertion::NoAdditionalItems(most) => {
            FailureKind::Count(format!("more items than the {most} allowed"))
        }
    }])
}

/// Whether a schema does not define a field, by name or by pattern.
pub fn is_additional(others: &AdditionalFields<'_>, name: &str) -> Result<bool, BacktrackLimitError> {
    if others.named.is_some_and(|named| named.get(name).is_some()) {
        return Ok(false);
    }
    for pattern in &others.patterns {
        if pattern.is_match(name)? {
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
fn size(counted: CountedUnit, value: &Value) -> Option<f64> {
    let size = match counted {
        CountedUnit::Characters => value.as_str()?.chars().count(),
        CountedUnit::Items => value.as_list()?.len(),
        CountedUnit::Fields => value.as_map()?.len(),
    };
    Some(size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::AllowedValues;

    #[test]
    fn comparisons_are_counted_as_steps() {
        let text = Value::Str("x".repeat(6_400).into());
        let list = Value::List(vec![Value::Int(1); 99].into());
        let values = vec![Value::Null; 160];
        let allowed = AllowedValues(Vec::new().into());
        let check =
            |own: Assertion<'_>, value: &Value, expect| assert_eq!(cost(&own, value), expect, "{own:?}");
        check(Assertion::Enum(&values, allowed.clone()), &Value::Null, 10);
        check(Assertion::Enum(&values, allowed.clone()), &list, 1_000);
        check(Assertion::Const(&list, allowed), &list, 6);
        check(Assertion::Min(CountedUnit::Characters, 1.0), &text, 100);
        check(Assertion::Min(CountedUnit::Items, 1.0), &list, 0);
        check(Assertion::Unique, &list, 100);
    }
}
