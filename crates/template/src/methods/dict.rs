//! Methods of dicts.

use std::rc::Rc;

use super::positional_arguments;
use crate::fault::{EvalResult, failed};
use crate::functions;
use crate::interpreter::{Args, Interpreter};
use crate::value::{Mapping, Value, View};

pub(super) fn call(run: &mut Interpreter<'_>, of: &Rc<Mapping>, name: &str, args: Args) -> EvalResult<Value> {
    match name {
        "keys" | "values" | "items" => {
            positional_arguments(name, args, 0, 0)?;
            let view = match name {
                "keys" => View::Keys,
                "values" => View::Values,
                _ => View::Items,
            };
            Ok(Value::View(Rc::clone(of), view))
        }
        "get" | "setdefault" | "pop" => {
            let args = positional_arguments(name, args, 1, 2)?;
            let key = run.key(&args[0])?;
            let found = of.items.borrow().get(&key).cloned();
            match (name, found) {
                ("pop", Some(found)) => {
                    run.step(1 + of.items.borrow().len() as u64)?;
                    of.items.borrow_mut().remove(&key);
                    Ok(found)
                }
                ("pop", None) if args.len() == 1 => failed("`pop` of a missing key"),
                ("setdefault", None) => {
                    let value = args.get(1).cloned().unwrap_or(Value::None);
                    insert(run, of, &args[0], &value)?;
                    Ok(value)
                }
                (_, Some(found)) => Ok(found),
                (_, None) => Ok(args.get(1).cloned().unwrap_or(Value::None)),
            }
        }
        "update" => {
            let Value::Dict(other) = functions::call(run, "dict", args)? else { return failed("`update`") };
            let other = other.items.borrow().clone();
            for (name, value) in other.entries() {
                insert(run, of, name, value)?;
            }
            Ok(Value::None)
        }
        "clear" => {
            positional_arguments(name, args, 0, 0)?;
            of.items.borrow_mut().clear();
            Ok(Value::None)
        }
        "popitem" => {
            positional_arguments(name, args, 0, 0)?;
            let last = of.items.borrow().entries().last().cloned();
            let Some((key, value)) = last else { return failed("`popitem` of an empty dict") };
            let found = run.key(&key)?;
            of.items.borrow_mut().remove(&found);
            run.tuple(vec![key, value])
        }
        _ => {
            positional_arguments(name, args, 0, 0)?;
            let items = of.items.borrow().clone();
            run.dict(items)
        }
    }
}

fn insert(run: &mut Interpreter<'_>, of: &Mapping, name: &Value, value: &Value) -> EvalResult<()> {
    let key = run.key(name)?;
    run.insert_entry(of, key, name, value)
}
