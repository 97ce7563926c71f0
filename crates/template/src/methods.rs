//! Methods of values: the methods of Python's `str`, `list` and `dict` that templates use.

mod dict;
mod list;
pub(crate) mod text;

use crate::fault::{Outcome, failed, refused};
use crate::run::{Args, Run};
use crate::value::Value;

/// The result of looking up an attribute of a value.
pub(crate) enum Found {
    Method,
    /// Python has it, but it is not supported here.
    Refused,
    Nothing,
}

const TEXT: [&str; 34] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "upper",
    "zfill",
];
const TEXT_REFUSED: [&str; 13] = [
    "encode",
    "expandtabs",
    "format_map",
    "isascii",
    "isdecimal",
    "isidentifier",
    "isprintable",
    "istitle",
    "maketrans",
    "rindex",
    "swapcase",
    "title",
    "translate",
];
const LIST: [&str; 11] =
    ["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"];
const DICT: [&str; 10] =
    ["clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];
/// Attributes of numbers, ranges and views.
const OTHERS: [&str; 20] = [
    "as_integer_ratio",
    "bit_count",
    "bit_length",
    "conjugate",
    "count",
    "denominator",
    "from_bytes",
    "fromhex",
    "hex",
    "imag",
    "index",
    "is_integer",
    "isdisjoint",
    "mapping",
    "numerator",
    "real",
    "start",
    "step",
    "stop",
    "to_bytes",
];

/// Looks up an attribute like Python's `getattr`.
pub(crate) fn find(of: &Value, name: &str) -> Found {
    let (methods, refused): (&[&str], &[&str]) = match of {
        Value::Text(_) => (&TEXT, &TEXT_REFUSED),
        Value::Markup(_) => (&[], &[]),
        Value::List(_) => (&LIST, &[]),
        Value::Tuple(_) => (&["count", "index"], &["_asdict", "_fields", "_replace", "_make"]),
        Value::Dict(_) => (&DICT, &["fromkeys"]),
        Value::Cycler(_) => (&["next", "reset"], &["items", "pos"]),
        _ => (&[], &OTHERS),
    };
    if methods.contains(&name) {
        return Found::Method;
    }
    let markup = matches!(of, Value::Markup(_));
    if refused.contains(&name) || markup { Found::Refused } else { Found::Nothing }
}

pub(crate) fn call(run: &mut Run<'_>, of: &Value, name: &str, args: Args) -> Outcome<Value> {
    for argument in args.values() {
        run.settled(&argument)?;
    }
    match of {
        Value::Text(of) => text::call(run, of, name, args),
        Value::List(of) => list::call(run, of, name, args),
        Value::Tuple(tuple) => list::search(run, &tuple.items.clone(), name, args),
        Value::Dict(of) => dict::call(run, of, name, args),
        Value::Cycler(cycler) => {
            let [] = args.bind(name, [], 0)?;
            if name == "reset" {
                cycler.at.set(0);
                return Ok(Value::None);
            }
            let at = cycler.at.get();
            cycler.at.set((at + 1) % cycler.items.len());
            Ok(cycler.items[at].clone())
        }
        other => refused(format!("the method `{name}` of a {}", other.kind())),
    }
}

/// The positional arguments; named ones are not allowed.
fn places(name: &str, args: Args, least: usize, most: usize) -> Outcome<Vec<Value>> {
    if !args.named.is_empty() {
        return failed(format!("`{name}` takes no named arguments"));
    }
    if args.positional.len() < least || args.positional.len() > most {
        return failed(format!("`{name}` does not take {} arguments", args.positional.len()));
    }
    Ok(args.positional)
}
