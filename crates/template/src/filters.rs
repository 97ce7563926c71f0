//! Filters: those of Jinja2, and those of data repos.

pub(crate) mod json;
mod lazy;
mod lists;
mod numbers;
mod serialization;
mod texts;
pub(crate) mod url;

use std::rc::Rc;

pub(crate) use lazy::prepare;
pub(crate) use lists::{slices, sorted as sorted_by_key};
pub(crate) use numbers::truncated;
pub(crate) use serialization::hash_list;
pub(crate) use texts::capitalize;

use crate::fault::{EvalError, EvalResult, Kind, failed, refused};
use crate::interpreter::{Args, Interpreter};
use crate::value::Value;

/// Filters whose output equals that of Jinja2.
pub(crate) const SUPPORTED: [&str; 58] = [
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "eval",
    "extract_jsonpath",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "json_pointers",
    "json_to_dict",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "matches_jsonpath",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "urlescape",
    "urlunescape",
    "wordcount",
    "yaml_to_dict",
    "wordwrap",
    "xmlattr",
];

/// Filters that are refused, with the reason.
pub(crate) const REFUSED: [(&str, &str); 5] = [
    ("pprint", "its line breaks depend on Python's pretty-printer"),
    ("random", "a template must always render the same text"),
    ("str_format", "the handling of its arguments is not specified well enough"),
    ("striptags", "templates do not render HTML here"),
    ("urlize", "templates do not render HTML here"),
];

/// Filters that exist only in templates of a data repo, not in templates given to `eval`.
const DATA_REPO_FILTERS: [&str; 9] = [
    "eval",
    "extract_jsonpath",
    "json_pointers",
    "json_to_dict",
    "matches_jsonpath",
    "str_format",
    "urlescape",
    "urlunescape",
    "yaml_to_dict",
];

/// Whether a filter of this name exists.
pub(crate) fn exists(name: &str, strict: bool) -> bool {
    (SUPPORTED.contains(&name) || REFUSED.iter().any(|(refused, _)| *refused == name))
        && (strict || !DATA_REPO_FILTERS.contains(&name))
}

/// `value|name(args)`
pub(crate) fn apply(run: &mut Interpreter<'_>, name: &str, value: Value, args: Args) -> EvalResult<Value> {
    run.step(1)?;
    for argument in args.values() {
        run.ensure_resolved(&argument)?;
    }
    if !exists(name, run.is_strict()) {
        return Err(EvalError::new(Kind::Undefined, format!("filter `{name}` not found")));
    }
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return refused(format!("the filter `{name}`: {why}"));
    }
    match name {
        "abs" | "float" | "int" | "round" | "sum" | "filesizeformat" => {
            numbers::apply(run, name, &value, args)
        }
        "capitalize" | "center" | "e" | "escape" | "forceescape" | "format" | "indent" | "lower"
        | "replace" | "safe" | "string" | "title" | "trim" | "truncate" | "upper" | "wordcount"
        | "wordwrap" | "xmlattr" => texts::apply(run, name, &value, args),
        "batch" | "items" | "map" | "reject" | "rejectattr" | "select" | "selectattr" | "slice"
        | "unique" => lazy::apply(run, name, value, args),
        "eval" | "extract_jsonpath" | "json_pointers" | "json_to_dict" | "matches_jsonpath"
        | "yaml_to_dict" | "tojson" | "urlencode" | "urlescape" | "urlunescape" => {
            serialization::apply(run, name, value, args)
        }
        "default" | "d" => default(run, value, args),
        _ => lists::apply(run, name, &value, args),
    }
}

fn default(run: &mut Interpreter<'_>, value: Value, args: Args) -> EvalResult<Value> {
    let [default, boolean] = args.bind("default", ["default_value", "boolean"], 0)?;
    let replace = value.is_undefined()
        || match boolean {
            Some(boolean) => run.is_truthy(&boolean)? && !run.is_truthy(&value)?,
            None => false,
        };
    Ok(if replace { default.unwrap_or_else(|| Value::text("")) } else { value })
}

/// Converts a string to lower case and returns other values unchanged.
pub(crate) fn ignore_case(value: Value) -> Value {
    match value {
        Value::Text(text) => Value::text(text.to_lowercase()),
        other => other,
    }
}

/// The path of an attribute that is given as `a.0.b`, or as a number.
pub(crate) fn attribute_path(attribute: Option<&Value>) -> EvalResult<Vec<Value>> {
    Ok(match attribute {
        None | Some(Value::None) => Vec::new(),
        Some(Value::Text(text)) => text.split('.').map(path_part).collect::<EvalResult<_>>()?,
        Some(number @ (Value::Int(_) | Value::Bool(_))) => vec![number.clone()],
        Some(other) => return refused(format!("an attribute that is a {}", other.kind())),
    })
}

fn path_part(text: &str) -> EvalResult<Value> {
    if !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit()) {
        return match text.parse() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => refused("an attribute of more than 128 bits"),
        };
    }
    Ok(Value::text(text))
}

/// An integer argument.
fn integer_argument(of: &str, value: Option<&Value>, default: i128) -> EvalResult<i128> {
    match value {
        None => Ok(default),
        Some(value) => match value.as_int() {
            Some(number) => Ok(number),
            None => failed(format!("`{of}` takes an integer, not a {}", value.kind())),
        },
    }
}

/// A boolean argument.
fn bool_argument(run: &Interpreter<'_>, value: Option<&Value>) -> EvalResult<bool> {
    value.map_or(Ok(false), |value| run.is_truthy(value))
}

/// Text that is marked as safe if `value` is marked as safe.
fn same_markup(value: &Value, text: String) -> Value {
    match value {
        Value::Markup(_) => Value::Markup(Rc::from(text)),
        _ => Value::text(text),
    }
}
