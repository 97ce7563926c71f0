//! Filters: those of Jinja2, and those of data repos.

pub(crate) mod json;
mod lazy;
mod lists;
mod numbers;
mod outside;
mod texts;
pub(crate) mod url;

use std::rc::Rc;

pub(crate) use lazy::prepared;
pub(crate) use lists::{slices, sorted as sorted_by_key};
pub(crate) use numbers::truncated;
pub(crate) use outside::hash_list;
pub(crate) use texts::capitalized;

use crate::fault::{Kind, Outcome, Trouble, failed, refused};
use crate::run::{Args, Run};
use crate::value::Value;

/// Filters that are rendered as Jinja2 renders them.
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
    ("random", "the same template must give the same text"),
    ("str_format", "the handling of its arguments is not known well enough"),
    ("striptags", "templates do not render HTML here"),
    ("urlize", "templates do not render HTML here"),
];

/// Filters that only templates of a data repo have, not templates given to `eval`.
const OWN: [&str; 9] = [
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
        && (strict || !OWN.contains(&name))
}

/// `value|name(args)`
pub(crate) fn apply(run: &mut Run<'_>, name: &str, value: Value, args: Args) -> Outcome<Value> {
    run.step(1)?;
    for argument in args.values() {
        run.settled(&argument)?;
    }
    if !exists(name, run.is_strict()) {
        return Err(Trouble::new(Kind::Undefined, format!("there is no filter `{name}`")));
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
            outside::apply(run, name, value, args)
        }
        "default" | "d" => default(run, value, args),
        _ => lists::apply(run, name, &value, args),
    }
}

fn default(run: &mut Run<'_>, value: Value, args: Args) -> Outcome<Value> {
    let [default, boolean] = args.bind("default", ["default_value", "boolean"], 0)?;
    let replace = value.is_undefined()
        || match boolean {
            Some(boolean) => run.truth(&boolean)? && !run.truth(&value)?,
            None => false,
        };
    Ok(if replace { default.unwrap_or_else(|| Value::text("")) } else { value })
}

/// Texts in lower case; other values as they are.
pub(crate) fn ignore_case(value: Value) -> Value {
    match value {
        Value::Text(text) => Value::text(text.to_lowercase()),
        other => other,
    }
}

/// The path of an attribute that is given as `a.0.b`, or as a number.
pub(crate) fn path(attribute: Option<&Value>) -> Outcome<Vec<Value>> {
    Ok(match attribute {
        None | Some(Value::None) => Vec::new(),
        Some(Value::Text(text)) => text.split('.').map(part).collect::<Outcome<_>>()?,
        Some(number @ (Value::Int(_) | Value::Bool(_))) => vec![number.clone()],
        Some(other) => return refused(format!("an attribute that is a {}", other.kind())),
    })
}

fn part(text: &str) -> Outcome<Value> {
    if !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit()) {
        return match text.parse() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => refused("an attribute of more than 128 bits"),
        };
    }
    Ok(Value::text(text))
}

/// An integer argument.
fn whole(of: &str, value: Option<&Value>, default: i128) -> Outcome<i128> {
    match value {
        None => Ok(default),
        Some(value) => match value.as_int() {
            Some(number) => Ok(number),
            None => failed(format!("`{of}` takes a whole number, not a {}", value.kind())),
        },
    }
}

/// A boolean argument.
fn flag(run: &Run<'_>, value: Option<&Value>) -> Outcome<bool> {
    value.map_or(Ok(false), |value| run.truth(value))
}

/// Text that is marked as safe if `value` is.
fn like(value: &Value, text: String) -> Value {
    match value {
        Value::Markup(_) => Value::Markup(Rc::from(text)),
        _ => Value::text(text),
    }
}
