//! Lazy filters: items are computed when they are requested.

use std::collections::HashSet;
use std::rc::Rc;

use super::{attribute_path, bool_argument};
use crate::fault::{EvalResult, failed};
use crate::interpreter::{Args, Interpreter};
use crate::iterators::IterState;
use crate::value::Value;

pub(super) fn apply(run: &mut Interpreter<'_>, name: &str, value: Value, args: Args) -> EvalResult<Value> {
    let state = match name {
        "items" => {
            let [] = args.bind(name, [], 0)?;
            IterState::Pairs(value)
        }
        "batch" => {
            let [size, fill] = args.bind(name, ["linecount", "fill_with"], 1)?;
            let Some(size) = size.and_then(|size| size.as_int()) else {
                return failed("`batch` takes an integer");
            };
            let inner = run.iter_of(IterState::Deferred { of: value, if_true: false })?;
            IterState::Batch { inner, size, fill: fill.unwrap_or(Value::None), done: false }
        }
        "slice" => {
            let [count, fill] = args.bind(name, ["slices", "fill_with"], 1)?;
            let Some(count) = count.and_then(|count| count.as_int()) else {
                return failed("`slice` takes an integer");
            };
            IterState::Slices { of: value, count, fill: fill.unwrap_or(Value::None) }
        }
        "unique" => {
            let [case_sensitive, attribute] = args.bind(name, ["case_sensitive", "attribute"], 0)?;
            let case_sensitive = bool_argument(run, case_sensitive.as_ref())?;
            let inner = run.iter_of(IterState::Deferred { of: value, if_true: false })?;
            IterState::Unique {
                inner,
                path: attribute_path(attribute.as_ref())?,
                case_sensitive,
                seen: HashSet::new(),
            }
        }
        name => IterState::Prepared { name: name.into(), of: value, args },
    };
    run.iter_of(state).map(Value::Iter)
}

/// Sets up `map`, `select` and similar filters when the first item is requested.
pub(crate) fn prepare(
    run: &mut Interpreter<'_>,
    name: &str,
    of: &Value,
    mut args: Args,
) -> EvalResult<IterState> {
    let inner = run.iter_of(IterState::Deferred { of: of.clone(), if_true: true })?;
    if name == "map" {
        if args.positional.is_empty() {
            let attribute = args.named.iter().position(|(name, _)| &**name == "attribute");
            let Some(attribute) = attribute.map(|index| args.named.remove(index).1) else {
                return failed("`map` needs the name of a filter, or an attribute");
            };
            let default = args.named.iter().position(|(name, _)| &**name == "default");
            let default = default
                .map(|index| args.named.remove(index).1)
                .filter(|default| !matches!(default, Value::None));
            if let Some((extra, _)) = args.named.first() {
                return failed(format!("`map` takes no argument `{extra}`"));
            }
            return Ok(IterState::Attribute { inner, path: attribute_path(Some(&attribute))?, default });
        }
        let name = name_of(args.positional.remove(0), "map")?;
        return Ok(IterState::Filtered { inner, name, args });
    }
    let mut by = None;
    if name.ends_with("attr") {
        if args.positional.is_empty() {
            return failed(format!("`{name}` needs an attribute"));
        }
        by = Some(attribute_path(Some(&args.positional.remove(0)))?);
    }
    let test = if args.positional.is_empty() {
        None
    } else {
        Some((name_of(args.positional.remove(0), name)?, args))
    };
    Ok(IterState::Selected { inner, path: by, test, keep: name.starts_with("select") })
}

fn name_of(value: Value, of: &str) -> EvalResult<Rc<str>> {
    match value {
        Value::Text(name) => Ok(name),
        other => failed(format!("`{of}` takes a name, not a {}", other.kind())),
    }
}
