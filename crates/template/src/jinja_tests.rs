//! Jinja2 tests: the names after `is`.

use std::rc::Rc;

use crate::fault::{EvalError, EvalResult, Kind, failed, refused};
use crate::filters;
use crate::interpreter::{Args, Interpreter};
use crate::syntax::{Comparison, Operator};
use crate::value::Value;

/// All Jinja2 tests.
pub(crate) const SUPPORTED: [&str; 39] = [
    "odd",
    "even",
    "divisibleby",
    "defined",
    "undefined",
    "filter",
    "test",
    "none",
    "boolean",
    "false",
    "true",
    "integer",
    "float",
    "lower",
    "upper",
    "string",
    "mapping",
    "number",
    "sequence",
    "iterable",
    "callable",
    "sameas",
    "escaped",
    "in",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    ">",
    "gt",
    "greaterthan",
    "ge",
    ">=",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
];

/// Whether a test of this name exists.
pub(crate) fn exists(name: &str) -> bool {
    SUPPORTED.contains(&name)
}

/// `value is name(args)`
pub(crate) fn apply(run: &mut Interpreter<'_>, name: &str, value: &Value, args: Args) -> EvalResult<Value> {
    run.step(1)?;
    for argument in args.values() {
        run.ensure_resolved(&argument)?;
    }
    let comparison = match name {
        "==" | "eq" | "equalto" => Some(Comparison::Equal),
        "!=" | "ne" => Some(Comparison::NotEqual),
        ">" | "gt" | "greaterthan" => Some(Comparison::Greater),
        ">=" | "ge" => Some(Comparison::GreaterOrEqual),
        "<" | "lt" | "lessthan" => Some(Comparison::Less),
        "<=" | "le" => Some(Comparison::LessOrEqual),
        "in" => Some(Comparison::In),
        _ => None,
    };
    if let Some(comparison) = comparison {
        let [other] = args.bind(name, ["other"], 1)?;
        return run.compare(comparison, value, &other.unwrap_or(Value::None)).map(Value::Bool);
    }
    match name {
        "divisibleby" => {
            let [number] = args.bind(name, ["num"], 1)?;
            is_divisible(run, value, &number.unwrap_or(Value::None))
        }
        "sameas" => {
            let [other] = args.bind(name, ["other"], 1)?;
            is_same_object(value, &other.unwrap_or(Value::None)).map(Value::Bool)
        }
        name => {
            if !exists(name) {
                return Err(EvalError::new(Kind::Undefined, format!("test `{name}` not found")));
            }
            let [] = args.bind(name, [], 0)?;
            match name {
                "even" => is_divisible(run, value, &Value::Int(2)),
                "odd" => {
                    let rest = run.binary(Operator::Modulo, value, &Value::Int(2))?;
                    run.equal(&rest, &Value::Int(1)).map(Value::Bool)
                }
                name => simple_test(run, name, value).map(Value::Bool),
            }
        }
    }
}

fn simple_test(run: &mut Interpreter<'_>, name: &str, value: &Value) -> EvalResult<bool> {
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "string" => matches!(value, Value::Text(_) | Value::Markup(_)),
        "escaped" => matches!(value, Value::Markup(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "callable" => matches!(
            value,
            Value::Function(_)
                | Value::Method(_)
                | Value::Macro(_)
                | Value::Loop(_)
                | Value::Joiner(_)
                | Value::Undefined(_)
        ),
        "iterable" => match value {
            Value::Undefined(what) if run.is_fatal(what) => return run.undefined(what),
            Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Namespace(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Macro(_) => false,
            Value::Cycler(_) | Value::Joiner(_) => return refused("whether this can be looped over"),
            _ => true,
        },
        "sequence" => match value {
            Value::Undefined(what) if run.is_fatal(what) => false,
            Value::Text(_)
            | Value::Markup(_)
            | Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Range(_)
            | Value::Undefined(_) => true,
            Value::Loop(_) => return refused("whether a loop is a sequence"),
            _ => false,
        },
        "lower" | "upper" => {
            let text = run.text(value)?;
            if !text.is_ascii() {
                return refused("the case of text that is not ASCII");
            }
            let (lower, upper) = (
                text.bytes().any(|letter| letter.is_ascii_lowercase()),
                text.bytes().any(|letter| letter.is_ascii_uppercase()),
            );
            if name == "lower" { lower && !upper } else { upper && !lower }
        }
        "filter" | "test" => match value {
            Value::Text(text) if name == "filter" => filters::exists(text, run.is_strict()),
            Value::Text(text) => exists(text),
            Value::Undefined(what) => return run.undefined(what),
            Value::List(_) | Value::Dict(_) => return failed(format!("a {} is not a name", value.kind())),
            _ => false,
        },
        _ => return refused(format!("the test `{name}`")),
    })
}

fn is_divisible(run: &mut Interpreter<'_>, value: &Value, by: &Value) -> EvalResult<Value> {
    let rest = run.binary(Operator::Modulo, value, by)?;
    run.equal(&rest, &Value::Int(0)).map(Value::Bool)
}

/// Whether both values are the same object. Refused for numbers and strings, for which the result depends on
/// how Python allocates them.
fn is_same_object(left: &Value, right: &Value) -> EvalResult<bool> {
    Ok(match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::List(left), Value::List(right)) => Rc::ptr_eq(left, right),
        (Value::Dict(left), Value::Dict(right)) | (Value::Namespace(left), Value::Namespace(right)) => {
            Rc::ptr_eq(left, right)
        }
        _ if left.kind() != right.kind() => false,
        _ => return refused(format!("whether two values are the same {}", left.kind())),
    })
}
