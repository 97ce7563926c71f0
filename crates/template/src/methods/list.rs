//! Methods of lists and tuples.

use std::rc::Rc;

use super::positional_arguments;
use crate::fault::{EvalResult, failed, refused};
use crate::filters::sorted_by_key;
use crate::interpreter::{Args, Interpreter};
use crate::value::{List, Value};

pub(super) fn call(run: &mut Interpreter<'_>, of: &Rc<List>, name: &str, args: Args) -> EvalResult<Value> {
    match name {
        "append" => {
            let item = positional_arguments(name, args, 1, 1)?.remove(0);
            run.step(1)?;
            of.items.borrow_mut().push(item.clone());
            record_items(run, of, &[item])?;
        }
        "extend" => {
            let from = positional_arguments(name, args, 1, 1)?.remove(0);
            let items = run.collect(&from)?;
            of.items.borrow_mut().extend(items.iter().cloned());
            record_items(run, of, &items)?;
        }
        "insert" => {
            let mut args = positional_arguments(name, args, 2, 2)?;
            let item = args.remove(1);
            let at = index(run, &args[0], of.items.borrow().len())?;
            run.step(1 + of.items.borrow().len() as u64 / 16)?;
            of.items.borrow_mut().insert(at, item.clone());
            record_items(run, of, &[item])?;
        }
        "pop" => {
            let args = positional_arguments(name, args, 0, 1)?;
            let length = of.items.borrow().len();
            let at = args.first().map_or(Some(-1), Value::as_int);
            let Some(at) = at else { return failed("`pop` takes an integer") };
            let signed = i128::try_from(length).unwrap_or(i128::MAX);
            let at = if at < 0 { at.saturating_add(signed) } else { at };
            let Some(at) = usize::try_from(at).ok().filter(|at| *at < length) else {
                return failed("`pop` with an index out of range");
            };
            run.step(1 + length as u64 / 16)?;
            return Ok(of.items.borrow_mut().remove(at));
        }
        "remove" => {
            let item = positional_arguments(name, args, 1, 1)?.remove(0);
            let items = of.items.borrow().clone();
            for (at, known) in items.iter().enumerate() {
                if run.equal(known, &item)? {
                    of.items.borrow_mut().remove(at);
                    return Ok(Value::None);
                }
            }
            return failed("`remove` of an item that is not in the list");
        }
        "clear" => {
            positional_arguments(name, args, 0, 0)?;
            of.items.borrow_mut().clear();
        }
        "copy" => {
            positional_arguments(name, args, 0, 0)?;
            let items = of.items.borrow().clone();
            return run.list(items);
        }
        "reverse" => {
            positional_arguments(name, args, 0, 0)?;
            run.step(of.items.borrow().len() as u64)?;
            of.items.borrow_mut().reverse();
        }
        "sort" => {
            let reverse = match (args.positional.is_empty(), args.named.as_slice()) {
                (true, []) => false,
                (true, [(name, reverse)]) if &**name == "reverse" => run.is_truthy(reverse)?,
                (true, [_, ..]) => return refused("`sort` of a list with a key"),
                (false, _) => return failed("`sort` takes no positional arguments"),
            };
            let keyed = of.items.borrow().iter().map(|item| (item.clone(), item.clone())).collect();
            let items = sorted_by_key(run, keyed, reverse)?;
            *of.items.borrow_mut() = items;
        }
        name => {
            let items = of.items.borrow().clone();
            return search(run, &items, name, args);
        }
    }
    Ok(Value::None)
}

/// Records the nesting of items that were added to a list. If the list then contains itself, it is cleared,
/// because otherwise its memory would never be freed.
fn record_items(run: &mut Interpreter<'_>, of: &List, items: &[Value]) -> EvalResult<()> {
    let adopted = items.iter().try_for_each(|item| run.record_nesting(item, of.level.get() + 1));
    if adopted.is_err() {
        of.items.borrow_mut().clear();
    }
    adopted
}

fn index(run: &Interpreter<'_>, value: &Value, length: usize) -> EvalResult<usize> {
    run.ensure_resolved(value)?;
    let Some(at) = value.as_int() else { return failed("an index must be an integer") };
    let length = i128::try_from(length).unwrap_or(i128::MAX);
    let at = if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
    Ok(usize::try_from(at).unwrap_or(0))
}

/// `count` and `index`, which tuples also have.
pub(super) fn search(
    run: &mut Interpreter<'_>,
    items: &[Value],
    name: &str,
    args: Args,
) -> EvalResult<Value> {
    if args.positional.len() > 1 && name == "index" {
        return refused("`index` with a start");
    }
    let item = positional_arguments(name, args, 1, 1)?.remove(0);
    let mut count = 0;
    for (at, known) in items.iter().enumerate() {
        if run.equal(known, &item)? {
            if name == "index" {
                return Ok(Value::int(at));
            }
            count += 1;
        }
    }
    if name == "index" { failed("`index` of an item that is not in the list") } else { Ok(Value::Int(count)) }
}
