//! Filters for lists and dicts.

use std::cmp::Ordering;

use super::{attribute_path, bool_argument, ignore_case};
use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::value::{Value, View};

pub(super) fn apply(run: &mut Interpreter<'_>, name: &str, value: &Value, args: Args) -> EvalResult<Value> {
    match name {
        "attr" => {
            let [attribute] = args.bind(name, ["name"], 1)?;
            let attribute = run.text(&attribute.unwrap_or(Value::None))?;
            run.attribute_only(value, &attribute.into())
        }
        "dictsort" => dictsort(run, value, args),
        "groupby" => groupby(run, value, args),
        "join" => join(run, value, args),
        "sort" => {
            let [reverse, case_sensitive, attribute] =
                args.bind(name, ["reverse", "case_sensitive", "attribute"], 0)?;
            let (reverse, case_sensitive) =
                (bool_argument(run, reverse.as_ref())?, bool_argument(run, case_sensitive.as_ref())?);
            let paths = match &attribute {
                Some(Value::Text(names)) => names
                    .split(',')
                    .map(|name| attribute_path(Some(&Value::text(name))))
                    .collect::<EvalResult<Vec<_>>>()?,
                attribute => vec![attribute_path(attribute.as_ref())?],
            };
            let mut keyed = Vec::new();
            for item in run.collect(value)? {
                let mut keys = Vec::new();
                for path in &paths {
                    let key = run.follow(item.clone(), path, None)?;
                    keys.push(if case_sensitive { key } else { ignore_case(key) });
                }
                keyed.push((run.list(keys)?, item));
            }
            let sorted = sorted(run, keyed, reverse)?;
            run.list(sorted)
        }
        "max" | "min" => min_or_max(run, name, value, args),
        name => {
            let [] = args.bind(name, [], 0)?;
            match name {
                "count" | "length" => run.length(value).map(Value::int),
                "first" => {
                    let iter = run.iterator(value)?;
                    Ok(run
                        .next(&iter)?
                        .unwrap_or_else(|| Value::Undefined("the sequence has no first item".into())))
                }
                "last" => last(run, value),
                "list" => {
                    let items = run.collect(value)?;
                    run.list(items)
                }
                _ => reverse(run, value),
            }
        }
    }
}

fn last(run: &mut Interpreter<'_>, value: &Value) -> EvalResult<Value> {
    let items = match value {
        Value::Iter(_) => return failed("a generator has no last item"),
        Value::Text(text) | Value::Markup(text) => {
            return Ok(text.chars().next_back().map_or_else(
                || Value::Undefined("the sequence has no last item".into()),
                |character| Value::text(character.to_string()),
            ));
        }
        value => run.collect(value)?,
    };
    Ok(items
        .into_iter()
        .next_back()
        .unwrap_or_else(|| Value::Undefined("the sequence has no last item".into())))
}

fn reverse(run: &mut Interpreter<'_>, value: &Value) -> EvalResult<Value> {
    if let Value::Text(text) = value {
        run.charge(text.len())?;
        return Ok(Value::text(text.chars().rev().collect::<String>()));
    }
    if matches!(value, Value::Markup(_)) {
        return refused("`reverse` of text that is marked as safe");
    }
    let mut items = run.collect(value)?;
    items.reverse();
    if matches!(value, Value::Iter(_)) {
        return run.list(items);
    }
    let state = crate::iterators::IterState::Buffered(items.into_iter());
    run.iter_of(state).map(Value::Iter)
}

/// Sorts by keys as Python does: stable, even when reversed.
pub(crate) fn sorted(
    run: &mut Interpreter<'_>,
    mut keyed: Vec<(Value, Value)>,
    reverse: bool,
) -> EvalResult<Vec<Value>> {
    let mut error = None;
    if reverse {
        keyed.reverse();
    }
    keyed.sort_by(|(left, _), (right, _)| {
        if error.is_some() {
            return Ordering::Equal;
        }
        match run.order(left, right) {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(found) => {
                error = Some(found);
                Ordering::Equal
            }
        }
    });
    if let Some(error) = error {
        return Err(error);
    }
    if reverse {
        keyed.reverse();
    }
    Ok(keyed.into_iter().map(|(_, item)| item).collect())
}

