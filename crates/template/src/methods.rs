//! Methods of values: the methods of Python's `str`, `list` and `dict` that templates use.

mod dict;
mod list;
pub(crate) mod text;

use crate::fault::{EvalResult, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::value::Value;

/// The result of looking up an attribute of a value.
pub(crate) enum AttributeLookup {
    Method,
    /// An attribute that Python has, but that is not supported here.
    Refused,
    Missing,
}

const TEXT_METHODS: [&str; 34] = [
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
const UNSUPPORTED_TEXT_METHODS: [&str; 13] = [
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
const LIST_METHODS: [&str; 11] =
    ["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"];
const DICT_METHODS: [&str; 10] =
    ["clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];
/// Attributes of numbers, ranges and views.
const UNSUPPORTED_ATTRIBUTES: [&str; 20] = [
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
pub(crate) fn find_attribute(of: &Value, name: &str) -> AttributeLookup {
    let (methods, refused): (&[&str], &[&str]) = match of {
        Value::Text(_) => (&TEXT_METHODS, &UNSUPPORTED_TEXT_METHODS),
        Value::Markup(_) => (&[], &[]),
        Value::List(_) => (&LIST_METHODS, &[]),
        Value::Tuple(_) => (&["count", "index"], &["_asdict", "_fields", "_replace", "_make"]),
        Value::Dict(_) => (&DICT_METHODS, &["fromkeys"]),
        Value::Cycler(_) => (&["next", "reset"], &["items", "pos"]),
        _ => (&[], &UNSUPPORTED_ATTRIBUTES),
    };
    if methods.contains(&name) {
        return AttributeLookup::Method;
    }
    let markup = matches!(of, Value::Markup(_));
    if refused.contains(&name) || markup { AttributeLookup::Refused } else { AttributeLookup::Missing }
}

pub(crate) fn call(run: &mut Interpreter<'_>, of: &Value, name: &str, args: Args) -> EvalResult<Value> {
    for argument in args.values() {
        run.ensure_resolved(&argument)?;
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

/// The positional arguments; named arguments are not allowed.
fn positional_arguments(name: &str, args: Args, least: usize, most: usize) -> EvalResult<Vec<Value>> {
    if !args.named.is_empty() {
        return failed(format!("`{name}` takes no named arguments"));
    }
    if args.positional.len() < least || args.positional.len() > most {
        return failed(format!("`{name}` does not take {} arguments", args.positional.len()));
    }
    Ok(args.positional)
}