fn dictsort(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [case_sensitive, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"], 0)?;
    let (case_sensitive, reverse) =
        (bool_argument(run, case_sensitive.as_ref())?, bool_argument(run, reverse.as_ref())?);
    let place = match &by {
        None => 0,
        Some(Value::Text(by)) if &**by == "key" => 0,
        Some(Value::Text(by)) if &**by == "value" => 1,
        Some(_) => return failed("`dictsort` sorts by `key` or by `value`"),
    };
    let Value::Dict(dict) = value else {
        return match value {
            Value::Undefined(what) => run.undefined(what),
            other => failed(format!("`dictsort` does not take a {}", other.kind())),
        };
    };
    let mut keyed = Vec::new();
    for pair in run.view(dict, View::Items)? {
        let Value::Tuple(tuple) = &pair else { continue };
        let key = tuple.items[place].clone();
        keyed.push((if case_sensitive { key } else { ignore_case(key) }, pair));
    }
    let sorted = sorted(run, keyed, reverse)?;
    run.list(sorted)
}

fn groupby(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [attribute, default, case_sensitive] =
        args.bind("groupby", ["attribute", "default", "case_sensitive"], 1)?;
    let path = attribute_path(attribute.as_ref())?;
    let default = default.filter(|default| !matches!(default, Value::None));
    let case_sensitive = bool_argument(run, case_sensitive.as_ref())?;
    let mut keyed = Vec::new();
    for item in run.collect(value)? {
        let key = run.follow(item.clone(), &path, default.as_ref())?;
        let key = if case_sensitive { key } else { ignore_case(key) };
        let pair = run.tuple(vec![key.clone(), item])?;
        keyed.push((key, pair));
    }
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for pair in sorted(run, keyed, false)? {
        let Value::Tuple(tuple) = &pair else { continue };
        let (key, item) = (&tuple.items[0], tuple.items[1].clone());
        match groups.last_mut() {
            Some((known, items)) if run.equal(known, key)? => items.push(item),
            _ => groups.push((key.clone(), vec![item])),
        }
    }
    let mut out = Vec::new();
    for (key, items) in groups {
        let key = match items.first() {
            Some(first) if !case_sensitive => run.follow(first.clone(), &path, default.as_ref())?,
            _ => key,
        };
        out.push(run.group(key, items)?);
    }
    run.list(out)
}

fn join(run: &mut Interpreter<'_>, value: &Value, args: Args) -> EvalResult<Value> {
    let [separator, attribute] = args.bind("join", ["d", "attribute"], 0)?;
    let separator = match separator {
        None => String::new(),
        Some(separator) => run.text(&separator)?,
    };
    let path = attribute_path(attribute.as_ref())?;
    let iter = run.iterator(value)?;
    let mut out = String::new();
    let mut first = true;
    while let Some(item) = run.next(&iter)? {
        if !std::mem::take(&mut first) {
            out.push_str(&separator);
        }
        let item = run.follow(item, &path, None)?;
        run.write_text(&item, &mut out)?;
    }
    run.charge(out.len())?;
    Ok(Value::text(out))
}

fn min_or_max(run: &mut Interpreter<'_>, name: &str, value: &Value, args: Args) -> EvalResult<Value> {
    let [case_sensitive, attribute] = args.bind(name, ["case_sensitive", "attribute"], 0)?;
    let case_sensitive = bool_argument(run, case_sensitive.as_ref())?;
    let path = attribute_path(attribute.as_ref())?;
    let iter = run.iterator(value)?;
    let mut best: Option<(Value, Value)> = None;
    while let Some(item) = run.next(&iter)? {
        let key = run.follow(item.clone(), &path, None)?;
        let key = if case_sensitive { key } else { ignore_case(key) };
        let better = match &best {
            None => true,
            Some((known, _)) => {
                let order = run.order(&key, known)?;
                order == Some(if name == "max" { Ordering::Greater } else { Ordering::Less })
            }
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::Undefined("the sequence has no items".into()), |(_, item)| item))
}

/// The columns of `slice`.
pub(crate) fn slices(
    run: &mut Interpreter<'_>,
    of: &Value,
    count: i128,
    fill: &Value,
) -> EvalResult<Vec<Value>> {
    let items = run.collect(of)?;
    if count == 0 {
        return failed("`slice` into zero columns");
    }
    let Ok(count) = usize::try_from(count) else { return Ok(Vec::new()) };
    run.step(count as u64)?;
    let (each, extra) = (items.len() / count, items.len() % count);
    let mut rest = items.into_iter();
    let mut out = Vec::new();
    for index in 0..count {
        let mut column: Vec<Value> = rest.by_ref().take(each + usize::from(index < extra)).collect();
        if !matches!(fill, Value::None) && index >= extra {
            column.push(fill.clone());
        }
        out.push(run.list(column)?);
    }
    Ok(out)
}
